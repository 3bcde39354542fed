#include "serving/scaling/demand_forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/assert.hpp"
#include "base/numbers/math.hpp"

namespace orrery {
namespace {

constexpr std::size_t kPoints = 720;
constexpr double kErrorGain = 0.1;
constexpr double kLevelGainLeast = 0.05;
constexpr double kLevelGainMost = 0.8;
constexpr double kTrendGain = 0.03;
constexpr double kTrendDamping = 0.9;
/// Ticks over which an error is a mean: a queue evens out what is shorter.
constexpr std::size_t kMeanTicks = 6;
/// Errors of a horizon from which its quantiles are taken; with fewer, the prior counts, too.
constexpr std::size_t kErrorsMin = 20;
/// The half-width of the interval, as a share of the level, that a forecast without a past has.
constexpr double kPriorSpread = 0.25;

/// What an observation may come late and still count for its tick.
constexpr Duration kHalfATick = Duration::nanoseconds(DemandForecast::kTick.count_ns() / 2);

constexpr Duration kBucket = Duration::minutes(5);
constexpr std::int64_t kBucketsADay = 288;
constexpr std::array<std::int64_t, 2> kSeasons{kBucketsADay, 7 * kBucketsADay};
constexpr std::size_t kBuckets = 8 * kBucketsADay;

std::int64_t bucket_of(Instant at) { return (at - Instant()).count_ns() / kBucket.count_ns(); }

std::uint32_t ticks_in(Duration time) {
  constexpr std::int64_t kTicksMax = 1'000'000;
  const std::int64_t tick = DemandForecast::kTick.count_ns();
  const std::int64_t ticks = (time.count_ns() + tick - 1) / tick;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(ticks, 1, kTicksMax));
}

/// Returns how often a trend counts in that many ticks: the sum of a geometric series, as it fades.
double trend_weight(std::uint32_t ticks) {
  return kTrendDamping * (1 - math::pow(kTrendDamping, ticks)) / (1 - kTrendDamping);
}

}  // namespace

double DemandSeries::ahead(const Point& point, double trend_weight) {
  return std::max(point.level + point.trend * trend_weight, 0.0);
}

void DemandSeries::keep(const Point& point) {
  points_.push_back(point);
  if (points_.size() > kPoints) points_.pop_front();
}

void DemandSeries::add(Instant at, double value, std::uint32_t steps) {
  at_ = at;
  const std::int64_t number = bucket_of(at);
  if (history_.empty() || history_.back().number != number) {
    history_.push_back({.number = number});
    if (history_.size() > kBuckets) history_.pop_front();
    season_ = best_season();
  }
  history_.back().sum += value;
  ++history_.back().values;
  if (points_.empty()) return keep({value, value, 0});
  const Point before = points_.back();
  const std::uint32_t missing = std::min<std::uint32_t>(steps - 1, kPoints);
  for (std::uint32_t i = 1; i <= missing; ++i) {
    const double fade = math::pow(kTrendDamping, i);
    keep({std::nullopt, ahead(before, trend_weight(i)), before.trend * fade});
  }
  const double expected = ahead(before, trend_weight(steps));
  const double error = value - expected;
  bias_ += kErrorGain * (error - bias_);
  spread_ += kErrorGain * (std::abs(error) - spread_);
  // Errors of one sign are a change of the level, those of both are noise (Trigg and Leach 1967).
  const double signal = spread_ > 0 ? bias_ / spread_ : 0;
  const double once = std::clamp(signal * signal, kLevelGainLeast, kLevelGainMost);
  // After a gap a value says more of the level than the forecast does.
  const double gain = 1 - math::pow(1 - once, steps);
  const double level = expected + gain * (value - expected);
  const double trend = before.trend * math::pow(kTrendDamping, steps);
  keep({value, level, trend + kTrendGain * ((level - before.level) / steps - trend)});
}

double DemandSeries::error_quantile(std::uint32_t ticks, double share) const {
  const std::size_t known = points_.size();
  // Beyond what the past covers, errors grow as those of a random walk.
  const std::size_t covered = known > kErrorsMin ? known - kErrorsMin : 1;
  const auto lag = std::min<std::size_t>(ticks, covered);
  const double weight = trend_weight(static_cast<std::uint32_t>(lag));
  std::vector<double> errors;
  errors.reserve(known);
  for (std::size_t i = lag; i < known; ++i) {
    const Point& from = points_[i - lag];
    const Point& to = points_[i];
    if (!from.value || !to.value) continue;
    errors.push_back(mean_until(i) - ahead(from, weight));
  }
  const double grows = std::sqrt(static_cast<double>(ticks) / static_cast<double>(lag));
  const double prior = kPriorSpread * points_.back().level * (2 * share - 1);
  if (errors.empty()) return prior;
  const double count = static_cast<double>(errors.size());
  const double rank = std::ceil((count + 1) * share);
  const auto at = errors.begin() + static_cast<std::ptrdiff_t>(std::clamp(rank, 1.0, count)) - 1;
  std::ranges::nth_element(errors, at);
  const double found = *at;
  const double quantile = found > 0 ? found * grows : found;
  return errors.size() < kErrorsMin ? std::max(quantile, prior) : quantile;
}

