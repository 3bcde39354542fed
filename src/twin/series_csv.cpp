#include "twin/series_csv.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>

#include "base/text/nearest_name.hpp"
#include "base/text/quantity_text.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr double kJoulesPerKwh = 3.6e6;

/// Spellings of a unit, and its value in base units.
struct UnitName {
  std::string_view name;
  double factor;
};

constexpr UnitName kPriceUnits[] = {{"USD/MWh", 1e-3 / kJoulesPerKwh},
                                    {"USD/kWh", 1 / kJoulesPerKwh},
                                    {"$/MWh", 1e-3 / kJoulesPerKwh},
                                    {"$/kWh", 1 / kJoulesPerKwh}};
constexpr UnitName kCarbonUnits[] = {{"gCO2/kWh", 1 / kJoulesPerKwh},
                                     {"gCO2eq/kWh", 1 / kJoulesPerKwh},
                                     {"g/kWh", 1 / kJoulesPerKwh},
                                     {"kgCO2/MWh", 1 / kJoulesPerKwh},
                                     {"kg/MWh", 1 / kJoulesPerKwh}};

/// A kind of series, and how its column is recognized.
struct Subject {
  std::string_view word;         ///< a column whose name contains it
  std::string_view column;       ///< a column of this name, too,
  std::string_view column_unit;  ///< with this unit
  std::span<const UnitName> units;
  const QuantityKind& kind;
};

/// A piece of the file's text.
struct Cell {
  std::string_view text;
  std::size_t offset = 0;
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_missing(std::string_view text) {
  constexpr std::string_view kMissing[] = {"", "-", "nan", "na", "null"};
  return std::find(std::begin(kMissing), std::end(kMissing), lower_case(text)) !=
         std::end(kMissing);
}

template <class Value>
class SeriesReader {
 public:
  SeriesReader(std::string_view text, const std::string& file, const Subject& subject)
      : text_(text), file_(file), subject_(subject) {}

  Result<CsvSeries<Value>> read(const CsvColumns& columns) {
    if (const std::size_t at = first_invalid_utf8(text_); at != std::string_view::npos) {
      return wrong(at, "expected text in UTF-8");
    }
    if (text_.starts_with("\xEF\xBB\xBF")) offset_ = 3;
    const std::optional<std::vector<Cell>> header = next_row();
    if (!header) return wrong(0, "expected a line that names the columns, found nothing");
    Status found = find_columns(*header, columns);
    if (!found) return forward_error(found);
    while (const std::optional<std::vector<Cell>> row = next_row()) {
      if (Status added = add(*row); !added) return forward_error(added);
    }
    return finish();
  }

 private:
  [[nodiscard]] tl::unexpected<Error> wrong(std::size_t offset, std::string message) const {
    const TextPlace place = place_of(text_, std::min(offset, text_.size()));
    return input_error({file_, place.line, place.column}, std::move(message));
  }

  // Returns the cells of the next line that is not empty.
  std::optional<std::vector<Cell>> next_row() {
    while (offset_ < text_.size()) {
      const std::size_t begin = offset_;
      const std::size_t end = std::min(text_.find('\n', begin), text_.size());
      offset_ = end + 1;
      std::string_view line = text_.substr(begin, end - begin);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!trimmed(line).empty()) return cells_of(line, begin);
    }
    return std::nullopt;
  }

