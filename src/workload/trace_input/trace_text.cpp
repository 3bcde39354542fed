#include "workload/trace_input/trace_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr std::size_t kLineMax = 64u << 10;
constexpr std::string_view kBlanks = " \t\r";

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::int64_t nanoseconds_in(TimeUnit unit) {
  return unit == TimeUnit::kSeconds ? 1'000'000'000 : 1'000'000;
}

// Parses a number with an exponent, with the precision of a double; no value for other text.
std::optional<std::int64_t> parse_scientific(std::string_view text, TimeUnit unit) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  value = std::round(value * static_cast<double>(nanoseconds_in(unit)));
  constexpr double kEnd = 0x1p63;
  if (!(value > -kEnd && value < kEnd)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

// Ordinary lines are ASCII without control characters, which costs one comparison a byte to see.
bool is_plain(std::string_view line) {
  return std::all_of(line.begin(), line.end(), [](char c) { return c >= '\t' && c < '\x7f'; });
}

bool split_at_blanks(std::string_view line, std::vector<std::string_view>& cells) {
  for (std::size_t begin = line.find_first_not_of(kBlanks); begin != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    cells.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kBlanks, end);
  }
  return true;
}

}  // namespace

std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool TraceLines::next() {
  while (!rest_.empty()) {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    if (!trimmed(line_).empty()) return true;
  }
  return false;
}

Status check_trace_line(std::string_view line, SourcePosition where) {
  if (line.size() > kLineMax) {
    where.column = 1;
    return input_error(std::move(where), fmt::format("the line has {} bytes, expected at most {}",
                                                     line.size(), kLineMax));
  }
  if (is_plain(line)) return {};
  const std::size_t bad = first_invalid_utf8(line);
  if (bad == line.npos) return {};
  where.column = place_of(line, bad).column;
  return input_error(std::move(where), fmt::format("byte 0x{:02x} is not valid UTF-8 text",
                                                   static_cast<unsigned char>(line[bad])));
}

bool split_cells(std::string_view line, char separator, std::vector<std::string_view>& cells) {
  cells.clear();
  if (separator == ' ') return split_at_blanks(line, cells);
  while (true) {
    std::size_t end = 0;
    while (line.starts_with(' ')) line.remove_prefix(1);
    if (line.starts_with('"')) {
      const std::size_t close = line.find('"', 1);
      if (close == line.npos) return false;
      end = std::min(line.find(separator, close), line.size());
      if (!trimmed(line.substr(close + 1, end - close - 1)).empty()) return false;
      cells.push_back(line.substr(1, close - 1));
    } else {
      end = std::min(line.find(separator), line.size());
      cells.push_back(trimmed(line.substr(0, end)));
    }
    if (end == line.size()) return true;
    line.remove_prefix(end + 1);
  }
}

std::optional<std::int64_t> parse_nanoseconds(std::string_view text, TimeUnit unit) {
  const bool negative = text.starts_with('-');
  std::string_view rest = negative ? text.substr(1) : text;
  if (rest.empty() || !(is_digit(rest.front()) || rest.front() == '.')) return std::nullopt;
  std::int64_t value = 0;
  const auto grow = [&](std::int64_t factor, std::int64_t addend) {
    return !__builtin_mul_overflow(value, factor, &value) &&
           !__builtin_add_overflow(value, addend, &value);
  };
  std::size_t at = 0;
  for (; at < rest.size() && is_digit(rest[at]); ++at) {
    if (!grow(10, rest[at] - '0')) return std::nullopt;
  }
  std::int64_t weight = nanoseconds_in(unit);
  if (!grow(weight, 0)) return std::nullopt;
  if (at < rest.size() && rest[at] == '.') {
    if (rest.size() == 1) return std::nullopt;
    for (++at; at < rest.size() && is_digit(rest[at]); ++at) {
      const bool rounds_up = weight == 1 && rest[at] >= '5';
      weight /= 10;
      if (!grow(1, rounds_up ? 1 : weight * (rest[at] - '0'))) return std::nullopt;
    }
  }
  if (at < rest.size()) return parse_scientific(text, unit);
  return negative ? -value : value;
}

bool looks_like_wall_clock(std::string_view text) {
  return text.size() > 4 && text[4] == '-' && std::all_of(text.begin(), text.begin() + 4, is_digit);
}

Result<Instant> parse_wall_clock(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  constexpr std::size_t kDate = 10;
  if (text.size() > kLongest || text.size() <= kDate) return Instant::parse(text);
  std::array<char, kLongest + 1> buffer;
  std::copy(text.begin(), text.end(), buffer.begin());
  if (buffer[kDate] == ' ') buffer[kDate] = 'T';
  std::size_t size = text.size();
  if (text.find_first_of("Z+-", kDate) == text.npos) buffer[size++] = 'Z';
  return Instant::parse({buffer.data(), size});
}

}  // namespace orrery
