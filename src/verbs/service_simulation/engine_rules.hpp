// verbs/service_simulation/engine_rules.hpp - how an engine computes requests in virtual time, by
// its arguments, by what is known of it, and by what it does where neither says.
//
// Pure. Cost: O(arguments).
#pragma once

#include <cstdint>
#include <optional>

#include "twin/serving/engine_model.hpp"
#include "workload/revision_spec.hpp"

namespace orrery {

/// Tokens of the cache of a replica of which nothing else is known.
inline constexpr std::uint64_t kUnknownCacheTokens = 500'000;

/// What is known of an engine besides its arguments; 0: unknown.
struct KnownEngine {
  std::uint32_t sequences_max = 0;
  std::uint32_t step_tokens = 0;
  std::uint64_t kv_tokens = 0;
};

/// Returns how many tokens the arguments of an engine give its cache; none: they do not say.
[[nodiscard]] std::optional<std::uint64_t> cache_tokens_in(const EngineSpec& engine);

[[nodiscard]] EngineRules engine_rules(const EngineSpec& engine, const KnownEngine& known);

}  // namespace orrery
