#include "inference/engine/model_files.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/format/document.hpp"
#include "runtime/checkpoint/checkpoint_reader.hpp"
#include "runtime/kernels/aligned_floats.hpp"
#include "runtime/training/saved_weights.hpp"
#include "runtime/training/training_spec.hpp"
#include "sentencepiece/training_tokenizer.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

/// Advice for the directory that scripts/quickstart makes.
std::string_view advice(const std::string& directory) {
  return directory.find("quickstart") == std::string::npos ? "" : ": run scripts/quickstart first";
}

Result<std::string> find_spec(const ModelFiles& files) {
  if (!files.training.empty()) return files.training;
  std::error_code failed;
  const fs::path directory = fs::absolute(files.checkpoint, failed).lexically_normal();
  const fs::path slashless = directory.has_filename() ? directory : directory.parent_path();
  for (const fs::path& each : {slashless, slashless.parent_path()}) {
    if (fs::exists(each / "training.yaml", failed)) return (each / "training.yaml").string();
  }
  return input_error({},
                     fmt::format("--training: expected the file that {} was trained with (kind: "
                                 "Training); there is no training.yaml in it or above it",
                                 files.checkpoint));
}

Result<TrainingSpec> read_spec(const ModelFiles& files) {
  Result<std::string> path = find_spec(files);
  if (!path) return forward_error(path);
  Result<std::string> bytes = read_file(*path, Document::kSizeMax);
  if (!bytes) return forward_error(bytes);
  Result<Document> document = Document::parse(*bytes, *path);
  if (!document) return forward_error(document);
  Result<TrainingSpec> spec = read_training_spec(*document);
  if (!spec) return spec;
  spec->checkpoint.directory = files.checkpoint;
  if (!files.tokenizer.empty()) spec->data.tokenizer = files.tokenizer;
  return spec;
}

}  // namespace

Result<ServedModel> load_served_model(const ModelFiles& files) {
  std::error_code failed;
  if (!fs::is_directory(files.checkpoint, failed)) {
    return input_error({}, fmt::format("--checkpoint: {} is no directory{}", files.checkpoint,
                                       advice(files.checkpoint)));
  }
  Result<TrainingSpec> spec = read_spec(files);
  if (!spec) return forward_error(spec);
  if (Status servable = check_servable(spec->model); !servable) return forward_error(servable);
  Result<std::unique_ptr<Tokenizer>> tokenizer = open_training_tokenizer(*spec);
  if (!tokenizer) return forward_error(tokenizer);
  Result<FoundCheckpoint> found = open_newest_good(files.checkpoint);
  if (!found) return forward_error(found);
  if (!found->reader) {
    const std::string why = found->passed_over.empty() ? "" : " (" + found->passed_over[0] + ")";
    return environment_error(fmt::format("--checkpoint: {} has no valid checkpoint{}{}",
                                         files.checkpoint, why, advice(files.checkpoint)));
  }
  const ParameterLayout layout(spec->model);
  AlignedFloats parameters(layout.size());
  if (Status read = read_weights(*found->reader, layout, parameters); !read) {
    return forward_error(read);
  }
  return ServedModel{.name = spec->name,
                     .model = PackedTransformer(layout, parameters),
                     .tokenizer = std::move(*tokenizer),
                     .step = found->reader->manifest().id.step,
                     .passed_over = std::move(found->passed_over)};
}

}  // namespace orrery
