#include "scheduler/run_time.hpp"

#include <algorithm>

namespace orrery {

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

Duration time_left(const WaitingJob& job, const PlanTable* plans, Duration unknown) {
  Duration longest;
  bool known = false;
  for (const RoleRequest& role : job.request->roles) {
    const GangOption& option = role.options.front();
    const std::optional<Duration> whole =
        whole_run_time(*job.request, role, option, {best_plan(plans, option), 1});
    if (!whole) continue;
    longest = std::max(longest, *whole);
    known = true;
  }
  if (!known) return unknown;
  return Duration::from_seconds(longest.count_seconds() * (1 - job.done));
}

std::uint32_t devices_wanted(const JobRequest& job) {
  std::uint32_t devices = 0;
  for (const RoleRequest& role : job.roles) {
    devices += role.gangs * role.options.front().gang.devices;
  }
  return devices;
}

}  // namespace orrery
