// twin/power_watch.hpp - how near each power domain and cooling loop came to its limit in a run,
// and for how long more was planned than the limit.
//
// Looks on at the events of a run; what held for no time does not count. Only limits below the
// ratings of the nodes beneath them are watched, as built or as they fall: no others can be
// exceeded. Made by run_policy for one run. Cost: O(watched domains) an input with events.
#pragma once

#include <span>
#include <vector>

#include "control/state.hpp"

namespace orrery {

struct WatchedLimit {
  PowerDomainId domain;
  /// The largest part of the limit of the time that was planned. Times when the limit was 0 (less
  /// than a milliwatt) are left out of it: whatever is planned then is above.
  double fullest = 0;
  Duration above;  ///< for which more was planned than the limit
};

class PowerWatch {
 public:
  /// After the events of an instant were applied.
  void look(Instant now, const State& state, std::span<const Event> events);

  /// The limits of all domains that were watched at some time, by domain; `end`: of the run.
  [[nodiscard]] std::vector<WatchedLimit> limits(Instant end) const;

 private:
  struct Entry {
    WatchedLimit seen;
    bool watched = false;
    bool above = false;
    double part = 0;  ///< planned, of the limit
  };

  void choose(const Situation& situation, const Topology& topology);
  static void pass(Entry& entry, Duration time);

  std::vector<Entry> entries_;  ///< by domain
  bool begun_ = false;
  Instant since_;  ///< the last look
};

}  // namespace orrery
