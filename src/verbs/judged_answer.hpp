// verbs/judged_answer.hpp - an answer that is shown even where the verb then fails.
#pragma once

#include "base/error.hpp"
#include "report/verb_answer.hpp"

namespace orrery {

/// What a verb shows, and whether it then succeeds: a check that finds damage shows what it found
/// and fails. A printer shows the answer first.
struct JudgedAnswer {
  VerbAnswer shown;
  Status verdict = {};
};

}  // namespace orrery
