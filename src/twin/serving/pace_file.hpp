// twin/serving/pace_file.hpp - how fast an engine's steps are, from a file: the log of steps that
// orrery-serve --step-log writes, or the terms themselves.
//
//   time,prefill_tokens,prefill_pairs,decode_sequences,decode_context,seconds
//   {"step_s": 0.006, "sequence_s": 3e-5, "context_token_s": 4e-8, "prompt_token_s": 3e-5}
//
// Functions; pure but for load_pace(). Cost: O(bytes).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/format/field_reader.hpp"
#include "serving/engine_step_fit.hpp"

namespace orrery {

template <class Visitor, SameStruct<EngineStepCost> Self>
void describe(Visitor& visitor, Self& c) {
  visitor.required("step_s", c.step_s);
  visitor.optional("sequence_s", c.sequence_s);
  visitor.optional("context_token_s", c.context_token_s);
  visitor.optional("prompt_token_s", c.prompt_token_s);
  visitor.optional("prompt_pair_s", c.prompt_pair_s);
}

/// A log is fitted to; terms have no samples. Errors with file:line:column: a column missing, a
/// cell that is no number, a term below zero; those of fit_engine_step_cost().
[[nodiscard]] Result<EngineStepFit> read_pace(std::string_view text, const std::string& file);
[[nodiscard]] Result<EngineStepFit> load_pace(const std::string& path);

}  // namespace orrery
