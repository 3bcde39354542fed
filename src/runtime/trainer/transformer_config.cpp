#include "runtime/trainer/transformer_config.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace orrery {
namespace {

/// Rows are whole vectors of the kernels, and tensors of a layer that are stored side by side form
/// one matrix.
constexpr std::int64_t kRowMultiple = 16;
constexpr std::int64_t kExpertsMax = 1'024;

struct SizeRange {
  std::string_view key;
  std::int64_t value;
  std::int64_t low;
  std::int64_t high;
};

Status check_sizes(const TransformerConfig& config) {
  const std::int64_t chosen_max = config.experts == 0 ? kExpertsMax : config.experts;
  const std::array<SizeRange, 9> sizes{
      {{"layers", config.layers, 1, 1'000},
       {"width", config.width, kRowMultiple, 65'536},
       {"heads", config.heads, 1, 1'024},
       {"kv_heads", config.kv_heads, 0, 1'024},
       {"ffn", config.ffn, 0, 1 << 20},
       {"experts", config.experts, 0, kExpertsMax},
       {"experts_per_token", config.experts_per_token, 1, chosen_max},
       {"vocab", config.vocab, 2, 1 << 20},
       {"sequence", config.sequence, 1, 1 << 16}}};
  for (const SizeRange& size : sizes) {
    if (size.value >= size.low && size.value <= size.high) continue;
    return input_error(config.where, fmt::format("\"{}\" is {}, expected {} to {}", size.key,
                                                 size.value, size.low, size.high));
  }
  return {};
}

Status check_multiple(const TransformerConfig& config, std::string_view key, std::int64_t value) {
  if (value % kRowMultiple == 0) return {};
  return input_error(
      config.where,
      fmt::format("\"{}\" is {}, expected a multiple of {}: {} or {}", key, value, kRowMultiple,
                  value - value % kRowMultiple, value + kRowMultiple - value % kRowMultiple));
}

}  // namespace

Status check(const TransformerConfig& config) {
  if (Status sizes = check_sizes(config); !sizes) return sizes;
  if (Status width = check_multiple(config, "width", config.width); !width) return width;
  if (Status ffn = check_multiple(config, "ffn", config.ffn); !ffn) return ffn;
  if (!(config.router_loss >= 0 && config.router_loss <= 1'000)) {
    return input_error(
        config.where, fmt::format("\"router_loss\" is {}, expected 0 to 1000", config.router_loss));
  }
  if (config.width % config.heads != 0) {
    return input_error(config.where,
                       fmt::format("\"heads\" is {}, which does not divide the width {}",
                                   config.heads, config.width));
  }
  if (config.heads % config.key_value_heads() != 0) {
    return input_error(config.where,
                       fmt::format("\"kv_heads\" is {}, which does not divide {} heads",
                                   config.kv_heads, config.heads));
  }
  if (config.family == TransformerFamily::kGpt) {
    if (config.key_value_heads() == config.heads) return {};
    return input_error(config.where,
                       "\"kv_heads\" is for the family llama; a gpt has one key and "
                       "value head for each head of queries");
  }
  if (config.head_width() % 2 != 0) {
    return input_error(config.where,
                       fmt::format("a head has {} elements, expected an even number: rotary "
                                   "positions turn pairs",
                                   config.head_width()));
  }
  if (!(config.rope_base > 1)) {
    return input_error(config.where,
                       fmt::format("\"rope_base\" is {}, expected more than 1", config.rope_base));
  }
  return {};
}

}  // namespace orrery
