// inference/engine/model_files.hpp - loads a model that orrery-train trained: its newest good
// checkpoint, its training spec and its tokenizer.
//
// Called once at the start of a server, on any thread. Blocks on the disk. Cost: reading one
// checkpoint twice, once to check it and once for its weights.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "inference/engine/packed_transformer.hpp"
#include "tokens/tokenizer.hpp"

namespace orrery {

struct ModelFiles {
  std::string checkpoint;  ///< directory of checkpoints
  /// The training spec (kind: Training); "": training.yaml in the directory or in the one above.
  std::string training;
  std::string tokenizer;  ///< a file with a SentencePiece model; "": data.tokenizer of the spec
};

struct ServedModel {
  std::string name;  ///< of the spec
  PackedTransformer model;
  std::unique_ptr<Tokenizer> tokenizer;
  std::uint64_t step = 0;                ///< of the checkpoint
  std::vector<std::string> passed_over;  ///< why newer checkpoints were rejected
};

/// Errors name the file: no directory, no spec, no valid checkpoint, a checkpoint of another model
/// or of other tokens, a model that the engine does not serve.
[[nodiscard]] Result<ServedModel> load_served_model(const ModelFiles& files);

}  // namespace orrery
