// workload/trace_input/trace_text.hpp - reads lines, cells and exact times from the text of a
// trace.
//
// Nothing is copied: lines and cells are views into the text, which must outlive them. Times are
// read digit by digit, so that "487.661836" is that many nanoseconds and not the nearest double.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/time.hpp"

namespace orrery {

/// The unit of times that are plain numbers.
enum class TimeUnit : std::uint8_t { kSeconds, kMilliseconds };

/// The text without a byte order mark.
[[nodiscard]] std::string_view without_byte_order_mark(std::string_view text);

/// Without blanks, tabs and carriage returns around it.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// Hands out the lines of a text that are not blank. Ends of line are "\n" or "\r\n".
class TraceLines {
 public:
  explicit TraceLines(std::string_view text) : rest_(text) {}

  /// False at the end of the text.
  bool next();
  [[nodiscard]] std::string_view line() const { return line_; }
  [[nodiscard]] int number() const { return number_; }

 private:
  std::string_view rest_;
  std::string_view line_;
  int number_ = 0;
};

/// Why a line is no text a trace may hold: longer than 64 KiB, a NUL, invalid UTF-8. `line` is at
/// `where`, whose column is set by the error.
[[nodiscard]] Status check_trace_line(std::string_view line, SourcePosition where);

/// Cuts a line into trimmed cells. A separator ' ' stands for any run of blanks and tabs. A cell in
/// quotation marks may hold the separator. False for a quotation mark that is not closed, or that
/// is followed by more than a separator.
[[nodiscard]] bool split_cells(std::string_view line, char separator,
                               std::vector<std::string_view>& cells);

/// A plain or scientific number of a unit as nanoseconds, rounded to the nearest; plain ones
/// exactly. None: no number, not finite, or beyond the 292 years that fit.
[[nodiscard]] std::optional<std::int64_t> parse_nanoseconds(std::string_view text, TimeUnit unit);

/// "2017-10-09 06:13:03", also with 'T' between, with a fraction, with a zone; without one it is
/// UTC. Errors (without position) as of Instant::parse.
[[nodiscard]] Result<Instant> parse_wall_clock(std::string_view text);

/// Whether the text is meant to be a date rather than a number.
[[nodiscard]] bool looks_like_wall_clock(std::string_view text);

}  // namespace orrery
