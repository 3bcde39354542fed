#include "runtime/trainer/model_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace orrery {
namespace {

/// Inner columns are whole vectors of the kernels.
constexpr std::int64_t kInnerMultiple = 16;

/// Checks the experts of a part that has at least one rank and stage.
Status check_experts(const TransformerConfig& config, const ModelPart& part) {
  const std::uint32_t groups = part.expert_ranks;
  if (groups == 0) return input_error(config.where, "layout.ep: at least 1");
  if (groups == 1) return {};
  if (config.experts == 0) {
    return input_error(
        config.where,
        fmt::format("layout.ep: expected 1, found {}: the model has no experts", groups));
  }
  if (part.tensor_ranks % groups != 0) {
    return input_error(config.where, fmt::format("layout.ep: the {} ranks of tp are not {} groups",
                                                 part.tensor_ranks, groups));
  }
  if (config.experts % groups == 0) return {};
  return input_error(config.where, fmt::format("layout.ep: {} experts are not {} equal parts",
                                               config.experts, groups));
}

/// Checks the chunks of a part whose stages are equal.
Status check_chunks(const TransformerConfig& config, const ModelPart& part) {
  if (part.chunks == 0) return input_error(config.where, "layout.vpp: at least 1");
  if (part.chunks == 1) return {};
  if (part.stages == 1) {
    return input_error(config.where,
                       fmt::format("layout.vpp: expected 1, found {}: pp is 1", part.chunks));
  }
  const std::int64_t of_a_stage = config.layers / part.stages;
  if (of_a_stage % part.chunks == 0) return {};
  return input_error(config.where,
                     fmt::format("layout.vpp: the {} layers of a stage are not {} equal chunks",
                                 of_a_stage, part.chunks));
}

}  // namespace

RowRange own_rows(std::int64_t rows, std::uint32_t rank, std::uint32_t ranks) {
  const std::int64_t each = (rows + ranks - 1) / ranks;
  return {std::min(rows, each * rank), std::min(rows, each * (rank + 1))};
}

Status check_parts(const TransformerConfig& config, const ModelPart& part) {
  if (part.tensor_ranks == 0) return input_error(config.where, "layout.tp: at least 1");
  if (part.stages == 0) return input_error(config.where, "layout.pp: at least 1");
  if (config.layers % part.stages != 0) {
    return input_error(config.where, fmt::format("layout.pp: {} layers are not {} equal stages",
                                                 config.layers, part.stages));
  }
  if (Status chunks = check_chunks(config, part); !chunks) return chunks;
  if (Status experts = check_experts(config, part); !experts) return experts;
  const std::int64_t ranks = part.tensor_ranks;
  struct Shared {
    std::string_view what;
    std::int64_t count;
    std::int64_t ranks;
    std::int64_t multiple;
  };
  const std::int64_t sharers = ranks / part.expert_ranks;
  const std::array<Shared, 3> shared{
      {{"heads", config.heads, ranks, 1},
       {"key-value heads", config.key_value_heads(), ranks, 1},
       {"inner columns", config.inner_width(), sharers, kInnerMultiple}}};
  for (const Shared& each : shared) {
    if (each.count % (each.ranks * each.multiple) == 0 || each.ranks == 1) continue;
    const std::string parts = each.multiple == 1
                                  ? "equal parts"
                                  : fmt::format("parts of a multiple of {}", each.multiple);
    return input_error(config.where, fmt::format("layout.tp: {} {} are not {} {}", each.count,
                                                 each.what, each.ranks, parts));
  }
  return {};
}

}  // namespace orrery
