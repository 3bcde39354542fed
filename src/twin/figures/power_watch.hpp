// twin/figures/power_watch.hpp - how near each power domain and cooling loop came to its limit in a
// run, and for how long planned power exceeded the limit.
//
// Observes the events of a run; a state that lasts no time does not count. Only limits below the
// ratings of the nodes beneath them are watched, as built or once they fall: no others can be
// exceeded. Made by run_policy for one run. Cost: O(watched domains) an input with events.
#pragma once

#include <span>
#include <vector>

#include "control/state/state.hpp"

namespace orrery {

struct WatchedLimit {
  PowerDomainId domain;
  /// The largest share of the limit that was planned. Times when the limit was 0 (less than a
  /// milliwatt) are left out: any planned power is above it then.
  double fullest = 0;
  Duration above;  ///< time for which more was planned than the limit
};

class PowerWatch {
 public:
  /// Must be called after the events of an instant were applied.
  void look(Instant now, const State& state, std::span<const Event> events);

  /// The limits of all domains that were watched at some time, by domain; `end` is that of the run.
  [[nodiscard]] std::vector<WatchedLimit> limits(Instant end) const;

 private:
  struct Entry {
    WatchedLimit seen;
    bool watched = false;
    bool above = false;
    double part = 0;  ///< planned power over the limit
  };

  void choose(const Situation& situation, const Topology& topology);
  static void pass(Entry& entry, Duration time);

  std::vector<Entry> entries_;  ///< by domain
  bool begun_ = false;
  Instant since_;  ///< time of the last look
};

}  // namespace orrery
