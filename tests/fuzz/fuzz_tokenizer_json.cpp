// tests/fuzz/fuzz_tokenizer_json.cpp - any text as a tokenizer.json; what is read encodes and
// decodes.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "tokens/bpe_tokenizer.hpp"
#include "tokens/incremental_decoder.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<BpeTokenizer> tokenizer = BpeTokenizer::of(text, "tokenizer.json");
  if (!tokenizer) {
    ORRERY_ASSERT(!tokenizer.error().message.empty(), "a refusal says why");
    return 0;
  }
  const std::string_view sample = text.substr(0, 2000);
  std::vector<std::int32_t> tokens;
  tokenizer->encode_with(sample, {.around = BpeTokenizer::Encoding::Around::kAdded}, tokens);
  IncrementalDecoder decoder(*tokenizer, {.stops = {}, .special = TokenUse::Special::kShown});
  std::string parts;
  for (const std::int32_t token : tokens) parts += decoder.add(token);
  parts += decoder.finish();
  ORRERY_ASSERT(parts == tokenizer->decode_with(tokens, TokenUse::Special::kShown),
                "token by token gives the same text");
  return 0;
}
