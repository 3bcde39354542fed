// verbs/study/study_verb.hpp - the verb `study`: runs `simulate` or `plan` over a grid of options.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "verbs/command_options.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

struct StudyCall {
  std::string file;
  std::string out;
  std::uint32_t jobs = 0;   ///< 0: as many as there are cores
  std::uint32_t cells = 0;  ///< 0: all
};

/// Called after each cell, from any thread but never from two at a time.
using StudyProgress = std::function<void(std::size_t done, std::size_t cells)>;

/// Runs the cells and writes the files of `out`. A cell that fails is part of the answer. Errors:
/// those of the study file, with their line; of writing.
[[nodiscard]] Result<VerbAnswer> study(const CommandOptions& options, const StudyCall& call,
                                       const StudyProgress& progress);

}  // namespace orrery
