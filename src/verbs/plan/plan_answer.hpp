// verbs/plan/plan_answer.hpp - the answer of `orrery plan`: ranked plans, or the best one as the
// options of a training program.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "planner/launch/launch_flags.hpp"
#include "verbs/plan/plan_request.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

enum class Sensitive { kNo, kYes };

struct PlanCall {
  PlanOptions options;
  std::string html;              ///< file to write the plans to as a page; empty: none
  std::optional<Launcher> emit;  ///< the program whose options to show in place of the plans
  Sensitive sensitivity = Sensitive::kNo;
  std::function<void(const SearchCounters&)> progress;  ///< called while it searches; may be empty
};

/// Plans, writes the page, and shows the plans or the options of `emit`; the text of the latter is
/// to be printed byte for byte. With `emit` and no --runtime, only layouts that the program can run
/// are tried. Errors: those of plan_request(), plan() and launch_text(); a file that cannot be
/// written.
[[nodiscard]] Result<VerbAnswer> report_plan(const CommandOptions& options, const PlanCall& call);

}  // namespace orrery
