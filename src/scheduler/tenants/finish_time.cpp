#include "scheduler/tenants/finish_time.hpp"

#include <algorithm>

#include "scheduler/price/run_time.hpp"

namespace orrery {
namespace {

double time_alone(const WaitingJob& job, const Policy& policy, const Situation& situation) {
  constexpr double kShortest = 1;  // second
  WaitingJob whole = job;
  whole.done = 0;
  const Duration unknown = Duration::from_seconds(policy.unknown_run.value());
  return std::max(time_left(whole, situation.plans, unknown).count_seconds(), kShortest);
}

}  // namespace

double time_on_its_part(const WaitingJob& job, const Policy& policy, const Situation& situation) {
  const auto jobs = static_cast<double>(situation.waiting.size() + situation.running.size());
  const double devices = situation.fleet.topology().device_count();
  const double squeezed = std::max(1.0, devices_wanted(*job.request) * jobs / devices);
  return time_alone(job, policy, situation) * squeezed;
}

double finish_time_fairness(const WaitingJob& job, const Policy& policy,
                            const Situation& situation) {
  const double age = std::max(0.0, (situation.now - job.submitted).count_seconds());
  const double left = time_alone(job, policy, situation) * (1 - job.done);
  return (age + left) / time_on_its_part(job, policy, situation);
}

}  // namespace orrery
