// apps/orrery/judged_output.hpp - prints what a question of `src/verbs` answers, and turns it into
// the outcome of the verb.
#pragma once

#include "apps/orrery/output.hpp"
#include "verbs/judged_answer.hpp"

namespace orrery {

/// Prints the answer, or passes its error on.
[[nodiscard]] inline Status print_judged(const CommandOptions& options,
                                         const Result<VerbAnswer>& answer) {
  if (!answer) return tl::unexpected(answer.error());
  print_answer(options, *answer);
  return {};
}

/// Prints the answer, which may then be a failure, or passes its error on.
[[nodiscard]] inline Status print_judged(const CommandOptions& options,
                                         const Result<JudgedAnswer>& answer) {
  if (!answer) return tl::unexpected(answer.error());
  print_answer(options, answer->shown);
  return answer->verdict;
}

}  // namespace orrery
