#include "workload/trace_input/trace_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"
#include "workload/trace_input/trace_parts.hpp"

namespace orrery {
namespace {

constexpr std::size_t kShownMax = 40;
constexpr std::size_t kSkippedMax = 100'000;

struct NamedUnit {
  std::string_view suffix;
  TimeUnit unit;
};
constexpr std::array<NamedUnit, 4> kNamedUnits = {{{" (s)", TimeUnit::kSeconds},
                                                   {" (ms)", TimeUnit::kMilliseconds},
                                                   {"_s", TimeUnit::kSeconds},
                                                   {"_ms", TimeUnit::kMilliseconds}}};

// Whether a file's column is the one of that name, and the unit it names then.
bool is_named(std::string_view cell, std::string_view name, std::optional<TimeUnit>& unit) {
  if (!cell.starts_with(name)) return false;
  const std::string_view rest = cell.substr(name.size());
  if (rest.empty()) return true;
  for (const NamedUnit& each : kNamedUnits) {
    if (rest != each.suffix) continue;
    unit = each.unit;
    return true;
  }
  return false;
}

std::string_view word(TimeUnit unit) {
  return unit == TimeUnit::kSeconds ? "seconds" : "milliseconds";
}

// The positions of the columns that `where` names, with the text each must hold.
struct WantedCell {
  std::size_t position;
  std::string_view value;
};

class TableReader {
 public:
  TableReader(const TraceTable& table, const std::string& file, const TraceOptions& options)
      : table_(table), file_(file), options_(options) {}

  Result<Trace> read(std::string_view text) {
    TraceLines lines(without_byte_order_mark(text));
    bool more = next(lines);
    if (!more && table_.header == TraceTable::Header::kInFile) {
      return input_error({file_, 1, 1}, "the file is empty, expected names of columns");
    }
    Result<TraceHeader> header = read_header(lines);
    if (!header) return forward_error(header);
    const bool named = table_.header == TraceTable::Header::kInFile;
    if (named || (more && names_columns(table_, lines.line()))) more = next(lines);
    if (Status found = find_wanted(*header); !found) return forward_error(found);
    TraceRow row(*header, file_, options_.unit);
    for (int number = 1; more; more = next(lines), ++number) {
      if (Status status = read_row(lines, number, row); !status) return forward_error(status);
    }
    if (table_.rows == TraceTable::Rows::kParts) join_parts();
    return std::move(trace_);
  }

 private:
  bool next(TraceLines& lines) const {
    while (lines.next()) {
      const bool comment = table_.comment != '\0' && lines.line().front() == table_.comment;
      if (!comment) return true;
    }
    return false;
  }

  Result<TraceHeader> read_header(const TraceLines& lines) const {
    if (table_.header == TraceTable::Header::kFixed) return TraceHeader::fixed(table_);
    const SourcePosition where{file_, lines.number(), 1};
    if (Status fine = check_trace_line(lines.line(), where); !fine) return forward_error(fine);
    std::vector<std::string_view> names;
    if (!split_cells(lines.line(), table_.separator, names)) {
      return input_error(where, "a quotation mark is not closed");
    }
    return TraceHeader::from_names(table_, names, where);
  }

  Status find_wanted(const TraceHeader& header) {
    for (const TraceOptions::Where& where : options_.where) {
      const Result<std::size_t> position = header.find(where.column, file_);
      if (!position) return tl::unexpected<Error>(position.error());
      wanted_.push_back({*position, where.value});
    }
    return {};
  }

  Status read_row(const TraceLines& lines, int number, TraceRow& row) {
    if (!row.begin(lines, number)) return refuse(row.error());
    const bool wanted = std::all_of(wanted_.begin(), wanted_.end(), [&](const WantedCell& cell) {
      return row.cell(cell.position) == cell.value;
    });
    if (!wanted) return {};
    TraceJob job;
    job.line = row.line();
    table_.read(row, job);
    if (!row.ok()) return refuse(row.error());
    if (!row.left_out().empty()) {
      trace_.leave_out(row.left_out(), row.line());
      return {};
    }
    if (job.name.empty()) job.name = std::to_string(row.number());
    if (table_.rows == TraceTable::Rows::kParts) {
      const Instant start = job.submit;
      std::string name = job.name;
      parts_.push_back({std::move(name), std::move(job), start});
    } else if (options_.within(job.submit)) {
      trace_.jobs.push_back(std::move(job));
    }
    return {};
  }

