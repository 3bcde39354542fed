// verbs/compare/compare_answer.hpp - the answer of `orrery compare`: the best plan on each of
// several machines, beside each other.
#pragma once

#include <string>
#include <vector>

#include "verbs/compare/benchmark_answer.hpp"
#include "verbs/plan/plan_request.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

struct CompareCall {
  PlanOptions options;
  std::vector<std::string> fleets;  ///< files of fleet specs
  BenchmarkQuestion benchmark;
};

/// One type or fleet, and its best plan or why it has none.
struct Contender {
  std::string name;
  PlanRequest request;
  Result<PlanAnswer> answer;

  /// Null: it has no plan.
  [[nodiscard]] const PlanOffer* best() const { return answer ? &answer->plans.front() : nullptr; }
  /// Precondition: it has a plan.
  [[nodiscard]] const MachineChoice& machine() const {
    return request.question.machines[best()->machine];
  }
};

/// Shows a row per contender that has a plan, then how each differs from the first of them or why
/// it has none. Precondition: there is a contender.
[[nodiscard]] VerbAnswer contenders_answer(const std::vector<Contender>& contenders);

/// Compares types and fleets for one workload, all with the global batch of the first, or where
/// the call names a benchmark, measurements with predictions. Errors: fewer than two machines; no
/// machine has a plan, with the reason of the first; those of plan_request() and
/// report_benchmark().
[[nodiscard]] Result<VerbAnswer> report_comparison(const CommandOptions& options,
                                                   const CompareCall& call);

}  // namespace orrery
