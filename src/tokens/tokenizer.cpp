#include "tokens/tokenizer.hpp"

#include <array>
#include <utility>

namespace orrery {

TokenText Tokenizer::text_of(std::int32_t token, TokenUse) const {
  std::string bytes = decode(std::array{token});
  if (bytes.empty()) return {};
  return {TokenText::Kind::kBytes, std::move(bytes)};
}

std::optional<std::int32_t> Tokenizer::named(std::string_view) const { return std::nullopt; }

void ByteTokenizer::encode(std::string_view text, std::vector<std::int32_t>& to) const {
  for (const char c : text) to.push_back(static_cast<unsigned char>(c));
}

std::string ByteTokenizer::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    if (token >= 0 && token < kKinds) text.push_back(static_cast<char>(token));
  }
  return text;
}

}  // namespace orrery