  void join_parts() {
    for (TraceJob& job : join_trace_parts(parts_, JoinedStatus::kWorst)) {
      if (options_.within(job.submit)) trace_.jobs.push_back(std::move(job));
    }
  }

  Status refuse(const Error& error) {
    if (options_.bad_rows == TraceOptions::BadRows::kError) return tl::unexpected<Error>(error);
    if (trace_.skipped.size() == kSkippedMax) {
      return input_error(error.where,
                         fmt::format("more than {} rows do not fit: is it this format? "
                                     "The last: {}",
                                     kSkippedMax, error.message));
    }
    trace_.skipped.push_back({error.where, error.message});
    return {};
  }

  const TraceTable& table_;
  const std::string& file_;
  const TraceOptions& options_;
  std::vector<WantedCell> wanted_;
  std::vector<TracePart> parts_;
  Trace trace_;
};

}  // namespace

Result<TraceHeader> TraceHeader::from_names(const TraceTable& table,
                                            std::span<const std::string_view> names,
                                            const SourcePosition& where) {
  TraceHeader header;
  header.table_ = &table;
  header.names_.assign(names.begin(), names.end());
  header.cells_.resize(table.columns.size());
  header.units_.resize(table.columns.size());
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    std::optional<std::size_t>& cell = header.cells_[column];
    for (const std::string_view name : table.columns[column].names) {
      if (name.empty() || cell) continue;
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (!is_named(names[i], name, header.units_[column])) continue;
        if (cell) {
          return input_error(where, fmt::format("the column {} is there twice, expected it once",
                                                printable(names[i], kShownMax)));
        }
        cell = i;
      }
    }
    if (cell || table.columns[column].need == TraceColumn::Need::kOptional) continue;
    const std::string_view name = table.columns[column].names.front();
    return input_error(where,
                       fmt::format("the column {} is missing{}", name, did_you_mean(name, names)));
  }
  return header;
}

TraceHeader TraceHeader::fixed(const TraceTable& table) {
  TraceHeader header;
  header.table_ = &table;
  header.names_.reserve(table.columns.size());
  header.cells_.reserve(table.columns.size());
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    header.names_.emplace_back(table.columns[column].names.front());
    header.cells_.emplace_back(column);
  }
  header.units_.resize(table.columns.size());
  return header;
}

std::string_view TraceHeader::name_of(std::size_t column) const {
  const std::optional<std::size_t> cell = cells_[column];
  return cell ? std::string_view(names_[*cell]) : table_->columns[column].names.front();
}

Result<std::size_t> TraceHeader::find(std::string_view name, const std::string& file) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
  const std::vector<std::string_view> known(names_.begin(), names_.end());
  return input_error({file, 0, 0},
                     fmt::format("there is no column \"{}\" to compare{}; the columns are: {}",
                                 printable(name, kShownMax), did_you_mean(name, known),
                                 printable(fmt::format("{}", fmt::join(known, ", ")), 400)));
}

bool TraceRow::begin(const TraceLines& lines, int row) {
  line_ = lines.line();
  line_number_ = lines.number();
  row_ = row;
  left_out_ = {};
  status_ = check_trace_line(line_, {file_, line_number_, 0});
  if (!status_) return false;
  if (!split_cells(line_, header_.table().separator, cells_)) {
    status_ = input_error(place(line_), "a quotation mark is not closed, or text stands behind it");
  } else if (cells_.size() != header_.cells()) {
    status_ = input_error(
        place(cells_.empty() ? line_ : cells_.back()),
        fmt::format("the row has {} cells, expected {}", cells_.size(), header_.cells()));
  }
  return ok();
}

SourcePosition TraceRow::place(std::string_view part) const {
  const auto offset = static_cast<std::size_t>(part.data() - line_.data());
  return {file_, line_number_, place_of(line_, offset).column};
}

bool TraceRow::has(std::size_t column) const { return !text(column).empty(); }

std::string_view TraceRow::text(std::size_t column) const {
  const std::optional<std::size_t> cell = header_.cell_of(column);
  if (!cell || cells_[*cell] == header_.table().missing) return {};
  return cells_[*cell];
}

