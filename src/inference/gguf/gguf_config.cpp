#include "inference/gguf/gguf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "inference/formats/rope_scaling.hpp"

namespace orrery {
namespace {

constexpr GgufFields::Range kWidths{.low = 1, .high = 1 << 20};
constexpr std::string_view kRopeFactors = "rope_freqs.weight";

const GgufTensor* find_tensor(const GgufFile& file, std::string_view name) {
  const auto found = std::ranges::find(file.tensors(), name, &GgufTensor::name);
  return found == file.tensors().end() ? nullptr : &*found;
}

/// Reads by how much each pair is slowed down, which a tensor has for Llama 3.
Status read_rope_tensor(const GgufFile& file, const GgufTensor& tensor, DescribedModel& model) {
  const auto half = static_cast<std::uint64_t>(model.config.head_width() / 2);
  std::vector<float> slowdown(half);
  const bool fits =
      tensor.encoding == TensorEncoding::kF32 && tensor.shape == std::vector<std::uint64_t>{half};
  if (fits) decode_weights(tensor.encoding, tensor.bytes, slowdown);
  if (!fits || !std::ranges::all_of(slowdown, [](float by) { return by >= 1 && by < 1e6F; })) {
    return input_error({file.file()}, fmt::format("tensor \"{}\": expected {} floats of 1 or more",
                                                  kRopeFactors, half));
  }
  model.variant.rotary_factors.clear();
  for (const float by : slowdown) model.variant.rotary_factors.push_back(1 / double{by});
  return {};
}

void read_rope(GgufFields& fields, DescribedModel& model) {
  TransformerConfig& config = model.config;
  config.rope_base = fields.number("llama.rope.freq_base", {.low = 1.001, .high = 1e12},
                                   TransformerConfig{}.rope_base);
  const std::int64_t head_width = config.head_width();
  const auto require_head = [&](const char* key) {
    if (fields.whole(key, kWidths, head_width) == head_width) return;
    fields.refuse(key, fmt::format("{}, the embedding_length over the head_count", head_width));
  };
  require_head("llama.rope.dimension_count");
  require_head("llama.attention.key_length");
  require_head("llama.attention.value_length");
  const std::string scaling = fields.text("llama.rope.scaling.type", "none");
  if (scaling == "linear") {
    const double factor =
        fields.number("llama.rope.scaling.factor", {.low = 1, .high = 1e6}, std::nullopt);
    model.variant.rotary_factors =
        linear_rope_factors({.half = head_width / 2, .base = config.rope_base}, factor);
  } else if (scaling != "none") {
    fields.refuse("llama.rope.scaling.type", "\"none\" or \"linear\"");
  }
}

}  // namespace

Result<DescribedModel> read_gguf_config(GgufFields& fields) {
  if (fields.text("general.architecture", std::nullopt) != "llama") {
    fields.refuse("general.architecture", "\"llama\"");
  }
  if (fields.whole("llama.expert_count", {.low = 0, .high = 1 << 20}, 0) != 0) {
    fields.refuse("llama.expert_count", "0: mixtures of experts are not served");
  }
  DescribedModel model{.config = {.family = TransformerFamily::kLlama}};
  TransformerConfig& config = model.config;
  config.layers = fields.whole("llama.block_count", kWidths, std::nullopt);
  config.width = fields.whole("llama.embedding_length", kWidths, std::nullopt);
  config.heads = fields.whole("llama.attention.head_count", kWidths, std::nullopt);
  config.kv_heads = fields.whole("llama.attention.head_count_kv", kWidths, config.heads);
  config.ffn = fields.whole("llama.feed_forward_length", kWidths, std::nullopt);
  model.context = fields.whole("llama.context_length", {.low = 1, .high = 1 << 30}, std::nullopt);
  model.variant.norm_epsilon = static_cast<float>(
      fields.number("llama.attention.layer_norm_rms_epsilon", {.low = 0, .high = 1}, std::nullopt));
  read_rope(fields, model);
  if (!fields.status()) return forward_error(fields.status());
  const GgufFile& file = fields.file();
  const GgufTensor* embedding = find_tensor(file, "token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    return input_error({file.file()}, "expected a tensor \"token_embd.weight\" with two extents");
  }
  config.vocab = static_cast<std::int64_t>(
      std::min<std::uint64_t>(embedding->shape.front(), std::uint64_t{1} << 30));
  config.tied_embedding = find_tensor(file, "output.weight") == nullptr;
  if (const GgufTensor* factors = find_tensor(file, kRopeFactors)) {
    if (Status read = read_rope_tensor(file, *factors, model); !read) return forward_error(read);
  }
  return checked_model(std::move(model), file.file());
}

}  // namespace orrery
