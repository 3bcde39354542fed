// workload/trace_input/trace_table.hpp - traces that are tables: a line a job, cells by column.
//
// A TraceTable defines which columns a format has, where their names are and how a row becomes a
// job (workload/trace/trace_formats.hpp has one for each format); read_trace_table() does the rest.
// A reader of rows requests the cells it needs; the first error in a row is kept and reported with
// its line and column, and every cell requested after it is zero.
// Cost: one pass over the text, about 1 us a row.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/time.hpp"
#include "workload/trace/trace.hpp"
#include "workload/trace/trace_options.hpp"
#include "workload/trace_input/trace_text.hpp"

namespace orrery {

class TraceRow;

/// A column that a format knows, under any of up to four names. Other columns of a file are
/// ignored.
struct TraceColumn {
  std::array<std::string_view, 4> names;
  enum class Need : std::uint8_t { kRequired, kOptional } need = Need::kOptional;
};

struct TraceTable {
  std::span<const TraceColumn> columns;
  /// kInFile: the first line names the columns, in any order. kFixed: every line is a row of
  /// exactly these columns, but for a first line that is their names.
  enum class Header : std::uint8_t { kInFile, kFixed } header = Header::kInFile;
  char separator = ',';      ///< ' ': runs of blanks
  char comment = '\0';       ///< start of a line without data
  std::string_view missing;  ///< a cell without data, besides an empty one
  /// Unit of times whose column name states none. No value: seconds, but submits from 10^11 on are
  /// milliseconds (as seconds they would be after the year 5000, as milliseconds before 1974).
  std::optional<TimeUnit> unit;
  void (*read)(TraceRow& row, TraceJob& job) = nullptr;
  /// kParts: rows of one name are parts of one job, joined by workload/trace_input/trace_parts.hpp;
  /// a part starts when it is submitted.
  enum class Rows : std::uint8_t { kJobs, kParts } rows = Rows::kJobs;
};

/// Maps the columns of the table to the cells of a row.
class TraceHeader {
 public:
  /// A header from the names in a file's first line. Errors: a required column is missing or
  /// present twice. A name may end in the unit of its times: "submit_time (ms)", "duration_s".
  [[nodiscard]] static Result<TraceHeader> from_names(const TraceTable& table,
                                                      std::span<const std::string_view> names,
                                                      const SourcePosition& where);
  /// The header of a table whose columns are fixed.
  [[nodiscard]] static TraceHeader fixed(const TraceTable& table);

  [[nodiscard]] const TraceTable& table() const { return *table_; }
  [[nodiscard]] std::size_t cells() const { return names_.size(); }
  /// The position of a column's cell; none: the file has no such column.
  [[nodiscard]] std::optional<std::size_t> cell_of(std::size_t column) const {
    return cells_[column];
  }
  [[nodiscard]] std::optional<TimeUnit> unit_of(std::size_t column) const { return units_[column]; }
  [[nodiscard]] std::string_view name_of(std::size_t column) const;
  /// The cell called `name`, in the file or by the format. Errors: there is none; the message names
  /// the nearest.
  [[nodiscard]] Result<std::size_t> find(std::string_view name, const std::string& file) const;

 private:
  const TraceTable* table_ = nullptr;
  std::vector<std::string> names_;  ///< by cell
  std::vector<std::optional<std::size_t>> cells_;
  std::vector<std::optional<TimeUnit>> units_;
};

/// The cells of one line, accessed by the position of their column in the table.
class TraceRow {
 public:
  /// `unit` is of times whose column names none; none: the table's.
  TraceRow(const TraceHeader& header, const std::string& file, std::optional<TimeUnit> unit)
      : header_(header), file_(file), unit_(unit ? unit : header.table().unit) {}

  /// Moves to another line, the `row`-th, from 1. Returns false if it cannot be cut into the
  /// header's cells; status() then has the reason.
  bool begin(const TraceLines& lines, int row);

  [[nodiscard]] int line() const { return line_number_; }
  [[nodiscard]] int number() const { return row_; }
  [[nodiscard]] std::string_view cell(std::size_t position) const { return cells_[position]; }

  /// Whether the cell exists and has data.
  [[nodiscard]] bool has(std::size_t column) const;
  /// The cell's text; "" if it has no data.
  [[nodiscard]] std::string_view text(std::size_t column) const;
  /// A time span of at most 100 years, not negative.
  Duration duration(std::size_t column);
  /// A point in time: a wall clock, or a number that is not negative.
  Instant instant(std::size_t column);
  /// The time between two points in time, 0 once the row has failed. Fails where the second is
  /// before the first or more than 100 years after it.
  Duration time_between(std::size_t first, std::size_t second);
  /// A whole number from `low` to `high`; "8.0" is whole.
  std::int64_t integer(std::size_t column, std::int64_t low, std::int64_t high);
  /// A finite number.
  double number(std::size_t column);

  /// Records "NAME is "text", expected ...".
  void fail(std::size_t column, std::string_view expected);

  /// Records that the row is no job that ran; the first reason is kept.
  void leave_out(std::string_view reason) {
    if (left_out_.empty()) left_out_ = reason;
  }
  /// Why the row is left out; "": it is not.
  [[nodiscard]] std::string_view left_out() const { return left_out_; }

  [[nodiscard]] bool ok() const { return status_.has_value(); }
  [[nodiscard]] const Error& error() const { return status_.error(); }

 private:
  [[nodiscard]] TimeUnit unit_of(std::size_t column) const;
  [[nodiscard]] SourcePosition place(std::string_view part) const;

  const TraceHeader& header_;
  const std::string& file_;
  std::optional<TimeUnit> unit_;
  std::string_view line_;
  int line_number_ = 0;
  int row_ = 0;
  std::vector<std::string_view> cells_;
  /// Unit of submits, known after the first number.
  std::optional<TimeUnit> instant_unit_;
  std::string_view left_out_;
  Status status_;
};

/// Whether the line is the names of the table's columns, in their order.
[[nodiscard]] bool names_columns(const TraceTable& table, std::string_view line);

/// Reads every row of the text that the options admit.
[[nodiscard]] Result<Trace> read_trace_table(const TraceTable& table, std::string_view text,
                                             const std::string& file, const TraceOptions& options);

}  // namespace orrery
