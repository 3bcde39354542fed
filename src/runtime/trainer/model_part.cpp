#include "runtime/trainer/model_part.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace orrery {
namespace {

/// Inner columns are whole vectors of the kernels.
constexpr std::int64_t kInnerMultiple = 16;

}  // namespace

Status check_parts(const TransformerConfig& config, const ModelPart& part) {
  if (part.tensor_ranks == 0) return input_error(config.where, "layout.tp: at least 1");
  if (part.stages == 0) return input_error(config.where, "layout.pp: at least 1");
  if (config.layers % part.stages != 0) {
    return input_error(config.where, fmt::format("layout.pp: {} layers are not {} equal stages",
                                                 config.layers, part.stages));
  }
  const std::int64_t ranks = part.tensor_ranks;
  struct Shared {
    std::string_view what;
    std::int64_t count;
    std::int64_t multiple;
  };
  const std::array<Shared, 3> shared{{{"heads", config.heads, 1},
                                      {"key-value heads", config.key_value_heads(), 1},
                                      {"inner columns", config.inner_width(), kInnerMultiple}}};
  for (const Shared& each : shared) {
    if (each.count % (ranks * each.multiple) == 0 || ranks == 1) continue;
    const std::string parts = each.multiple == 1
                                  ? "equal parts"
                                  : fmt::format("parts of a multiple of {}", each.multiple);
    return input_error(config.where, fmt::format("layout.tp: {} {} are not {} {}", each.count,
                                                 each.what, ranks, parts));
  }
  return {};
}

}  // namespace orrery