  static std::vector<Cell> cells_of(std::string_view line, std::size_t begin) {
    std::vector<Cell> cells;
    cells.reserve(static_cast<std::size_t>(std::count(line.begin(), line.end(), ',')) + 1);
    for (std::size_t at = 0; at <= line.size();) {
      const std::size_t end = std::min(line.find(',', at), line.size());
      std::string_view text = trimmed(line.substr(at, end - at));
      if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
        text = trimmed(text.substr(1, text.size() - 2));
      }
      cells.push_back({text, begin + at});
      at = end + 1;
    }
    return cells;
  }

  Status find_columns(const std::vector<Cell>& header, const CsvColumns& columns) {
    Result<std::size_t> time =
        columns.time.empty() ? time_column(header) : named_column(header, columns.time);
    if (!time) return forward_error(time);
    time_ = *time;
    Result<std::size_t> value =
        columns.value.empty() ? value_column(header) : named_column(header, columns.value);
    if (!value) return forward_error(value);
    value_ = *value;
    return set_unit(header[value_], columns.unit);
  }

  [[nodiscard]] Result<std::size_t> named_column(const std::vector<Cell>& header,
                                                 const std::string& name) const {
    std::vector<std::string_view> names;
    names.reserve(header.size());
    for (const Cell& cell : header) names.push_back(cell.text);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (lower_case(names[i]) == lower_case(name)) return i;
    }
    return wrong(header.front().offset,
                 fmt::format("no column \"{}\"{}; the columns are {}", printable(name, 60),
                             did_you_mean(name, names), shown(names)));
  }

  [[nodiscard]] static std::string shown(const std::vector<std::string_view>& names) {
    return printable(fmt::format("{}", fmt::join(names, ", ")), 300);
  }

  // A column that says UTC is preferred, so that no hour of a local clock occurs twice.
  [[nodiscard]] Result<std::size_t> time_column(const std::vector<Cell>& header) const {
    constexpr std::string_view kNames[] = {"timestamp", "datetime", "time", "date"};
    for (std::size_t i = 0; i < header.size(); ++i) {
      if (lower_case(header[i].text).find("utc") != std::string::npos) return i;
    }
    for (const std::string_view name : kNames) {
      for (std::size_t i = 0; i < header.size(); ++i) {
        if (lower_case(header[i].text) == name) return i;
      }
    }
    return wrong(
        header.front().offset,
        "no time column: expected a column named UTC, or timestamp, datetime, time or date");
  }

  [[nodiscard]] Result<std::size_t> value_column(const std::vector<Cell>& header) const {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < header.size(); ++i) {
      const std::string name = lower_case(header[i].text);
      if (i == time_ || (name != subject_.column && name.find(subject_.word) == name.npos))
        continue;
      if (found) {
        return wrong(
            header[i].offset,
            fmt::format("both \"{}\" and \"{}\" may be meant; name the column",
                        printable(header[*found].text, 60), printable(header[i].text, 60)));
      }
      found = i;
    }
    if (found) return *found;
    return wrong(header.front().offset,
                 fmt::format("no column names {}: expected it in the name, or the column given",
                             subject_.word));
  }

  Status set_unit(const Cell& name, const std::string& given) {
    std::string_view unit = given;
    const std::size_t open = name.text.rfind('(');
    if (unit.empty() && open != std::string_view::npos && name.text.ends_with(')')) {
      unit = trimmed(name.text.substr(open + 1, name.text.size() - open - 2));
    }
    if (unit.empty() && lower_case(name.text) == subject_.column) unit = subject_.column_unit;
    std::vector<std::string_view> known;
    known.reserve(subject_.units.size());
    for (const UnitName& each : subject_.units) {
      if (lower_case(each.name) == lower_case(unit)) {
        factor_ = each.factor;
        return {};
      }
      known.push_back(each.name);
    }
    return wrong(
        name.offset,
        fmt::format("the unit of \"{}\" is {}; expected one of {}", printable(name.text, 60),
                    unit.empty() ? "not stated" : "\"" + printable(unit, 60) + "\"",
                    fmt::join(known, ", ")));
  }

  Status add(const std::vector<Cell>& row) {
    if (row.size() <= std::max(time_, value_)) {
      return wrong(row.front().offset, fmt::format("expected at least {} cells, found {}",
                                                   std::max(time_, value_) + 1, row.size()));
    }
    const Result<Instant> at = time_of(row[time_]);
    if (!at) return tl::unexpected<Error>(at.error());
    if (!series_.steps.empty() && *at <= series_.steps.back().from) {
      return wrong(row[time_].offset, fmt::format("{} follows {}: expected a later time (a local "
                                                  "clock turns back; take the column in UTC)",
                                                  at->text(), series_.steps.back().from.text()));
    }
    Result<std::optional<double>> value = value_of(row[value_]);
    if (!value) return forward_error(value);
    if (!*value) {
      ++series_.filled;
    } else if (!last_) {
      for (auto& step : series_.steps) step.value = Value(**value);
    }
    if (*value) last_ = *value;
    series_.steps.push_back({*at, Value(last_.value_or(0))});
    return {};
  }

  [[nodiscard]] Result<Instant> time_of(const Cell& cell) const {
    std::string text(cell.text.substr(0, 64));
    constexpr std::size_t kDate = 10;  // 2022-01-31
    if (text.size() > kDate && text[kDate] == ' ') text[kDate] = 'T';
    if (text.size() > kDate && text.find_first_of("Zz+-", kDate) == std::string::npos) text += 'Z';
    Result<Instant> at = Instant::parse(text);
    if (at) return *at;
    return wrong(
        cell.offset,
        fmt::format("\"{}\" is not a time: expected a time such as 2022-01-31 13:00:00+00:00",
                    printable(cell.text, 60)));
  }

  // The value in base units; none where it is missing.
  [[nodiscard]] Result<std::optional<double>> value_of(const Cell& cell) const {
    if (is_missing(cell.text)) return std::optional<double>();
    double value = 0;
    const char* end = cell.text.data() + cell.text.size();
    const auto [stop, failure] = std::from_chars(cell.text.data(), end, value);
    if (failure != std::errc() || stop != end || !std::isfinite(value)) {
      return wrong(cell.offset, fmt::format("\"{}\" is not a number", printable(cell.text, 60)));
    }
    if (std::abs(value * factor_) > subject_.kind.plausible_max) {
      return wrong(cell.offset,
                   fmt::format("{} is implausible: more than {}", value,
                               print_quantity(subject_.kind.plausible_max, subject_.kind)));
    }
    return std::optional<double>(value * factor_);
  }

  Result<CsvSeries<Value>> finish() {
    if (!last_) return wrong(0, fmt::format("no row with a value of {}", subject_.word));
    const auto& steps = series_.steps;
    const std::size_t n = steps.size();
    series_.period = Duration::hours(24);
    if (n > 1) {
      series_.period =
          (steps[n - 1].from - steps[0].from) + (steps[n - 1].from - steps[n - 2].from);
    }
    return std::move(series_);
  }

  std::string_view text_;
  const std::string& file_;
  const Subject& subject_;
  std::size_t offset_ = 0;  ///< offset of the next line
  std::size_t time_ = 0;    ///< columns
  std::size_t value_ = 0;
  double factor_ = 1;
  std::optional<double> last_;
  CsvSeries<Value> series_;
};

}  // namespace

