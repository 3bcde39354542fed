#include "twin/faults/failure_fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/assert.hpp"
#include "base/numbers/math.hpp"

namespace orrery {
namespace {

constexpr Duration kDay = Duration::hours(24);
constexpr Duration kRelapseWindow = kDay * 14;
constexpr Duration kTogether = Duration::minutes(15);
constexpr Duration kTransientMax = Duration::hours(1);

double days(Duration d) { return d.count_seconds() / kDay.count_seconds(); }

double count_of(std::size_t n) { return static_cast<double>(n); }

// The least value such that at least this share of the sorted values does not exceed it.
double quantile(const std::vector<double>& sorted, double share) {
  const auto at = static_cast<std::size_t>(share * count_of(sorted.size()));
  return sorted[std::min(at, sorted.size() - 1)];
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / count_of(values.size());
}

double variance_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum / count_of(values.size());
}

double gap_cv(const Observation& seen) {
  std::vector<double> gaps;
  gaps.reserve(seen.faults.size());
  for (std::size_t i = 1; i < seen.faults.size(); ++i) {
    gaps.push_back(days(seen.faults[i].at - seen.faults[i - 1].at));
  }
  const double mean = mean_of(gaps);
  return mean > 0 ? std::sqrt(variance_of(gaps)) / mean : 0;
}

// Counts of whole windows from the first fault on.
double dispersion(const Observation& seen, Duration window) {
  const Instant first = seen.faults.front().at;
  const double length = days(seen.faults.back().at - first) / days(window);
  if (length < 2) return 1;
  std::vector<double> counts(static_cast<std::size_t>(length), 0);
  for (const ObservedFault& fault : seen.faults) {
    const auto at = static_cast<std::size_t>((fault.at - first).count_ns() / window.count_ns());
    if (at < counts.size()) counts[at] += 1;
  }
  const double mean = mean_of(counts);
  return mean > 0 ? variance_of(counts) / mean : 1;
}

// For every fault, the time from its `from` to the next fault of its unit; no entry for a last
// fault.
std::vector<double> times_to_next(const Observation& seen, Instant ObservedFault::* from) {
  std::map<std::uint32_t, const ObservedFault*> last;
  std::vector<double> times;
  times.reserve(seen.faults.size());
  for (const ObservedFault& fault : seen.faults) {
    const ObservedFault*& before = last[fault.unit];
    if (before != nullptr) times.push_back(days(fault.at - before->*from));
    before = &fault;
  }
  return times;
}

double share_within(const std::vector<double>& times, double limit, std::size_t of) {
  const auto within =
      std::count_if(times.begin(), times.end(), [&](double time) { return time <= limit; });
  return static_cast<double>(within) / count_of(of);
}

double rate_per_unit_day(const Observation& seen) {
  return count_of(seen.faults.size()) / (static_cast<double>(seen.units) * days(seen.length));
}

double by_chance(const Observation& seen, double within_days) {
  return -math::expm1(-rate_per_unit_day(seen) * within_days);
}

// The chance that a window of `width` spreads that holds one of two events of a burst holds the
// other too: their distance is Laplace.
double held_together(double width) { return 1 + math::expm1(-width) / width; }

// The spread in days at which a day holds `ratio` of the pairs that 14 days hold, by bisection.
double spread_of(double ratio) {
  double low = 1e-4;
  double high = 100;
  for (int i = 0; i < 60; ++i) {
    const double middle = std::sqrt(low * high);
    const bool too_wide = held_together(1 / middle) / held_together(14 / middle) < ratio;
    (too_wide ? high : low) = middle;
  }
  return low;
}

bool follows(const ObservedFault& before, const ObservedFault& fault) {
  return fault.at - before.at <= kTogether;
}

std::vector<double> sorted_repairs(const Observation& seen) {
  std::vector<double> repairs;
  repairs.reserve(seen.faults.size());
  for (const ObservedFault& fault : seen.faults) {
    repairs.push_back((fault.over - fault.at).count_seconds());
  }
  std::sort(repairs.begin(), repairs.end());
  return repairs;
}

}  // namespace

FaultStatistics measure(const Observation& seen) {
  ORRERY_ASSERT(seen.faults.size() >= 2 && seen.length > Duration(), "two faults in some time");
  const std::vector<double> repairs = sorted_repairs(seen);
  const std::vector<double> gaps = times_to_next(seen, &ObservedFault::at);
  return {.faults = seen.faults.size(),
          .per_1000_unit_days = 1000 * rate_per_unit_day(seen),
          .gap_cv = gap_cv(seen),
          .dispersion_1 = dispersion(seen, kDay),
          .dispersion_14 = dispersion(seen, kRelapseWindow),
          .repair_median = Seconds(quantile(repairs, 0.5)),
          .repair_mean = Seconds(mean_of(repairs)),
          .repair_p90 = Seconds(quantile(repairs, 0.9)),
          .relapse = share_within(gaps, days(kRelapseWindow), seen.faults.size()),
          .relapse_by_chance = by_chance(seen, days(kRelapseWindow))};
}

