#include "twin/study/study_run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <span>

#include "base/assert.hpp"
#include "base/numbers/parallel.hpp"

namespace orrery {
namespace {

/// The 97.5 % quantile of Student's t by degrees of freedom from 1; beyond the table within 0.1 %.
double student_quantile(std::size_t freedom) {
  constexpr std::array<double, 20> kTable = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                             2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                                             2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
  if (freedom <= kTable.size()) return kTable[freedom - 1];
  return 1.96 + 2.5 / static_cast<double>(freedom);
}

}  // namespace

std::vector<StudyCell> study_cells(const StudySpec& spec) {
  std::size_t points = 1;
  for (const StudyAxis& axis : spec.axes) points *= axis.values.size();
  std::vector<StudyCell> cells;
  cells.reserve(points * spec.seeds);
  std::vector<std::size_t> values(spec.axes.size(), 0);
  for (std::size_t point = 0; point < points; ++point) {
    for (std::uint32_t repeat = 0; repeat < spec.seeds; ++repeat) cells.push_back({values, repeat});
    for (std::size_t a = values.size(); a > 0; --a) {
      if (++values[a - 1] < spec.axes[a - 1].values.size()) break;
      values[a - 1] = 0;
    }
  }
  return cells;
}

Result<std::vector<CellOutcome>> run_cells(const CellRunner& runner) {
  std::vector<CellOutcome> outcomes(runner.cells);
  std::mutex mutex;
  std::size_t done = 0;
  std::size_t wrong_cell = 0;
  std::optional<Error> wrong;
  parallel_each({runner.cells, runner.threads}, [&](std::size_t cell) {
    Result<std::vector<double>> figures = runner.run(cell);
    const std::lock_guard lock(mutex);
    ++done;
    if (figures) {
      outcomes[cell].figures = *std::move(figures);
    } else if (figures.error().kind != ErrorKind::kInput) {
      outcomes[cell].failure = figures.error().text();
    } else if (!wrong || cell < wrong_cell) {
      wrong = figures.error();
      wrong_cell = cell;
    }
    if (runner.done) runner.done(done);
    return wrong ? Onward::kStop : Onward::kGo;
  });
  if (wrong) return tl::unexpected(*std::move(wrong));
  return outcomes;
}

Estimate estimate_of(const std::vector<double>& values) {
  double sum = 0;
  std::uint32_t count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++count;
  }
  if (count == 0) {
    constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();
    return {kAbsent, kAbsent, kAbsent, 0};
  }
  const double mean = sum / count;
  if (count == 1) return {mean, mean, mean, 1};
  double squares = 0;
  for (const double value : values) {
    if (std::isfinite(value)) squares += (value - mean) * (value - mean);
  }
  const double n = count;
  const double half = student_quantile(count - 1) * std::sqrt(squares / (n - 1) / n);
  return {mean, mean - half, mean + half, count};
}

std::vector<StudyPoint> study_points(const StudySpec& spec,
                                     const std::vector<CellOutcome>& outcomes) {
  const std::vector<StudyCell> cells = study_cells(spec);
  ORRERY_ASSERT(outcomes.size() == cells.size(), "one outcome a cell");
  std::vector<StudyPoint> points;
  points.reserve(cells.size() / spec.seeds);
  for (std::size_t first = 0; first < cells.size(); first += spec.seeds) {
    StudyPoint& point = points.emplace_back();
    point.values = cells[first].values;
    const std::span<const CellOutcome> repeats(outcomes.data() + first, spec.seeds);
    for (const CellOutcome& outcome : repeats) {
      if (outcome.failure.empty()) continue;
      if (point.failed++ == 0) point.failure = outcome.failure;
    }
    point.figures.reserve(spec.figures.size());
    for (std::size_t f = 0; f < spec.figures.size(); ++f) {
      std::vector<double> values;
      values.reserve(repeats.size());
      for (const CellOutcome& outcome : repeats) {
        if (outcome.failure.empty()) values.push_back(outcome.figures[f]);
      }
      Estimate& estimate = point.figures.emplace_back(estimate_of(values));
      const bool none_negative =
          std::none_of(values.begin(), values.end(), [](double value) { return value < 0; });
      if (none_negative) estimate.low = std::max(estimate.low, 0.0);
    }
  }
  return points;
}

}  // namespace orrery
