#include "gateway/prompt/routed_prompt.hpp"

#include <algorithm>

#include "base/format/xxh3.hpp"
#include "kv_events/kv_event.hpp"

namespace orrery {
namespace {

constexpr std::size_t kBlockBytes = 256;
constexpr std::size_t kBlocksMax = 2048;
constexpr std::size_t kTokenBlocksMax = 8192;
/// Weight of what was known before, at each request.
constexpr double kMemory = 0.99;
/// Weight of a request in the mean output of a service.
constexpr double kNewest = 0.05;
constexpr double kDensityMin = 1.0 / 16;

/// A plain prompt's chain has no salt, as engines share it between services.
RoutedPrompt prompt_of(std::span<const std::int32_t> tokens, std::uint64_t salt) {
  const std::size_t count = std::min(tokens.size(), kTokenBlocksMax * kChainTokens);
  return {.tokens = tokens.size(),
          .block_tokens = kChainTokens,
          .blocks = token_chain(tokens.first(count), salt)};
}

}  // namespace

void TokenDensity::add(std::size_t bytes, std::uint64_t tokens) {
  if (bytes == 0 || tokens == 0) return;
  bytes_ = bytes_ * kMemory + static_cast<double>(bytes);
  tokens_ = tokens_ * kMemory + static_cast<double>(tokens);
}

double TokenDensity::tokens_per_byte() const {
  return std::clamp(tokens_ / bytes_, kDensityMin, 1.0);
}

RouteDone learn(ServiceTokens& tokens, const ShownTokens& shown) {
  tokens.output_mean += kNewest * (static_cast<double>(shown.output) - tokens.output_mean);
  tokens.density.add(shown.body_bytes, shown.prompt);
  const std::uint64_t cached = std::min(shown.cached, shown.prompt);
  return {.tokens = shown.prompt - cached + shown.output, .tpot_s = shown.tpot_s};
}

RoutedPrompt routed_prompt(std::string_view body, const RequestFacts& facts,
                           const PromptTerms& terms) {
  // The last byte closes the list of messages or the text.
  const std::size_t size = std::max<std::size_t>(facts.prompt.size, 1) - 1;
  const std::string_view place = body.substr(facts.prompt.at, facts.prompt.size);
  // A chat with tools or a salt is known by its bytes.
  const bool plain = facts.prompt.salt == 0 || place.starts_with('"');
  if (terms.tokens.tokenizer && plain) {
    const auto known = terms.tokens.tokenizer->tokens_of(place, terms.now.ns() / 1'000'000'000);
    if (known) return prompt_of(*known, facts.prompt.salt);
  }
  const double tokens_per_byte = terms.tokens.density.tokens_per_byte();
  RoutedPrompt prompt{
      .tokens = static_cast<std::uint64_t>(static_cast<double>(body.size()) * tokens_per_byte) + 1,
      .block_tokens = static_cast<double>(kBlockBytes) * tokens_per_byte,
      .blocks = {}};
  const std::string_view text = body.substr(facts.prompt.at, size);
  const std::size_t count = std::min(text.size() / kBlockBytes, kBlocksMax);
  prompt.blocks.reserve(count);
  std::uint64_t hash = facts.prompt.salt ^ terms.service;
  for (std::size_t i = 0; i < count; ++i) {
    hash = xxh3(text.substr(i * kBlockBytes, kBlockBytes), hash);
    prompt.blocks.push_back(hash);
  }
  return prompt;
}

}  // namespace orrery
