// control/jobs/decision_check.hpp - whether a decision still fits the state.
//
// A pass decides on an earlier state, or for all its jobs at once; each decision is checked before
// it is carried out. Made for one check; valid until the next event. Changes nothing.
#pragma once

#include <span>
#include <string>

#include "control/state/state.hpp"

namespace orrery {

/// Why a job keeps devices that another one was to have.
inline constexpr const char* kGuaranteed = "its tenant is guaranteed by now what it would lose";

class DecisionCheck {
 public:
  DecisionCheck(const State& state, Instant now) : state_(state), now_(now) {}

  /// Returns why a decision no longer fits a view of the present fleet; "": it fits.
  [[nodiscard]] std::string why_stale(const StartJob& start, const FleetView& view) const;
  /// Precondition: the job is not archived.
  [[nodiscard]] std::string why_stale(const ResizeJob& resize, const FleetView& view) const;
  /// Whether the gang still runs as it did at `looked_at`, when the pass looked, and its draw fits.
  [[nodiscard]] bool may_set(const SetClock& clock, Instant looked_at) const;
  /// Whether a job that continues with `left`, or stops, would give devices that are guaranteed to
  /// its own tenants to a job of another tenant. For guarantees, a stopping job counts as gone.
  [[nodiscard]] bool loses_guaranteed(JobId id, JobId in_favour_of,
                                      std::span<const PlacedGang> left) const;

 private:
  [[nodiscard]] bool beyond_quota(const JobRequest& request, std::span<const PlacedGang> gangs,
                                  std::span<const PlacedGang> instead_of) const;

  const State& state_;
  Instant now_;
};

}  // namespace orrery
