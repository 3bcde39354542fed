// inference/engine/model_files.hpp - loads a model from files: the newest good checkpoint of
// orrery-train with its training spec and tokenizer, a directory of Hugging Face, or a GGUF file.
//
// Called once at the start of a server, on any thread. Blocks on the disk. Cost: reading a
// checkpoint twice, once to check it and once for its weights, or a file's weights once.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "base/format/field_reader.hpp"
#include "inference/engine/served_model.hpp"

namespace orrery {

constexpr std::array<EnumWord<WeightFormat>, 3> enum_words(WeightFormat) {
  return {
      {{"f32", WeightFormat::kF32}, {"bf16", WeightFormat::kBf16}, {"int8", WeightFormat::kInt8}}};
}

struct ModelFiles {
  std::string checkpoint;  ///< directory of checkpoints or of Hugging Face, or a GGUF file
  /// The training spec (kind: Training) of a checkpoint; "": training.yaml in the directory or in
  /// the one above.
  std::string training;
  /// A file with the SentencePiece model of a checkpoint; "": data.tokenizer of the spec.
  std::string tokenizer;
  std::int64_t context_max = 0;  ///< tokens of the longest text; 0: as many as the model has
  WeightFormat weights = WeightFormat::kF32;  ///< in which the engine keeps them
};

enum class ModelFormat : std::uint8_t { kCheckpoint, kHuggingFace, kGguf };

/// Returns the format of what is there: a file with the mark of GGUF or a directory with a
/// config.json; every other directory is one of checkpoints. Errors: neither file nor directory, a
/// file in another format.
[[nodiscard]] Result<ModelFormat> format_of(const std::string& path);

/// Errors name the file: nothing is there, no spec, no valid checkpoint, a checkpoint of another
/// model or of other tokens, a model that the engine does not serve, options of another format.
[[nodiscard]] Result<ServedModel> load_served_model(const ModelFiles& files);

}  // namespace orrery
