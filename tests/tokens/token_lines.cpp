// tests/tokens/token_lines.cpp - the tokens of texts on standard input, for compare.py.
//
// `token_lines FILE` reads texts, each behind its number of bytes, and writes for each the tokens
// without and with those added around it, and the text that they decode to without and with special
// tokens. Numbers are of 32 bits, the lowest byte first. Text is decoded token by token, which must
// be what decoding at once gives.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tokens/bpe_tokenizer.hpp"
#include "tokens/incremental_decoder.hpp"

namespace {

using namespace orrery;

bool read_number(std::uint32_t& number) { return std::fread(&number, 4, 1, stdin) == 1; }

void write_bytes(const void* bytes, std::size_t size, std::size_t count) {
  const auto number = static_cast<std::uint32_t>(count);
  std::fwrite(&number, 4, 1, stdout);
  std::fwrite(bytes, size, count, stdout);
}

void write_text(const BpeTokenizer& tokenizer, const std::vector<std::int32_t>& tokens,
                TokenUse::Special special) {
  const std::string whole = tokenizer.decode_with(tokens, special);
  IncrementalDecoder decoder(tokenizer, {.stops = {}, .special = special});
  std::string text;
  for (const std::int32_t token : tokens) text += decoder.add(token);
  text += decoder.finish();
  if (text != whole) text = "(incremental decoding differs)" + text;
  write_bytes(text.data(), 1, text.size());
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const Result<BpeTokenizer> tokenizer = BpeTokenizer::open(arguments[1]);
  if (!tokenizer) {
    std::fprintf(stderr, "%s\n", tokenizer.error().text().c_str());
    return 1;
  }
  std::uint32_t size = 0;
  while (read_number(size)) {
    std::string text(size, '\0');
    if (std::fread(text.data(), 1, size, stdin) != size) return 1;
    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> framed;
    tokenizer->encode(text, tokens);
    tokenizer->encode_with(text, {.around = BpeTokenizer::Encoding::Around::kAdded}, framed);
    write_bytes(tokens.data(), 4, tokens.size());
    write_bytes(framed.data(), 4, framed.size());
    write_text(*tokenizer, framed, TokenUse::Special::kLeftOut);
    write_text(*tokenizer, framed, TokenUse::Special::kShown);
  }
  return 0;
}
