#include "verbs/service_simulation/engine_rules.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "twin/serving/kv_cache_model.hpp"
#include "workload/engine_flags.hpp"

namespace orrery {
namespace {

/// What an engine does by itself where its arguments do not say otherwise.
struct EngineDefaults {
  EngineDiscipline discipline = EngineDiscipline::kVllm;
  std::uint32_t sequences_max = 256;
  std::uint32_t step_tokens = 8192;
  std::string_view step_option;  ///< that sets step_tokens
};

EngineDefaults defaults_of(EngineName engine) {
  switch (engine) {
    case EngineName::kOrrery:
      return {EngineDiscipline::kOrrery, 8, 256, "--step-tokens"};
    case EngineName::kLlamacpp:
      return {EngineDiscipline::kSlots, 4, 2048, "--batch-size"};
    case EngineName::kSglang:
      return {EngineDiscipline::kVllm, 256, 8192, "--chunked-prefill-size"};
    case EngineName::kTrtllm:
      return {EngineDiscipline::kVllm, 2048, 8192, "--max-num-tokens"};
    case EngineName::kVllm:
      break;
  }
  return {EngineDiscipline::kVllm, 256, 8192, "--max-num-batched-tokens"};
}

/// The number after an option, or after its equals sign; the last of several counts.
std::optional<std::uint32_t> number_after(std::string_view option,
                                          const std::vector<std::string>& arguments) {
  std::optional<std::uint32_t> found;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view word = arguments[i];
    if (!word.starts_with(option)) continue;
    word.remove_prefix(option.size());
    if (word.empty() && i + 1 < arguments.size()) {
      word = arguments[i + 1];
    } else if (word.starts_with('=')) {
      word.remove_prefix(1);
    } else {
      continue;
    }
    std::uint32_t number = 0;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (code == std::errc() && end == word.data() + word.size()) found = number;
  }
  return found;
}

}  // namespace

std::optional<std::uint64_t> cache_tokens_in(const EngineSpec& engine) {
  if (engine.name != EngineName::kOrrery) return std::nullopt;
  const auto blocks = number_after("--kv-blocks", engine.arguments);
  return blocks ? std::optional(std::uint64_t{*blocks} * kKvBlockTokens) : std::nullopt;
}

EngineRules engine_rules(const EngineSpec& engine, const KnownEngine& known) {
  const EngineDefaults defaults = defaults_of(engine.name);
  const auto or_else = [](std::uint32_t said, std::uint32_t usual) {
    return said > 0 ? said : usual;
  };
  EngineRules rules;
  rules.discipline = defaults.discipline;
  rules.sequences_max =
      std::clamp(slots_in(engine.name, engine.arguments)
                     .value_or(or_else(known.sequences_max, defaults.sequences_max)),
                 1u, 65'536u);
  rules.step_tokens = std::max(number_after(defaults.step_option, engine.arguments)
                                   .value_or(or_else(known.step_tokens, defaults.step_tokens)),
                               rules.sequences_max);
  const std::uint64_t tokens = known.kv_tokens > 0 ? known.kv_tokens : kUnknownCacheTokens;
  rules.kv_blocks = static_cast<std::uint32_t>(tokens / kKvBlockTokens);
  if (rules.discipline == EngineDiscipline::kSlots) {
    rules.context_max = std::max(static_cast<std::uint32_t>(tokens / rules.sequences_max), 2u);
  }
  return rules;
}

}  // namespace orrery
