// serving/scaling/demand_forecast.hpp - what the clients of a service will ask for, as quantiles.
//
// Made of observations, about one a tick. Level and trend follow each of them (Holt's method with a
// damped trend, the level the faster the longer the errors have one sign); where the history covers
// a season and the season explains it better than no change does, the change of the season takes
// the place of the trend. The quantiles are those of the forecast's own errors in the last hour, at
// the same horizon, of means over half a minute. An observation that is missing lengthens the
// horizon and so widens the interval; zero is a number like any other. Owned by its user, on one
// thread; pure: time comes with the observations. Memory: 720 ticks and 8 days of 5 minutes, 100
// KiB at most. Cost: an observation O(1), each five minutes O(buckets of a day); a quantile O(ticks
// kept). Invariants: quantiles grow with the share and are not negative; a demand of another scale
// has quantiles of that scale.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/error.hpp"
#include "base/time.hpp"

namespace orrery {

/// Tokens a second that clients ask for.
struct TokenDemand {
  double prompt_s = 0;
  double output_s = 0;

  friend bool operator==(const TokenDemand&, const TokenDemand&) = default;
};

/// One kind of tokens; of a DemandForecast.
class DemandSeries {
 public:
  /// Adds the value `steps` ticks after the one before. Precondition: steps > 0, value >= 0.
  void add(Instant at, double value, std::uint32_t steps);
  /// Returns the quantile `ticks` after the newest value. Precondition: ticks > 0, there is a
  /// value.
  [[nodiscard]] double quantile(std::uint32_t ticks, double share) const;

 private:
  struct Point {
    std::optional<double> value;  ///< none: it is missing
    double level = 0;
    double trend = 0;
  };
  /// The mean of five minutes.
  struct Bucket {
    std::int64_t number = 0;
    double sum = 0;
    std::uint32_t values = 0;
  };

  void keep(const Point& point);
  [[nodiscard]] static double ahead(const Point& point, double trend_weight);
  /// Returns the error that the quantile adds to the forecast.
  [[nodiscard]] double error_quantile(std::uint32_t ticks, double share) const;
  /// Returns the mean of the values that end with one that is there.
  [[nodiscard]] double mean_until(std::size_t at) const;
  [[nodiscard]] std::optional<double> bucket(std::int64_t number) const;
  /// Returns the change in that time that the best season shows; none: no season explains the past.
  [[nodiscard]] std::optional<double> seasonal_change(Duration time) const;
  [[nodiscard]] std::optional<double> seasonal_gain(std::int64_t season) const;
  /// Returns the buckets of the season that explains the past best; none: none does.
  [[nodiscard]] std::optional<std::int64_t> best_season() const;

  Instant at_;
  double bias_ = 0;                     ///< of one-step forecasts, newer ones weigh more
  double spread_ = 0;                   ///< .. the mean of their absolute errors
  std::deque<Point> points_;            ///< one a tick, the newest last
  std::deque<Bucket> history_;          ///< ascending, without empty ones
  std::optional<std::int64_t> season_;  ///< that explained the past best when the newest one began
};

class DemandForecast {
 public:
  static constexpr Duration kTick = Duration::seconds(5);

  /// Adds the mean demand of the tick that ends at `at`. Errors: a value that is no number, is
  /// infinite or is negative; a time that is not after the one before.
  Status observe(Instant at, const TokenDemand& demand);
  [[nodiscard]] bool is_empty() const { return !last_.has_value(); }
  /// Returns the demand that the mean of the half minute until `when` exceeds with a probability of
  /// 1 - share; zero where nothing was observed. Precondition: 0.5 <= share < 1.
  [[nodiscard]] TokenDemand quantile(Instant when, double share) const;

 private:
  std::optional<Instant> last_;
  DemandSeries prompt_;
  DemandSeries output_;
};

}  // namespace orrery
