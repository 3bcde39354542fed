#include "kv_events/kv_event.hpp"

#include "base/format/xxh3.hpp"

namespace orrery {

std::uint64_t next_in_chain(std::uint64_t before, std::span<const std::int32_t> tokens) {
  const auto bytes = std::as_bytes(tokens);
  return xxh3({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, before);
}

std::vector<std::uint64_t> token_chain(std::span<const std::int32_t> tokens, std::uint64_t before) {
  std::vector<std::uint64_t> chain;
  chain.reserve(tokens.size() / kChainTokens);
  for (std::size_t at = 0; at + kChainTokens <= tokens.size(); at += kChainTokens) {
    before = next_in_chain(before, tokens.subspan(at, kChainTokens));
    chain.push_back(before);
  }
  return chain;
}

}  // namespace orrery
