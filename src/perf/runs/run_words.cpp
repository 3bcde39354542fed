#include "perf/runs/run_words.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace orrery {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

char lowered(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_word_byte(char c, std::string_view kept) {
  const char low = lowered(c);
  return (low >= 'a' && low <= 'z') || is_digit(c) || kept.find(c) != std::string_view::npos;
}

}  // namespace

std::vector<std::string> split_words(std::string_view text, std::string_view kept) {
  std::vector<std::string> words;
  bool inside = false;
  for (const char c : text) {
    const bool belongs = is_word_byte(c, kept);
    if (belongs && !inside) words.emplace_back();
    if (belongs) words.back() += lowered(c);
    inside = belongs;
  }
  return words;
}

std::string join_words(const std::vector<std::string>& words, std::size_t first,
                       std::size_t count) {
  std::string joined;
  for (std::size_t i = first; i < first + count && i < words.size(); ++i) {
    if (i > first) joined += ' ';
    joined += words[i];
  }
  return joined;
}

std::string spaced_name(std::string_view text) {
  const std::vector<std::string> words = split_words(text);
  return join_words(words, 0, words.size());
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::optional<NumberPrefix> number_prefix(std::string_view word) {
  if (word.empty() || !is_digit(word.front())) return std::nullopt;
  double value = 0;
  const char* end = word.data() + word.size();
  const auto [stop, failure] = std::from_chars(word.data(), end, value, std::chars_format::fixed);
  if (failure != std::errc() || !std::isfinite(value)) return std::nullopt;
  return NumberPrefix{value, std::string_view(stop, static_cast<std::size_t>(end - stop))};
}

std::optional<std::uint32_t> whole_number(std::string_view word) {
  const std::optional<NumberPrefix> number = number_prefix(word);
  if (!number || !number->rest.empty()) return std::nullopt;
  return whole_count(number->value);
}

std::optional<std::uint32_t> whole_count(double value) {
  constexpr double kMax = 2147483648.0;
  if (!(value >= 1) || value > kMax || value != std::floor(value)) return std::nullopt;
  return static_cast<std::uint32_t>(value);
}

}  // namespace orrery
