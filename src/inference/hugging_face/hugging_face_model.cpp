#include "inference/hugging_face/hugging_face_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "inference/hugging_face/hugging_face_config.hpp"
#include "inference/hugging_face/hugging_face_weights.hpp"
#include "inference/hugging_face/json_fields.hpp"
#include "tokens/bpe_tokenizer.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

/// The files of a directory.
class HubDirectory {
 public:
  explicit HubDirectory(const std::string& path) : path_(path) {}

  [[nodiscard]] std::string path(const char* file) const { return (path_ / file).string(); }
  [[nodiscard]] bool has(const char* file) const {
    std::error_code failed;
    return fs::exists(path_ / file, failed);
  }
  /// Returns a file's object; an empty one where it may be missing and is.
  [[nodiscard]] Result<nlohmann::json> object(const char* file) const {
    return has(file) ? read_json_object(path(file)) : nlohmann::json::object();
  }
  [[nodiscard]] std::string name() const {
    std::error_code failed;
    const fs::path whole = fs::absolute(path_, failed).lexically_normal();
    return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  }

 private:
  fs::path path_;
};

/// Returns the tokens that end a text: those of generation_config.json or else config.json, and
/// the tokenizer's.
Result<std::vector<std::int32_t>> read_ends(const HubDirectory& files, const nlohmann::json& config,
                                            std::int64_t vocab) {
  Result<nlohmann::json> generation = files.object("generation_config.json");
  if (!generation) return forward_error(generation);
  JsonFields of_generation(*generation, files.path("generation_config.json"));
  std::vector<std::int32_t> ends = of_generation.tokens("eos_token_id", vocab);
  if (!of_generation.status()) return forward_error(of_generation.status());
  if (!ends.empty()) return ends;
  JsonFields of_config(config, files.path("config.json"));
  ends = of_config.tokens("eos_token_id", vocab);
  if (!of_config.status()) return forward_error(of_config.status());
  return ends;
}

/// What a directory says beside the weights.
struct HubText {
  BpeTokenizer tokenizer;
  std::vector<std::int32_t> ends;
  std::optional<ModelChat> chat;
};

Result<HubText> read_text(const HubDirectory& files, const nlohmann::json& config,
                          std::int64_t vocab) {
  Result<BpeTokenizer> tokenizer = BpeTokenizer::open(files.path("tokenizer.json"));
  if (!tokenizer) return forward_error(tokenizer);
  if (tokenizer->kinds() > vocab) {
    return input_error({files.path("tokenizer.json")},
                       fmt::format("{} tokens, expected at most the {} of \"vocab_size\"",
                                   tokenizer->kinds(), vocab));
  }
  Result<nlohmann::json> tokens = files.object("tokenizer_config.json");
  if (!tokens) return forward_error(tokens);
  Result<std::vector<std::int32_t>> ends = read_ends(files, config, vocab);
  if (!ends) return forward_error(ends);
  HubText text{.tokenizer = *std::move(tokenizer), .ends = *std::move(ends), .chat = {}};
  const std::optional<std::int32_t> named =
      text.tokenizer.named(configured_token(*tokens, "eos_token"));
  if (named && std::ranges::find(text.ends, *named) == text.ends.end()) {
    text.ends.push_back(*named);
  }
  if (const auto end = text.tokenizer.end_of_text(); end && text.ends.empty()) {
    text.ends.push_back(*end);
  }
  Result<std::optional<ModelChat>> chat = read_model_chat(files.path(""), *tokens);
  if (!chat) return forward_error(chat);
  text.chat = *std::move(chat);
  return text;
}

/// gpt2 itself is stored without the name of its outermost module, later ones with it; buffers of
/// earlier versions of the library are no weights.
TensorNaming naming_of(const WeightSource& source, const TransformerConfig& config) {
  const std::string_view outer = "transformer.";
  const bool bare = config.family == TransformerFamily::kGpt &&
                    std::ranges::none_of(source.tensors(), [&](const StoredTensor& tensor) {
                      return tensor.name.starts_with(outer);
                    });
  const bool tied = config.tied_embedding;
  return {.stored =
              [=](const std::string& name) {
                return bare && name.starts_with(outer) ? name.substr(outer.size()) : name;
              },
          .ignored =
              [=](std::string_view name) {
                return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
                       name.ends_with(".rotary_emb.inv_freq") || (tied && name == "lm_head.weight");
              }};
}

}  // namespace

Result<ServedModel> load_hugging_face_model(const ModelFiles& asked) {
  const HubDirectory files(asked.checkpoint);
  Result<nlohmann::json> config = read_json_object(files.path("config.json"));
  if (!config) return forward_error(config);
  Result<DescribedModel> described = read_hugging_face_config(*config, files.path("config.json"));
  if (!described) return forward_error(described);
  described->variant.context_max = asked.context_max;
  described->variant.weights = asked.weights;
  Result<HubText> text = read_text(files, *config, described->config.vocab);
  if (!text) return forward_error(text);
  Result<std::unique_ptr<HuggingFaceWeights>> weights = HuggingFaceWeights::open(asked.checkpoint);
  if (!weights) return forward_error(weights);
  const ParameterLayout layout(described->config);
  Result<AlignedFloats> parameters =
      read_parameters(layout, **weights, naming_of(**weights, described->config));
  if (!parameters) return forward_error(parameters);
  return ServedModel{.name = files.name(),
                     .origin = fmt::format("Hugging Face, {}", main_encoding(**weights)),
                     .model = PackedTransformer(layout, *parameters, described->variant),
                     .tokenizer = std::make_unique<BpeTokenizer>(std::move(text->tokenizer)),
                     .ends = std::move(text->ends),
                     .chat = std::move(text->chat)};
}

}  // namespace orrery