double DemandSeries::mean_until(std::size_t at) const {
  double sum = 0;
  double values = 0;
  for (std::size_t i = at + 1 - std::min(at + 1, kMeanTicks); i <= at; ++i) {
    if (!points_[i].value) continue;
    sum += *points_[i].value;
    ++values;
  }
  return sum / values;
}

std::optional<double> DemandSeries::bucket(std::int64_t number) const {
  const auto at = std::ranges::lower_bound(history_, number, {}, &Bucket::number);
  if (at == history_.end() || at->number != number) return std::nullopt;
  return at->sum / at->values;
}

/// Returns by how much the errors of a forecast by the season, over the last day, are smaller than
/// those of a forecast of no change.
std::optional<double> DemandSeries::seasonal_gain(std::int64_t season) const {
  const std::int64_t newest = history_.back().number;
  double with = 0;
  double without = 0;
  std::int64_t compared = 0;
  for (std::int64_t b = newest - kBucketsADay; b < newest; ++b) {
    const auto now = bucket(b);
    const auto before = bucket(b - 1);
    const auto then = bucket(b - season);
    const auto then_before = bucket(b - 1 - season);
    if (!now || !before || !then || !then_before) continue;
    with += std::abs((*now - *before) - (*then - *then_before));
    without += std::abs(*now - *before);
    ++compared;
  }
  if (2 * compared < kBucketsADay || with >= without) return std::nullopt;
  return without - with;
}

std::optional<std::int64_t> DemandSeries::best_season() const {
  std::optional<std::int64_t> best;
  double gain_best = 0;
  for (const std::int64_t season : kSeasons) {
    const std::optional<double> gain = seasonal_gain(season);
    if (!gain || *gain <= gain_best) continue;
    best = season;
    gain_best = *gain;
  }
  return best;
}

std::optional<double> DemandSeries::seasonal_change(Duration time) const {
  if (!season_) return std::nullopt;
  const std::int64_t from = history_.back().number - *season_;
  const double width =
      static_cast<double>(time.count_ns()) / static_cast<double>(kBucket.count_ns());
  const auto whole = static_cast<std::int64_t>(width);
  const auto start = bucket(from);
  const auto lower = bucket(from + whole);
  const auto upper = bucket(from + whole + 1);
  if (!start || !lower || !upper) return std::nullopt;
  return *lower + (*upper - *lower) * (width - static_cast<double>(whole)) - *start;
}

double DemandSeries::quantile(std::uint32_t ticks, double share) const {
  const Point& now = points_.back();
  const std::optional<double> season = seasonal_change(DemandForecast::kTick * ticks);
  const double expected =
      season ? std::max(now.level + *season, 0.0) : ahead(now, trend_weight(ticks));
  return std::max(expected + error_quantile(ticks, share), 0.0);
}

Status DemandForecast::observe(Instant at, const TokenDemand& demand) {
  for (const double value : {demand.prompt_s, demand.output_s}) {
    // The negation refuses NaN, too.
    if (std::isfinite(value) && value >= 0) continue;
    return input_error({}, fmt::format("a demand of {} tokens/s, expected 0 or more", value));
  }
  if (last_ && at <= *last_) {
    return input_error({}, "an observation that is not after the one before");
  }
  // Rounded, as observations are never exactly a tick apart.
  const std::uint32_t steps = last_ ? ticks_in(at - *last_ - kHalfATick) : 1;
  prompt_.add(at, demand.prompt_s, steps);
  output_.add(at, demand.output_s, steps);
  last_ = at;
  return {};
}

TokenDemand DemandForecast::quantile(Instant when, double share) const {
  ORRERY_ASSERT(share >= 0.5 && share < 1, "a quantile of demand is at least the median");
  if (!last_) return {};
  const std::uint32_t ticks = ticks_in(when - *last_);
  return {prompt_.quantile(ticks, share), output_.quantile(ticks, share)};
}

}  // namespace orrery
