// sentencepiece/training_tokenizer.hpp - the tokenizer that a training spec names.
//
// Opened by what trains or serves the spec's model. Cost: the file is read once, and the library's
// tables are built.
#pragma once

#include <memory>

#include "base/error.hpp"
#include "runtime/training/training_spec.hpp"
#include "tokens/tokenizer.hpp"

namespace orrery {

/// Opens the tokenizer of the spec, bytes where it names none. It must fit the spec's vocabulary
/// and the tokenizer of saved tokens and checkpoints.
[[nodiscard]] Result<std::unique_ptr<Tokenizer>> open_training_tokenizer(const TrainingSpec& spec);

}  // namespace orrery
