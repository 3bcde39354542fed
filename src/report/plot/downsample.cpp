#include "report/plot/downsample.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/assert.hpp"

namespace orrery {
namespace {

struct Run {
  std::size_t begin;
  std::size_t end;
};

void keep_extremes(std::span<const double> values, Run run, std::vector<std::size_t>& kept) {
  std::size_t least = run.end;
  std::size_t most = run.end;
  for (std::size_t i = run.begin; i < run.end; ++i) {
    if (!std::isfinite(values[i])) continue;
    if (least == run.end || values[i] < values[least]) least = i;
    if (most == run.end || values[i] > values[most]) most = i;
  }
  kept.push_back(least == run.end ? run.begin : least);
  kept.push_back(most == run.end ? run.begin : most);
}

}  // namespace

std::vector<std::size_t> kept_samples(std::span<const std::span<const double>> series,
                                      std::size_t points_max) {
  ORRERY_ASSERT(points_max >= 4, "a plot has points");
  std::vector<std::size_t> kept;
  if (series.empty()) return kept;
  const std::size_t samples = series.front().size();
  for (const auto values : series) {
    ORRERY_ASSERT(values.size() == samples, "series share their times");
  }
  if (samples <= points_max) {
    kept.resize(samples);
    std::iota(kept.begin(), kept.end(), std::size_t{0});
    return kept;
  }
  const std::size_t runs = std::max<std::size_t>(1, (points_max - 2) / (2 * series.size()));
  kept.reserve(runs * 2 * series.size() + 2);
  kept.push_back(0);
  for (std::size_t run = 0; run < runs; ++run) {
    const Run bounds{samples * run / runs, samples * (run + 1) / runs};
    for (const auto values : series) keep_extremes(values, bounds, kept);
  }
  kept.push_back(samples - 1);
  std::ranges::sort(kept);
  kept.erase(std::ranges::unique(kept).begin(), kept.end());
  if (kept.size() > points_max) kept.resize(points_max);
  return kept;
}

Envelope envelope_of(std::span<const double> x, std::span<const double> y, std::size_t runs) {
  ORRERY_ASSERT(x.size() == y.size() && runs >= 1 && runs <= x.size(), "no run is empty");
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  Envelope envelope;
  for (auto* values : {&envelope.x, &envelope.mean, &envelope.low, &envelope.high}) {
    values->reserve(runs);
  }
  for (std::size_t run = 0; run < runs; ++run) {
    const std::size_t begin = x.size() * run / runs;
    const std::size_t end = x.size() * (run + 1) / runs;
    double sum = 0;
    double count = 0;
    double low = kNone;
    double high = kNone;
    for (std::size_t i = begin; i < end; ++i) {
      if (!std::isfinite(y[i])) continue;
      sum += y[i];
      count += 1;
      low = std::fmin(low, y[i]);
      high = std::fmax(high, y[i]);
    }
    envelope.x.push_back((x[begin] + x[end - 1]) / 2);
    envelope.mean.push_back(count > 0 ? sum / count : kNone);
    envelope.low.push_back(low);
    envelope.high.push_back(high);
  }
  return envelope;
}

}  // namespace orrery
