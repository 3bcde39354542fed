#include "workload/slurm/output_pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr std::string_view kPatternLetters = "jxAatNu%";
constexpr std::size_t kWidthDigitsMax = 2;

/// One pattern at the begin of a text: "%4t".
struct FoundPattern {
  std::size_t size = 0;
  std::size_t width = 0;
  char letter = 0;
};

/// Precondition: the text begins with a percent sign. None: no letter follows.
std::optional<FoundPattern> pattern_at(std::string_view text) {
  FoundPattern found{.size = 1};
  while (found.size < text.size() && text[found.size] >= '0' && text[found.size] <= '9') {
    if (found.size > kWidthDigitsMax) return std::nullopt;
    found.width = found.width * 10 + static_cast<std::size_t>(text[found.size++] - '0');
  }
  if (found.size == text.size()) return std::nullopt;
  found.letter = text[found.size++];
  return found;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string padded(const std::string& value, std::size_t width) {
  if (!is_number(value) || value.size() >= width) return value;
  return std::string(width - value.size(), '0') + value;
}

/// A value may hold a percent sign of its own.
std::string with_signs_doubled(const std::string& value) {
  std::string doubled;
  for (const char c : value) doubled.append(c == '%' ? 2 : 1, c);
  return doubled;
}

enum class Rest { kKept, kReplaced };

std::string replaced(std::string_view pattern, std::span<const PatternValue> values, Rest rest) {
  std::string name;
  while (!pattern.empty()) {
    const std::size_t end = std::min(pattern.find('%'), pattern.size());
    name += pattern.substr(0, end);
    pattern.remove_prefix(end);
    if (pattern.empty()) break;
    const std::optional<FoundPattern> found = pattern_at(pattern);
    if (!found) return name;
    const auto value = std::ranges::find(values, found->letter, &PatternValue::letter);
    if (value != values.end()) {
      const std::string text = padded(value->value, found->width);
      name += rest == Rest::kKept ? with_signs_doubled(text) : text;
    } else if (rest == Rest::kKept) {
      name += pattern.substr(0, found->size);
    } else if (found->letter == '%') {
      name += '%';
    }
    pattern.remove_prefix(found->size);
  }
  return name;
}

}  // namespace

std::string output_pattern_complaint(std::string_view pattern) {
  if (pattern.ends_with('/')) return "expected the name of a file, not of a directory";
  while (true) {
    const std::size_t at = pattern.find('%');
    if (at == pattern.npos) return "";
    pattern.remove_prefix(at);
    const std::optional<FoundPattern> found = pattern_at(pattern);
    if (!found || kPatternLetters.find(found->letter) == kPatternLetters.npos) {
      return fmt::format("\"{}\" is no pattern, expected %j, %x, %A, %a, %t, %N, %u or %%",
                         printable(pattern.substr(0, found ? found->size : pattern.npos), 20));
    }
    pattern.remove_prefix(found->size);
  }
}

bool names_each_rank(std::string_view pattern) {
  for (std::size_t at = pattern.find('%'); at != pattern.npos; at = pattern.find('%', at)) {
    const std::optional<FoundPattern> found = pattern_at(pattern.substr(at));
    if (!found) return false;
    if (found->letter == 't') return true;
    at += found->size;
  }
  return false;
}

std::string with_pattern_values(std::string_view pattern, std::span<const PatternValue> values) {
  return replaced(pattern, values, Rest::kKept);
}

std::string output_file_name(std::string_view pattern, std::span<const PatternValue> values) {
  return replaced(pattern, values, Rest::kReplaced);
}

}  // namespace orrery
