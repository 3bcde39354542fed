// scheduler/admission.hpp - whether a job's deadline and budget can be kept, and on which
// placement.
//
// Used when a job is submitted, and by explain(). On a fleet where nothing runs the answer is
// certain, as far as lengths are known; on a busy one it is a forecast. Pure. Cost: three
// placements, and a forecast (scheduler/forecast/start_forecast.hpp).
#pragma once

#include <optional>
#include <string>

#include "scheduler/place/place_tree.hpp"
#include "scheduler/policy.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

/// What the best run minimizes.
enum class BestAt : std::uint8_t { kCost, kTime, kCostInTime };

struct BestRun {
  Dollars cost;  ///< hire, electricity and egress, as on its bill
  Duration length;
  std::string on;  ///< "8 h100"
};

/// The best run of a job that starts now on the fleet of a situation: no other job runs or waits,
/// and quota, power and budget do not limit it. kCostInTime: the cheapest run that meets the
/// deadline, if any does. None: the job does not fit, or its length is not known.
[[nodiscard]] std::optional<BestRun> best_run(const Situation& situation, const PlaceTree& tree,
                                              const JobRequest& request, BestAt what);

/// Rounds an amount up to two digits: $283.10 gives $290.
[[nodiscard]] Dollars round_up(Dollars amount);

/// Returns, for example, "its cheapest placement, 8 h100, costs $283.10; a budget of $290 would
/// do".
[[nodiscard]] std::string budget_text(const BestRun& cheapest);

/// Returns, for example, "at its quickest, on 8 h100, it takes 5 h; a deadline of
/// 2026-11-27T15:00:00Z would do".
[[nodiscard]] std::string quickest_text(const BestRun& quickest, Instant now);

/// Whether a job waits for a release or for other jobs, so that its start cannot be foreseen.
enum class HeldBack : std::uint8_t { kNo, kYes };

struct AdmissionAsk {
  const Situation& situation;  ///< the situation in which the job waits
  const Policy& policy;
  const PlaceTree& tree;
  FleetView empty;  ///< the fleet as built, or with every device free
  JobId job;
  HeldBack held = HeldBack::kNo;
};

struct Admission {
  std::string refusal;  ///< why not even an empty fleet could keep them; else empty
  std::string note;     ///< which run keeps them, or that they are likely to be missed
};

/// Both texts are empty if the job has neither a deadline nor a budget, or if its length is not
/// known. Precondition: it waits in the situation.
[[nodiscard]] Admission judge_admission(const AdmissionAsk& ask);

}  // namespace orrery
