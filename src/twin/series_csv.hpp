// twin/series_csv.hpp - prices of electricity and carbon of the grid, from a CSV file's text.
//
// The first line names the columns. Time: the column that says UTC, else `timestamp`, `datetime`,
// `time` or `date`; RFC 3339, a space may stand for the T, a time without zone is UTC; every row is
// later than the one before. Value: negative values stay; a missing one ("", "-", "NaN", "NA",
// "null") is that of the row before, at the head of the file that of the first row with one. Pure;
// takes plain text. Cost: O(bytes).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/time.hpp"
#include "scheduler/power/step_series.hpp"

namespace orrery {

struct CsvColumns {
  std::string time;   ///< name of the column; "": found as above
  std::string value;  ///< "": the one that names a price, or carbon
  std::string unit;   ///< "": in the header's parentheses ("Price (USD/MWh)"); of avg_CI g/kWh
};

template <class Value>
struct CsvSeries {
  std::vector<typename StepSeries<Value>::Step> steps;  ///< at least one, ascending
  std::size_t filled = 0;                               ///< values that were missing
  Duration period;  ///< first to last, and the last gap once more; a day for a lone row
};

/// `file` names the text in messages. Errors, with file:line:column: no or two columns that fit, a
/// unit that is not USD (or gCO2) per kWh or MWh, no time, times that do not ascend, no number, one
/// beyond belief, a row without those columns, no value at all, text that is no UTF-8.
[[nodiscard]] Result<CsvSeries<DollarsPerJoule>> read_price_series(std::string_view text,
                                                                   const std::string& file,
                                                                   const CsvColumns& columns = {});
[[nodiscard]] Result<CsvSeries<GramsCo2PerJoule>> read_carbon_series(
    std::string_view text, const std::string& file, const CsvColumns& columns = {});

/// Limit of steps of one series; 119 years of hours.
inline constexpr std::size_t kSeriesStepsMax = std::size_t{1} << 20;

/// The part of a series to use, and when.
struct SeriesShift {
  Instant from;     ///< in the series' own time; beyond its ends it repeats
  Instant at;       ///< when that part begins in the simulation
  Duration length;  ///< length of the series to make
};

/// The series over [at, at + length), with the values it has over [from, from + length), repeated
/// after every period: 8,760 hours of 2022 serve any year. Errors: a length that is not positive;
/// more than kSeriesStepsMax steps. Cost: O(steps made).
template <class Value>
[[nodiscard]] Result<StepSeries<Value>> repeated(const CsvSeries<Value>& series,
                                                 const SeriesShift& shift);

extern template Result<StepSeries<DollarsPerJoule>> repeated(const CsvSeries<DollarsPerJoule>&,
                                                             const SeriesShift&);
extern template Result<StepSeries<GramsCo2PerJoule>> repeated(const CsvSeries<GramsCo2PerJoule>&,
                                                              const SeriesShift&);

}  // namespace orrery