void TraceRow::fail(std::size_t column, std::string_view expected) {
  if (!ok()) return;
  const std::optional<std::size_t> cell = header_.cell_of(column);
  const std::string_view shown = cell ? cells_[*cell] : std::string_view();
  status_ = input_error(cell ? place(shown) : place(line_),
                        fmt::format("{} is \"{}\", expected {}", header_.name_of(column),
                                    printable(shown, kShownMax), expected));
}

TimeUnit TraceRow::unit_of(std::size_t column) const {
  const std::optional<TimeUnit> named = header_.unit_of(column);
  return named ? *named : unit_.value_or(TimeUnit::kSeconds);
}

Duration TraceRow::duration(std::size_t column) {
  if (!ok()) return {};
  const TimeUnit unit = unit_of(column);
  const std::optional<std::int64_t> ns = parse_nanoseconds(text(column), unit);
  if (ns && *ns >= 0 && Duration::nanoseconds(*ns) <= kTraceRunMax) {
    return Duration::nanoseconds(*ns);
  }
  fail(column, fmt::format("a number of {} from 0 to 100 years", word(unit)));
  return {};
}

Instant TraceRow::instant(std::size_t column) {
  if (!ok()) return {};
  const std::string_view cell = text(column);
  if (looks_like_wall_clock(cell)) {
    const Result<Instant> time = parse_wall_clock(cell);
    if (time) return *time;
    fail(column, "a time such as \"2017-10-09 06:13:03\"");
    return {};
  }
  const bool told = header_.unit_of(column) || unit_;
  if (!told && !instant_unit_) {
    constexpr std::int64_t kMillisecondsFrom = 100'000'000'000;
    const std::optional<std::int64_t> as_ms = parse_nanoseconds(cell, TimeUnit::kMilliseconds);
    if (as_ms) {
      instant_unit_ =
          *as_ms / 1'000'000 >= kMillisecondsFrom ? TimeUnit::kMilliseconds : TimeUnit::kSeconds;
    }
  }
  const TimeUnit unit = told ? unit_of(column) : instant_unit_.value_or(TimeUnit::kSeconds);
  const std::optional<std::int64_t> ns = parse_nanoseconds(cell, unit);
  if (ns && *ns >= 0) return Instant::from_ns(*ns);
  fail(column, fmt::format("a time such as \"2017-10-09 06:13:03\", or {} from 0", word(unit)));
  return {};
}

Duration TraceRow::time_between(std::size_t first, std::size_t second) {
  const Instant from = instant(first);
  const Instant to = instant(second);
  if (to < from) fail(second, fmt::format("a time not before {}", header_.name_of(first)));
  if (ok() && to - from > kTraceRunMax) {
    fail(second, fmt::format("a time at most 100 years after {}", header_.name_of(first)));
  }
  return ok() ? to - from : Duration();
}

std::int64_t TraceRow::integer(std::size_t column, std::int64_t low, std::int64_t high) {
  if (!ok()) return 0;
  std::string_view digits = text(column);
  // Whole numbers that passed through a table of floating point have a fraction of zeros.
  const std::size_t point = digits.find('.');
  if (point != digits.npos && digits.find_first_not_of('0', point + 1) == digits.npos) {
    digits = digits.substr(0, point);
  }
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = code == std::errc() && end == digits.data() + digits.size();
  if (whole && value >= low && value <= high) return value;
  fail(column, fmt::format("a whole number from {} to {}", low, high));
  return 0;
}

double TraceRow::number(std::size_t column) {
  if (!ok()) return 0;
  const std::string_view digits = text(column);
  double value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool read = code == std::errc() && end == digits.data() + digits.size();
  if (read && std::isfinite(value)) return value;
  fail(column, "a number");
  return 0;
}

bool names_columns(const TraceTable& table, std::string_view line) {
  std::vector<std::string_view> cells;
  return split_cells(line, table.separator, cells) &&
         std::equal(cells.begin(), cells.end(), table.columns.begin(), table.columns.end(),
                    [](std::string_view cell, const TraceColumn& column) {
                      return cell == column.names.front();
                    });
}

Result<Trace> read_trace_table(const TraceTable& table, std::string_view text,
                               const std::string& file, const TraceOptions& options) {
  return TableReader(table, file, options).read(text);
}

}  // namespace orrery
