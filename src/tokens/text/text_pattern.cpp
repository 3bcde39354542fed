#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokens/text/text_pattern.hpp"

#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <utility>

#include "base/assert.hpp"
#include "base/text/utf8.hpp"
#include "tokens/bpe/json_part.hpp"
#include "tokens/text/unicode_class.hpp"

namespace orrery {
namespace {

constexpr std::uint32_t kMatchSteps = 2'000'000;
constexpr std::uint32_t kMatchKibibytes = 65'536;
constexpr std::size_t kPatternMax = 16'384;  ///< bytes

struct MatchFreed {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

const std::uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

}  // namespace

void TextPattern::Freed::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }
void TextPattern::Freed::operator()(pcre2_real_match_context_8* context) const {
  pcre2_match_context_free(context);
}

TextPattern TextPattern::of_json(std::string_view pattern) {
  return TextPattern(pcre2_pattern(pattern));
}

TextPattern::TextPattern(const std::string& pattern) {
  if (pattern.size() > kPatternMax || first_invalid_utf8(pattern) != std::string::npos) {
    throw LoadFault{fmt::format("a pattern of {} bytes, expected at most {} of UTF-8",
                                pattern.size(), kPatternMax)};
  }
  int code = 0;
  std::size_t place = 0;
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> rules(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  pcre2_set_newline(rules.get(), PCRE2_NEWLINE_LF);
  constexpr std::uint32_t kOptions =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
  code_.reset(
      pcre2_compile(bytes_of(pattern), pattern.size(), kOptions, &code, &place, rules.get()));
  if (!code_) {
    std::array<std::uint8_t, 160> why{};
    pcre2_get_error_message(code, why.data(), why.size());
    throw LoadFault{fmt::format("the pattern \"{}\": {}", printable(pattern, 200),
                                reinterpret_cast<const char*>(why.data()))};
  }
  pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
  limits_.reset(pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(limits_.get(), kMatchSteps);
  pcre2_set_heap_limit(limits_.get(), kMatchKibibytes);
}

TextPattern::TextPattern(TextPattern&& other) noexcept = default;
TextPattern& TextPattern::operator=(TextPattern&& other) noexcept = default;
TextPattern::~TextPattern() = default;

std::vector<TextSpan> TextPattern::find_all(std::string_view text) const {
  std::vector<TextSpan> found;
  const std::unique_ptr<pcre2_match_data, MatchFreed> match(
      pcre2_match_data_create_from_pattern(code_.get(), nullptr));
  const auto search = [&](std::size_t from, std::uint32_t options) {
    return pcre2_match(code_.get(), bytes_of(text), text.size(), from, options, match.get(),
                       limits_.get());
  };
  std::size_t from = 0;
  while (from <= text.size()) {
    int done = search(from, 0);
    if (done == PCRE2_ERROR_JIT_STACKLIMIT) done = search(from, PCRE2_NO_JIT);
    if (done < 0) break;
    const std::size_t* bounds = pcre2_get_ovector_pointer(match.get());
    const TextSpan span{bounds[0], bounds[1]};
    if (span.end < span.begin) break;
    // An empty match right behind a match does not count: the search goes on a character later.
    if (span.begin == span.end && !found.empty() && found.back().end == span.end) {
      from = span.end + (span.end < text.size() ? code_point_at(text, span.end).size : 1);
      continue;
    }
    found.push_back(span);
    from = span.end;
  }
  return found;
}

}  // namespace orrery
