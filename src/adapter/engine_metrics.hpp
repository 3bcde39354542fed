// adapter/engine_metrics.hpp - how busy an inference engine is, by its metrics: one form for
// all engines and their releases.
//
// A table maps each figure to the names that releases have given it, the newest first; the first
// name that an answer holds counts. Figures of several data-parallel groups are added up, shares
// are averaged. Pure. Cost: O(bytes).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "workload/revision_spec.hpp"

namespace orrery {

/// None: the engine does not say.
struct EngineLoad {
  std::optional<double> running;       ///< requests that compute
  std::optional<double> waiting;       ///< requests that do not yet
  std::optional<double> kv_usage;      ///< share of the KV cache in use, 0 to 1
  std::optional<double> block_tokens;  ///< tokens of a block of it
  std::optional<double> blocks;        ///< blocks of it
  std::optional<double> generated;     ///< tokens since the engine began
  /// Something that is counted with each step or token, not only once a request has ended.
  std::optional<double> steps;

  /// Returns how many tokens the KV cache holds; none: unknown.
  [[nodiscard]] std::optional<std::uint64_t> kv_tokens() const;
  /// Whether requests are there; none: unknown.
  [[nodiscard]] std::optional<bool> busy() const;
  /// Whether requests are there of which nothing was counted since an earlier answer, although the
  /// engine counts steps. Where a long prompt is computed in parts, its KV cache grows.
  [[nodiscard]] bool stands_since(const EngineLoad& earlier) const;
};

[[nodiscard]] EngineLoad engine_load(EngineName engine, std::string_view metrics);

/// Returns the path of the metrics in Prometheus' text format.
[[nodiscard]] std::string_view metrics_path(EngineName engine);

}  // namespace orrery
