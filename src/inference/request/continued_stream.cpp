#include "inference/request/continued_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/format/xxh3.hpp"
#include "tokens/incremental_decoder.hpp"

namespace orrery {
namespace {

constexpr std::string_view kVersion = "1";
constexpr std::string_view kMark = ": continue ";
constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kTokenDigits = 3;
constexpr std::int64_t kKindsMax = 1 << 18;  // 64 to the power of kTokenDigits
constexpr char kUsage = '$';
constexpr std::size_t kIdMax = 64;

tl::unexpected<ApiError> malformed(std::string_view what) {
  return tl::unexpected(
      ApiError{.message = fmt::format("continue: expected the marks of a stream, found {}", what),
               .param = "continue",
               .code = "invalid_value"});
}

bool is_id(std::string_view text) {
  return !text.empty() && text.size() <= kIdMax &&
         std::ranges::all_of(text, [](char c) { return kDigits.find(c) != kDigits.npos; });
}

template <class Number>
bool read_number(std::string_view text, int base, Number& to) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), to, base);
  return failed == std::errc() && end == text.data() + text.size();
}

bool read_tokens(std::string_view text, std::vector<std::int32_t>& to) {
  if (text.size() % kTokenDigits != 0) return false;
  to.reserve(text.size() / kTokenDigits);
  for (std::size_t at = 0; at < text.size(); at += kTokenDigits) {
    std::size_t token = 0;
    for (const char c : text.substr(at, kTokenDigits)) {
      const std::size_t digit = kDigits.find(c);
      if (digit == kDigits.npos) return false;
      token = token * kDigits.size() + digit;
    }
    to.push_back(static_cast<std::int32_t>(token));
  }
  return true;
}

}  // namespace

bool has_marks(const Tokenizer& tokenizer) { return tokenizer.kinds() <= kKindsMax; }

std::string mark_of(const Tokenizer& tokenizer) {
  const std::string identity = fmt::format("{} {}", tokenizer.identity(), tokenizer.kinds());
  return fmt::format("{:016x}", xxh3(identity));
}

std::string first_mark(const ContinuedStream& stream) {
  return fmt::format("{}{}.{}.{}.{:x}.{}.", kMark, kVersion, stream.id, stream.created, stream.seed,
                     stream.tokenizer);
}

std::string token_mark(std::span<const std::int32_t> tokens) {
  std::string line(kMark);
  for (const std::int32_t token : tokens) {
    const auto number = static_cast<std::size_t>(token);
    line += kDigits[number / kDigits.size() / kDigits.size()];
    line += kDigits[number / kDigits.size() % kDigits.size()];
    line += kDigits[number % kDigits.size()];
  }
  return line;
}

std::string usage_mark() { return std::string(kMark) + kUsage; }

ApiResult<ContinuedStream> read_marks(std::string_view joined) {
  constexpr std::size_t kParts = 5;
  std::array<std::string_view, kParts> parts;
  for (std::string_view& part : parts) {
    const std::size_t dot = joined.find('.');
    if (dot == joined.npos) return malformed("too few parts");
    part = joined.substr(0, dot);
    joined.remove_prefix(dot + 1);
  }
  ContinuedStream stream{.id = std::string(parts[1]), .tokenizer = std::string(parts[4])};
  if (parts[0] != kVersion) return malformed("another version");
  if (!is_id(stream.id)) return malformed("another id");
  if (!read_number(parts[2], 10, stream.created)) return malformed("another time");
  if (!read_number(parts[3], 16, stream.seed)) return malformed("another seed");
  if (joined.ends_with(kUsage)) {
    stream.usage = ContinuedStream::Usage::kSent;
    joined.remove_suffix(1);
  }
  if (!read_tokens(joined, stream.tokens) || stream.tokens.empty()) {
    return malformed("no numbers of tokens");
  }
  return stream;
}

bool is_over(const GenerationRequest& request, const Tokenizer& tokenizer, std::size_t limit) {
  if (request.continued.size() >= limit) return true;
  IncrementalDecoder decoder(tokenizer, {.stops = request.stops});
  for (const std::int32_t token : request.continued) {
    if (std::ranges::find(request.ends, token) != request.ends.end()) return true;
    (void)decoder.add(token);
    if (decoder.stop()) return true;
  }
  return false;
}

}  // namespace orrery
