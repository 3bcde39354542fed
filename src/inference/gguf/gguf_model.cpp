#include "inference/gguf/gguf_model.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "inference/gguf/gguf_config.hpp"
#include "inference/gguf/gguf_tokenizer.hpp"
#include "inference/gguf/gguf_weights.hpp"
#include "inference/gguf/mapped_file.hpp"

namespace orrery {

Result<ServedModel> load_gguf_model(const ModelFiles& files) {
  const std::string& path = files.checkpoint;
  Result<MappedFile> mapped = MappedFile::open(path);
  if (!mapped) return forward_error(mapped);
  Result<GgufFile> file = GgufFile::parse(mapped->bytes(), path);
  if (!file) return forward_error(file);
  GgufFields fields(*file);
  Result<DescribedModel> described = read_gguf_config(fields);
  if (!described) return forward_error(described);
  Result<GgufText> text = read_gguf_text(fields);
  if (!text) return forward_error(text);
  if (text->tokenizer.kinds() > described->config.vocab) {
    return input_error({path}, fmt::format("{} tokens, expected at most the {} rows of "
                                           "token_embd.weight",
                                           text->tokenizer.kinds(), described->config.vocab));
  }
  described->variant.context_max = files.context_max;
  described->variant.weights = files.weights;
  GgufWeights weights(*file, described->config);
  const ParameterLayout layout(described->config);
  Result<AlignedFloats> parameters = read_parameters(
      layout, weights,
      {.stored = [](const std::string& name) { return gguf_name(name); },
       .ignored = [](std::string_view name) { return name == "rope_freqs.weight"; }});
  if (!parameters) return forward_error(parameters);
  return ServedModel{.name = std::filesystem::path(path).stem().string(),
                     .origin = fmt::format("GGUF {}, {}", file->version(), main_encoding(weights)),
                     .model = PackedTransformer(layout, *parameters, described->variant),
                     .tokenizer = std::make_unique<BpeTokenizer>(std::move(text->tokenizer)),
                     .ends = std::move(text->ends),
                     .chat = std::move(text->chat)};
}

}  // namespace orrery
