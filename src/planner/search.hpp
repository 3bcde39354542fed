// planner/search.hpp - the best parallel plans of a training job on a machine.
//
// Plans that differ only in pipeline, data-parallel and state choices share the cost of one layer,
// which is computed once. Plans that do not fit the memory are rejected before anything is priced;
// blocks are then visited in the order of a lower bound, until none can beat the plans found.
// Pure and deterministic: equal scores are ordered by the fields of the plan.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "planner/plan_space.hpp"

namespace orrery {

/// Numbers of complete plans by outcome; `invalid` counts splits that a rule refused.
struct SearchCounters {
  std::uint64_t invalid = 0;
  std::uint64_t enumerated = 0;  ///< the sum of the three below
  std::uint64_t out_of_memory = 0;
  std::uint64_t pruned = 0;  ///< not evaluated: a bound shows they are not among the best
  std::uint64_t evaluated = 0;
};

enum class Effort { kPruned, kExhaustive };

struct SearchOptions {
  std::size_t best = 5;  ///< number of plans wanted
  Effort effort = Effort::kPruned;
  /// The figure to minimise. Empty: seconds of a step.
  std::function<double(const ParallelPlan&, const StepCost&)> score;
  /// The least score of anything that takes at least so many seconds. Precondition: no plan's score
  /// is below it. Empty: the seconds, when `score` is empty; else nothing is pruned.
  std::function<double(double seconds)> floor;
  /// Called from time to time.
  std::function<void(const SearchCounters&)> progress;
};

struct RankedPlan {
  ParallelPlan plan;
  StepCost cost;
  double score = 0;
};

/// The plan that comes closest to fitting when none does.
struct NearestFit {
  ParallelPlan plan;
  TrainingMemory memory;
};

struct SearchResult {
  std::vector<RankedPlan> best;  ///< ascending (score, plan)
  /// Those of the evaluated plans that no other undercuts in both seconds and memory, by ascending
  /// seconds. Complete only after an exhaustive search.
  std::vector<RankedPlan> frontier;
  SearchCounters counters;
  std::optional<NearestFit> nearest;   ///< set when plans exist but none fits the memory
  std::optional<Error> first_refusal;  ///< set when no split obeys the rules
};

/// Order of plans with equal scores: field by field.
[[nodiscard]] std::strong_ordering compare_plans(const ParallelPlan& a, const ParallelPlan& b);

/// A lower bound on the seconds of any plan of `block` with `stages`: the fullest stage's layers
/// for every micro-batch, all communication not hidden within the block, no bubble.
[[nodiscard]] double step_floor(const TrainingModel& model, const ParallelPlan& plan,
                                const BlockCosts& block);

/// Options.best 0 finds no plan. Cost: a few microseconds a block and under a microsecond a plan
/// that fits.
[[nodiscard]] SearchResult search(const TrainingModel& model, const PlanSpace& space,
                                  const SearchOptions& options);

}  // namespace orrery
