#include "inference/engine/model_files.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/format/document.hpp"
#include "inference/gguf/gguf_model.hpp"
#include "inference/hugging_face/hugging_face_model.hpp"
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

Result<ServedModel> load_checkpoint(const ModelFiles& files) {
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
  std::vector<std::int32_t> ends;
  if (const auto end = (*tokenizer)->end_of_text()) ends.push_back(*end);
  return ServedModel{
      .name = spec->name,
      .origin = fmt::format("orrery-train, step {}", found->reader->manifest().id.step),
      .model = PackedTransformer(layout, parameters,
                                 {.context_max = files.context_max, .weights = files.weights}),
      .tokenizer = std::move(*tokenizer),
      .ends = std::move(ends),
      .passed_over = std::move(found->passed_over)};
}

/// Refuses options that only a checkpoint of orrery-train has.
Status check_options(const ModelFiles& files) {
  const std::string_view option = !files.training.empty()    ? "--training"
                                  : !files.tokenizer.empty() ? "--tokenizer"
                                                             : "";
  if (option.empty()) return {};
  return input_error({}, fmt::format("{} is for checkpoints of orrery-train: {} has a tokenizer of "
                                     "its own",
                                     option, files.checkpoint));
}

}  // namespace

Result<ModelFormat> format_of(const std::string& path) {
  std::error_code failed;
  if (fs::is_directory(path, failed)) {
    const bool has_config = fs::exists(fs::path(path) / "config.json", failed);
    return has_config ? ModelFormat::kHuggingFace : ModelFormat::kCheckpoint;
  }
  if (!fs::is_regular_file(path, failed)) {
    return input_error(
        {}, fmt::format("--checkpoint: {} is no directory and no file{}", path, advice(path)));
  }
  std::array<char, 4> mark{};
  std::ifstream(path, std::ios::binary).read(mark.data(), mark.size());
  if (std::string_view(mark.data(), mark.size()) == "GGUF") return ModelFormat::kGguf;
  return input_error(
      {}, fmt::format("--checkpoint: {} is a file in an unknown format: expected a GGUF file, a "
                      "directory of checkpoints of orrery-train, or one of Hugging Face, with a "
                      "config.json",
                      path));
}

Result<ServedModel> load_served_model(const ModelFiles& files) {
  Result<ModelFormat> format = format_of(files.checkpoint);
  if (!format) return forward_error(format);
  if (*format == ModelFormat::kCheckpoint) return load_checkpoint(files);
  if (Status options = check_options(files); !options) return forward_error(options);
  return *format == ModelFormat::kGguf ? load_gguf_model(files) : load_hugging_face_model(files);
}

}  // namespace orrery
