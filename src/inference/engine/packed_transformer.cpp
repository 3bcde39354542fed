#include "inference/engine/packed_transformer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/assert.hpp"

namespace orrery {
namespace {

AlignedFloats copied(std::span<const float> parameters, std::size_t begin, std::int64_t count) {
  const auto part = parameters.subspan(begin, static_cast<std::size_t>(count));
  return {part.begin(), part.end()};
}

PackedNorm packed(std::span<const float> parameters, const NormParameters& norm,
                  std::int64_t width) {
  PackedNorm result{.weight = copied(parameters, norm.weight, width)};
  if (norm.bias) result.bias = copied(parameters, *norm.bias, width);
  return result;
}

}  // namespace

PackedTransformer::PackedTransformer(const ParameterLayout& layout,
                                     std::span<const float> parameters, const ModelVariant& variant)
    : config_(layout.config()),
      token_embedding_(copied(parameters, layout.token_embedding(), config_.vocab * config_.width)),
      final_norm_(packed(parameters, layout.final_norm(), config_.width)),
      head_(parameters, layout.head(), variant.weights),
      norm_epsilon_(variant.norm_epsilon),
      weights_(layout.trained()) {
  ORRERY_ASSERT(layout.part().whole(), "the engine computes whole models");
  ORRERY_ASSERT(config_.experts == 0, "the model is servable");
  ORRERY_ASSERT(parameters.size() == layout.size(), "the parameters are the layout's");
  if (const auto positions = layout.position_embedding()) {
    position_embedding_ = copied(parameters, *positions, config_.sequence * config_.width);
  }
  const auto linear = [&](const LinearParameters& matrix) {
    return PackedLinear(parameters, matrix, variant.weights);
  };
  for (const BlockParameters& block : layout.blocks()) {
    blocks_.push_back({.attention_norm = packed(parameters, block.attention_norm, config_.width),
                       .qkv = linear(block.qkv),
                       .attention_out = linear(block.attention_out),
                       .ffn_norm = packed(parameters, block.ffn_norm, config_.width),
                       .up = linear(block.up),
                       .down = linear(block.down)});
  }
  if (variant.context_max > 0) {
    config_.sequence = std::min(config_.sequence, variant.context_max);
  }
  if (config_.family == TransformerFamily::kLlama) {
    rotary_ = rotary_table({.positions = config_.sequence,
                            .half = config_.head_width() / 2,
                            .base = config_.rope_base,
                            .factors = variant.rotary_factors});
  }
}

Status check_servable(const TransformerConfig& config) {
  if (config.experts == 0) return {};
  return input_error(config.where,
                     fmt::format("\"experts\" is {}: orrery-serve serves models without experts; "
                                 "see `orrery-train --generate` for text of this one",
                                 config.experts));
}

}  // namespace orrery
