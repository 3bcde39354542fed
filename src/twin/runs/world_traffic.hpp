// twin/runs/world_traffic.hpp - the contention of a world's jobs, with the events at which their
// bytes arrive.
//
// Owned by JobRuns. Contention is made when the first job that may be affected is seen, so a world
// without such jobs pays nothing for it. Invariant: at most one planned arrival is valid.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "twin/plan_book.hpp"
#include "twin/traffic/contention.hpp"
#include "twin/world/agenda.hpp"
#include "twin/world/world_facts.hpp"

namespace orrery {

class WorldTraffic {
 public:
  /// The facts and the agenda must outlive it.
  WorldTraffic(const WorldFacts& facts, Agenda& agenda);
  WorldTraffic(const WorldTraffic&) = delete;
  WorldTraffic& operator=(const WorldTraffic&) = delete;

  [[nodiscard]] PlanBook& plans() { return plans_; }
  /// Returns where the job contends with others; nullptr: jobs do not contend.
  [[nodiscard]] Contention* contention_of(const RunningJob& job, const State& state);
  /// nullptr: no job has contended yet.
  [[nodiscard]] Contention* contention() { return contention_ ? &*contention_ : nullptr; }
  /// Ends the traffic of the job and its transfers.
  void leave(JobId job, Instant now) {
    if (contention_) contention_->leave(job, now);
  }

  /// Plans the event at which the next bytes arrive, as of the last update of contention.
  /// Precondition: there is contention.
  void plan_arrival(Instant now);
  [[nodiscard]] bool is_planned(const WorldEvent& arrival) const {
    return arrival.serial == arrivals_planned_;
  }
  /// Returns the bytes that have arrived by the planned event.
  [[nodiscard]] std::vector<Moved> take_arrived(Instant now);

 private:
  const Calibration* calibration_;  ///< nullptr: jobs never contend
  Agenda* agenda_;
  PlanBook plans_;
  std::optional<Contention> contention_;
  Instant next_arrival_ = Instant::max();  ///< as last planned
  std::uint32_t arrivals_planned_ = 0;     ///< so far; only the last is valid
};

}  // namespace orrery