Result<CsvSeries<DollarsPerJoule>> read_price_series(std::string_view text, const std::string& file,
                                                     const CsvColumns& columns) {
  const Subject subject{"price", "price", "", kPriceUnits, kind_of<DollarsPerJoule>()};
  return SeriesReader<DollarsPerJoule>(text, file, subject).read(columns);
}

Result<CsvSeries<GramsCo2PerJoule>> read_carbon_series(std::string_view text,
                                                       const std::string& file,
                                                       const CsvColumns& columns) {
  const Subject subject{"carbon", "avg_ci", "g/kWh", kCarbonUnits, kind_of<GramsCo2PerJoule>()};
  return SeriesReader<GramsCo2PerJoule>(text, file, subject).read(columns);
}

template <class Value>
Result<StepSeries<Value>> repeated(const CsvSeries<Value>& series, const SeriesShift& shift) {
  if (shift.length <= Duration()) {
    return input_error({}, fmt::format("a series over {}: expected more", shift.length.text()));
  }
  const std::int64_t period = series.period.count_ns();
  const Instant first = series.steps.front().from;
  // How far into a period `from` is: the remainder, never negative.
  std::int64_t into = (shift.from - first).count_ns() % period;
  if (into < 0) into += period;
  const std::int64_t end = shift.length.count_ns();
  std::vector<typename StepSeries<Value>::Step> steps;
  std::int64_t round_begin = -into;  // since `at`
  while (round_begin < end) {
    for (const auto& step : series.steps) {
      std::int64_t since = 0;
      const bool never =
          __builtin_add_overflow(round_begin, (step.from - first).count_ns(), &since);
      if (never || since >= end) break;
      if (since <= 0) steps.clear();  // `at` itself is covered unless a later step begins before it
      if (steps.size() == kSeriesStepsMax) {
        return input_error({}, fmt::format("the series has more than {} steps over {}",
                                           kSeriesStepsMax, shift.length.text()));
      }
      steps.push_back(
          {shift.at + Duration::nanoseconds(std::max<std::int64_t>(since, 0)), step.value});
    }
    if (__builtin_add_overflow(round_begin, period, &round_begin)) break;
  }
  return StepSeries<Value>::make(std::move(steps));
}

template Result<StepSeries<DollarsPerJoule>> repeated(const CsvSeries<DollarsPerJoule>&,
                                                      const SeriesShift&);
template Result<StepSeries<GramsCo2PerJoule>> repeated(const CsvSeries<GramsCo2PerJoule>&,
                                                       const SeriesShift&);

}  // namespace orrery
