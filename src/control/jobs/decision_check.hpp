// control/jobs/decision_check.hpp - whether a decision still fits the state.
//
// A pass decides on an earlier state, or for all its jobs at once; each decision is checked before
// it is carried out. Made for one check; valid until the next event. Changes nothing.
#pragma once

#include <span>
#include <string>

#include "control/state/state.hpp"

namespace orrery {

class DecisionCheck {
 public:
  DecisionCheck(const State& state, Instant now) : state_(state), now_(now) {}

  /// Returns why a decision no longer fits a view of the present fleet; "": it fits.
  [[nodiscard]] std::string why_stale(const StartJob& start, const FleetView& view) const;
  /// Precondition: the job is not archived.
  [[nodiscard]] std::string why_stale(const ResizeJob& resize, const FleetView& view) const;
  /// Whether the gang still runs as it did at `looked_at`, when the pass looked, and its draw fits.
  [[nodiscard]] bool may_set(const SetClock& clock, Instant looked_at) const;
  /// Returns why a job keeps the devices that it would give to another one by continuing with
  /// `left`, or by stopping; "": it gives them. `in_favour_of` none: it gives them because of a
  /// power limit.
  [[nodiscard]] std::string why_kept(JobId id, JobId in_favour_of,
                                     std::span<const PlacedGang> left) const;

 private:
  [[nodiscard]] bool is_ready(const FleetView& view, NodeId node, JobId job) const;
  /// Whether these devices are guaranteed to tenants of the job itself, and go to a job of another
  /// tenant. A stopping job counts as gone.
  [[nodiscard]] bool loses_guaranteed(JobId id, JobId in_favour_of,
                                      std::span<const PlacedGang> left) const;
  [[nodiscard]] bool beyond_quota(const JobRequest& request, std::span<const PlacedGang> gangs,
                                  std::span<const PlacedGang> instead_of) const;

  const State& state_;
  Instant now_;
};

}  // namespace orrery