std::vector<ObservedFault> without_relapses(const Observation& seen) {
  std::map<std::uint32_t, Instant> last;
  std::vector<ObservedFault> first;
  first.reserve(seen.faults.size());
  for (const ObservedFault& fault : seen.faults) {
    const auto [before, is_first] = last.try_emplace(fault.unit, fault.over);
    if (is_first || fault.at - before->second > kRelapseWindow) first.push_back(fault);
    before->second = fault.over;
  }
  return first;
}

RepairModel fit_repair(const Observation& seen) {
  ORRERY_ASSERT(!seen.faults.empty(), "repairs of some faults");
  std::vector<double> repairs = sorted_repairs(seen);
  const auto lasting =
      std::upper_bound(repairs.begin(), repairs.end(), kTransientMax.count_seconds());
  const std::vector<double> transient(repairs.begin(), lasting);
  const std::vector<double> rest(lasting, repairs.end());
  RepairModel model;
  model.transient_share = count_of(transient.size()) / count_of(repairs.size());
  model.transient = Seconds(transient.empty() ? 0 : mean_of(transient));
  model.median = Seconds(rest.empty() ? 1 : std::max(1.0, quantile(rest, 0.5)));
  model.mean = rest.empty() ? model.median : std::max(model.median, Seconds(mean_of(rest)));
  return model;
}

RelapseModel fit_relapse(const Observation& seen) {
  const std::vector<double> times = times_to_next(seen, &ObservedFault::over);
  const auto excess = [&](double limit) {
    const double chance = by_chance(seen, limit);
    return (share_within(times, limit, seen.faults.size()) - chance) / (1 - chance);
  };
  const double all = excess(14);
  if (all <= 0) return {};
  // F(t) = 1 - exp(-(t/scale)^shape): log(-log(1 - F)) is a line over log t.
  constexpr double kEarly = 0.1;
  constexpr double kLate = 3;
  const auto height = [&](double limit) {
    const double part = std::clamp(excess(limit) / all, 0.01, 0.99);
    return math::log(-math::log1p(-part));
  };
  const double rise = height(kLate) - height(kEarly);
  RelapseModel model{.probability = std::min(all, 0.95)};
  model.shape = std::clamp(rise / math::log(kLate / kEarly), 0.1, 10.0);
  const double scale_days = math::exp(math::log(kLate) - height(kLate) / model.shape);
  model.scale = Seconds(scale_days * kDay.count_seconds());
  // The window shows the probability times the part of the Weibull within it.
  const double shown = -math::expm1(-math::pow(14 / scale_days, model.shape));
  model.probability = std::min(all / shown, 0.95);
  return model;
}

BurstModel fit_simultaneous(const Observation& seen) {
  const double faults = count_of(seen.faults.size());
  double groups = 0;   // of two and more
  double grouped = 0;  // faults in them
  std::size_t size = 1;
  for (std::size_t i = 1; i <= seen.faults.size(); ++i) {
    if (i < seen.faults.size() && follows(seen.faults[i - 1], seen.faults[i])) {
      ++size;
      continue;
    }
    if (size > 1) {
      groups += 1;
      grouped += count_of(size);
    }
    size = 1;
  }
  BurstModel model;
  if (groups == 0) return model;
  // If sizes are geometric with mean m, groups of two and more have the mean m + 1 and hold 1 -
  // 1/m^2 of the faults.
  model.size = std::max(1.01, grouped / groups - 1);
  model.share = std::min(1.0, grouped / faults / (1 - 1 / (model.size * model.size)));
  model.spread = Seconds(60);
  return model;
}

std::vector<ObservedFault> without_simultaneous(const Observation& seen) {
  std::vector<ObservedFault> first;
  first.reserve(seen.faults.size());
  for (std::size_t i = 0; i < seen.faults.size(); ++i) {
    if (i > 0 && follows(seen.faults[i - 1], seen.faults[i])) continue;
    first.push_back(seen.faults[i]);
  }
  return first;
}

BurstModel fit_waves(const Observation& seen) {
  const double cv = gap_cv(seen);
  const double day = dispersion(seen, kDay) - 1;
  const double fortnight = dispersion(seen, kRelapseWindow) - 1;
  BurstModel model;
  if (cv <= 1 || day <= 0 || fortnight <= 0) return model;
  const double spread = spread_of(std::min(day / fortnight, 0.99));
  // A geometric size with mean m has E[K(K-1)] / E[K] = 2 (m - 1).
  const double pairs = fortnight / held_together(14 / spread) / 2;  // share x (m - 1)
  const double cluster = (cv * cv + 1) / 2;                         // 1 / (1 - share + share / m)
  model.size = std::max(pairs / (1 - 1 / cluster), 1.0 + pairs);
  model.share = pairs / (model.size - 1);
  model.spread = Seconds(spread * kDay.count_seconds());
  return model;
}

}  // namespace orrery
