// scheduler/admission.hpp - whether the deadline and the budget of a job can be kept, and by what.
//
// Asked when a job is handed in, and by explain(). On a fleet where nothing runs the answer is
// certain, as far as lengths are known; on one that works it is a forecast. Pure. Cost: three
// placements, and a forecast (scheduler/start_forecast.hpp).
#pragma once

#include <optional>
#include <string>

#include "scheduler/place_tree.hpp"
#include "scheduler/policy.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

/// What a run is best at.
enum class BestAt : std::uint8_t { kCost, kTime, kCostInTime };

struct BestRun {
  Dollars cost;  ///< hire, electricity and egress, as its bill will be
  Duration length;
  std::string on;  ///< "8 h100"
};

/// The best run of a job that starts now on the fleet of a situation: no other job runs or waits,
/// and neither quota, power nor budget is in its way. kCostInTime: the cheapest that meets its
/// deadline, if any does. None: it does not fit, or nothing is known of its length.
[[nodiscard]] std::optional<BestRun> best_run(const Situation& situation, const PlaceTree& tree,
                                              const JobRequest& request, BestAt what);

/// An amount of two digits, not less: $283.10 gives $290.
[[nodiscard]] Dollars round_up(Dollars amount);

/// "its cheapest placement, 8 h100, costs $283.10; a budget of $290 would do".
[[nodiscard]] std::string budget_text(const BestRun& cheapest);

/// "at its quickest, on 8 h100, it takes 5 h; a deadline of 2026-11-27T15:00:00Z would do".
[[nodiscard]] std::string quickest_text(const BestRun& quickest, Instant now);

/// Whether a job waits for a release or for other jobs, so that its start cannot be foreseen.
enum class HeldBack : std::uint8_t { kNo, kYes };

struct AdmissionAsk {
  const Situation& situation;  ///< where the job waits
  const Policy& policy;
  const PlaceTree& tree;
  FleetView empty;  ///< the fleet as built, or with every device free
  JobId job;
  HeldBack held = HeldBack::kNo;
};

struct Admission {
  std::string refusal;  ///< not even an empty fleet could keep them; else empty
  std::string note;     ///< by what they are kept, or that they are likely not to be
};

/// Both empty: the job has neither, or nothing is known of its length. Precondition: it waits in
/// the situation.
[[nodiscard]] Admission judge_admission(const AdmissionAsk& ask);

}  // namespace orrery
