#include "scheduler/price/run_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/numbers/math.hpp"

namespace orrery {
namespace {

double upper_tail(double z) {
  constexpr double kHalfRoot = 0.70710678118654752;
  return 0.5 * std::erfc(z * kHalfRoot);
}

double polynomial(std::span<const double> coefficients, double x) {
  double sum = 0;
  for (const double c : coefficients) sum = sum * x + c;
  return sum;
}

// The z that is exceeded with probability `tail`: P. J. Acklam's rational approximation of the
// inverse normal distribution (2003), relative error below 1.2e-9, far tails included.
double exceeded(double tail) {
  constexpr double kFar = 0.02425;
  constexpr std::array kNear{-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                             1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr std::array kUnderNear{-5.447609879822406e+01, 1.615858368580409e+02,
                                  -1.556989798598866e+02, 6.680131188771972e+01,
                                  -1.328068155288572e+01, 1.0};
  constexpr std::array kTail{-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                             -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr std::array kUnderTail{7.784695709041462e-03, 3.224671290700398e-01,
                                  2.445134137142996e+00, 3.754408661907416e+00, 1.0};
  if (tail > 1 - kFar) return -exceeded(1 - tail);
  if (tail >= kFar) {
    const double q = 0.5 - tail;
    return polynomial(kNear, q * q) * q / polynomial(kUnderNear, q * q);
  }
  const double q = std::sqrt(-2 * math::log(tail));
  return -polynomial(kTail, q) / polynomial(kUnderTail, q);
}

}  // namespace

const PlannedWork* best_plan(const PlanTable* plans, const GangOption& option) {
  if (plans == nullptr || !option.plan) return nullptr;
  const PlanEntry* entry = plans->find(*option.plan);
  return entry != nullptr && *entry ? &entry->value().front() : nullptr;
}

std::optional<Duration> whole_run_time(const JobRequest& job, const RoleRequest& role,
                                       const GangOption& option, const PlanHere& here) {
  std::optional<Duration> whole;
  if (here.plan != nullptr && here.plan->training() != nullptr && role.steps) {
    whole = Duration::from_seconds(*role.steps * here.plan->step_seconds * here.ratio);
  } else if (job.estimate) {
    whole = Duration::from_seconds(job.estimate->count_seconds() / option.speed);
  } else if (job.time_limit) {
    whole = job.time_limit;
  }
  if (whole && job.time_limit) whole = std::min(*whole, *job.time_limit);
  return whole;
}

std::optional<Duration> known_whole_time(const JobRequest& job, const PlanTable* plans) {
  Duration longest;
  bool known = false;
  for (const RoleRequest& role : job.roles) {
    const GangOption& option = role.options.front();
    const std::optional<Duration> whole =
        whole_run_time(job, role, option, {best_plan(plans, option), 1});
    if (!whole) continue;
    longest = std::max(longest, *whole);
    known = true;
  }
  return known ? std::optional(longest) : std::nullopt;
}

std::optional<Duration> known_time_left(const WaitingJob& job, const PlanTable* plans) {
  const std::optional<Duration> whole = known_whole_time(*job.request, plans);
  if (!whole) return std::nullopt;
  return Duration::from_seconds(whole->count_seconds() * (1 - job.done));
}

Duration time_left(const WaitingJob& job, const PlanTable* plans, Duration unknown) {
  return known_time_left(job, plans).value_or(unknown);
}

double time_left(const UncertainRun& run, double part) {
  constexpr double kTailMost = 37;  // beyond it the probability is no number
  if (run.sigma <= 0) return std::max(0.0, run.expected - run.lasted);
  double a = -kTailMost;
  if (run.lasted > 0) a = std::clamp(math::log(run.lasted / run.expected) / run.sigma, a, -a);
  const double z = exceeded((1 - part) * upper_tail(a));
  const double whole = run.expected * math::exp(run.sigma * z);
  // Beyond the tail it goes on as it would from there: in proportion.
  const double from = a < kTailMost ? run.lasted : run.expected * math::exp(run.sigma * a);
  const double left = std::max(0.0, whole - from);
  return a < kTailMost ? left : left * (run.lasted / from);
}

std::uint32_t devices_wanted(const JobRequest& job) {
  std::uint32_t devices = 0;
  for (const RoleRequest& role : job.roles) {
    devices += role.gangs * role.options.front().gang.devices;
  }
  return devices;
}

}  // namespace orrery
