// planner/planner.hpp - how to split a training job, and on which of several machines: ranked plans
// with their price, joules and interval, or why there is none.
//
// Joins search (planner/search.hpp) and economics (planner/economics.hpp) over every machine in
// question. Pure and deterministic; the facts and the question's model must outlive the answer.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/economics.hpp"
#include "planner/job_defaults.hpp"
#include "planner/search.hpp"

namespace orrery {

enum class Objective {
  kTime,
  kCost,
  kEnergy,
  kTimeUnderBudget,  ///< the fastest whose whole run costs no more than the budget
};

inline std::array<EnumWord<Objective>, 4> enum_words(Objective) {
  return {{{"time", Objective::kTime},
           {"cost", Objective::kCost},
           {"energy", Objective::kEnergy},
           {"time-under-budget", Objective::kTimeUnderBudget}}};
}

/// One machine on which the job might run.
struct MachineChoice {
  std::string label;
  Machine machine;
  std::optional<MachineRequest>
      request;  ///< the request it was made from; allows larger variants to be tried
  EconomicsOptions economics;
};

struct PlanQuestion {
  TrainingJob job;
  std::vector<MachineChoice> machines;
  PlanSpace space;  ///< each machine has its own tp_max
  Objective objective = Objective::kTime;
  std::optional<Dollars> budget;  ///< of the whole run
  std::optional<double> run;      ///< length of the whole run; none: run_length_of()'s
  std::size_t best = 5;
  Effort effort = Effort::kPruned;
  std::function<void(const SearchCounters&)> progress;  ///< counts of all machines so far
};

struct PlanOffer {
  std::size_t machine = 0;  ///< position in PlanQuestion::machines
  ParallelPlan plan;
  StepCost cost;
  double seconds_low = 0;   ///< 10th percentile of the prediction
  double seconds_high = 0;  ///< 90th
  double mfu = 0;           ///< over the dense 16-bit peak, for every precision
  double format_mfu = 0;    ///< over the dense peak of the job's format
  PlanQuote quote;
  double score = 0;  ///< seconds, dollars or joules of a step, by the objective
};

/// Why a machine has no plan.
struct MachineRefusal {
  std::size_t machine = 0;
  Error why;
};

struct PlanAnswer {
  std::vector<PlanOffer> plans;  ///< best first
  /// Those of all plans found that no other beats in step time, dollars and joules at once.
  std::vector<PlanOffer> pareto;
  std::vector<MachineRefusal> refused;
  SearchCounters counters;
  RunLength run;
  std::vector<std::string> assumptions;
};

/// Errors: no machine has a plan, with the binding limit and the smallest changes that help (one
/// machine) or each machine's reason; a budget that no plan meets; an objective whose figure is not
/// published.
[[nodiscard]] Result<PlanAnswer> plan(const PlannerFacts& facts, const PlanQuestion& question);

/// A term in which two steps differ.
struct TermDifference {
  Term term = Term::kMatmul;
  double seconds = 0;  ///< by which the other step's term is longer
};

/// Terms ordered by how much they contribute to the difference of two steps, largest first.
[[nodiscard]] std::vector<TermDifference> differences(const Breakdown& one, const Breakdown& other);

}  // namespace orrery
