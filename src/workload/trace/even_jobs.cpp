#include "workload/trace/even_jobs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/numbers/math.hpp"

namespace orrery {
namespace {

/// The quantile of the standard normal distribution, 0 < p < 1, within a relative 1.2e-9: P. J.
/// Acklam, "An algorithm for computing the inverse normal cumulative distribution function", 2003.
double normal_quantile(double p) {
  constexpr std::array<double, 6> kA = {-3.969683028665376e+01, 2.209460984245205e+02,
                                        -2.759285104469687e+02, 1.383577518672690e+02,
                                        -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr std::array<double, 5> kB = {-5.447609879822406e+01, 1.615858368580409e+02,
                                        -1.556989798598866e+02, 6.680131188771972e+01,
                                        -1.328068155288572e+01};
  constexpr std::array<double, 6> kC = {-7.784894002430293e-03, -3.223964580411365e-01,
                                        -2.400758277161838e+00, -2.549732539343734e+00,
                                        4.374664141464968e+00,  2.938163982698783e+00};
  constexpr std::array<double, 4> kD = {7.784695709041462e-03, 3.224671290700398e-01,
                                        2.445134137142996e+00, 3.754408661907416e+00};
  constexpr double kTail = 0.02425;
  const auto horner = [](const auto& of, double x) {
    double sum = 0;
    for (const double coefficient : of) sum = sum * x + coefficient;
    return sum;
  };
  if (p > 1 - kTail) return -normal_quantile(1 - p);
  if (p < kTail) {
    const double q = std::sqrt(-2 * math::log(p));
    return horner(kC, q) / (horner(kD, q) * q + 1);
  }
  const double q = p - 0.5;
  const double r = q * q;
  return horner(kA, r) * q / (horner(kB, r) * r + 1);
}

/// Run times of one part of a size's mixture, those within the limit.
struct WithinLimit {
  double median_s = 0;
  double sigma = 0;
  double share = 0;  ///< fraction of the part's run times that is within
  double limit_s = 0;

  /// The run time that a share p of them does not exceed.
  [[nodiscard]] double quantile(double p) const {
    return std::min(median_s * math::exp(sigma * normal_quantile(p * share)), limit_s);
  }
};

/// The share of a normal distribution that is below z, by bisection of its quantiles.
double normal_share(double z) {
  double low = 1e-15;
  double high = 1 - 1e-15;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (normal_quantile(middle) < z ? low : high) = middle;
  }
  return (low + high) / 2;
}

WithinLimit within(const TraceStatistics& statistics, const JobLimits& limits,
                   std::uint32_t accelerators, const RunPart& part) {
  WithinLimit run{.median_s = part.median_s * math::pow(accelerators, statistics.size_exponent),
                  .sigma = part.sigma};
  run.limit_s = std::max(
      1.0, std::min({statistics.run_max_s, limits.run_max_s, limits.work_max_s / accelerators}));
  run.share = normal_share(math::log(run.limit_s / run.median_s) / run.sigma);
  return run;
}

/// Sizes that a cluster has room for, with shares that sum to 1.
std::vector<SizeShare> sizes_within(const TraceStatistics& statistics, std::uint32_t accelerators) {
  std::vector<SizeShare> sizes;
  double sum = 0;
  for (const SizeShare& size : statistics.sizes) {
    if (size.accelerators > accelerators) continue;
    sizes.push_back(size);
    sum += size.share;
  }
  for (SizeShare& size : sizes) size.share /= sum;
  return sizes;
}

/// Parts of a whole number by shares that sum to 1: each is its share rounded up or down.
class EvenParts {
 public:
  EvenParts(double whole, double offset) : whole_(whole), sum_(offset) {}

  std::uint64_t next(double share) {
    constexpr double kRounding = 1e-9;
    sum_ += share * whole_;
    const auto up_to = static_cast<std::uint64_t>(std::floor(sum_ + kRounding));
    return up_to - std::exchange(taken_, up_to);
  }

 private:
  double whole_;
  double sum_;
  std::uint64_t taken_ = 0;
};

}  // namespace

double mean_work_within(const TraceStatistics& statistics, const JobLimits& limits) {
  constexpr int kPoints = 500;
  double work = 0;
  for (const SizeShare& size : sizes_within(statistics, limits.accelerators)) {
    for (const RunPart& part : statistics.runs) {
      const WithinLimit run = within(statistics, limits, size.accelerators, part);
      double sum = 0;
      for (int i = 0; i < kPoints; ++i) sum += run.quantile((i + 0.5) / kPoints);
      work += size.share * part.share * size.accelerators * sum / kPoints;
    }
  }
  return work;
}

EvenJobs::EvenJobs(const TraceStatistics& statistics, const JobLimits& limits, std::uint64_t jobs,
                   Rng rng)
    : left_(jobs), rng_(rng) {
  EvenParts by_size(static_cast<double>(jobs), rng_.uniform());
  for (const SizeShare& share : sizes_within(statistics, limits.accelerators)) {
    Size& size = sizes_.emplace_back(Size{share.accelerators, {}});
    const std::uint64_t of_size = by_size.next(share.share);
    EvenParts by_part(static_cast<double>(of_size), rng_.uniform());
    for (const RunPart& part : statistics.runs) {
      const WithinLimit run = within(statistics, limits, share.accelerators, part);
      const std::uint64_t of_part = by_part.next(part.share);
      for (std::uint64_t i = 0; i < of_part; ++i) {
        const double at = static_cast<double>(i) + std::clamp(rng_.uniform(), 1e-6, 1 - 1e-6);
        size.runs_s.push_back(run.quantile(at / static_cast<double>(of_part)));
      }
    }
    for (std::size_t i = size.runs_s.size(); i > 1; --i) {
      std::swap(size.runs_s[i - 1], size.runs_s[rng_.below(i)]);
    }
  }
  left_ = 0;
  for (const Size& size : sizes_) left_ += size.runs_s.size();
}

double EvenJobs::work() const {
  double work = 0;
  for (const Size& size : sizes_) {
    for (const double run : size.runs_s) work += run * size.accelerators;
  }
  return work;
}

std::size_t EvenJobs::pick_size() {
  std::uint64_t rest = rng_.below(left_);
  std::size_t size = 0;
  while (rest >= sizes_[size].runs_s.size()) rest -= sizes_[size++].runs_s.size();
  return size;
}

double EvenJobs::take_run_s(std::size_t size) {
  std::vector<double>& runs = sizes_[size].runs_s;
  const double run = runs.back();
  runs.pop_back();
  --left_;
  return run;
}

}  // namespace orrery
