#include "scheduler/request/job_array.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scheduler/place/job_placer.hpp"

namespace orrery {
namespace {

double devices_of(const JobRequest& request) {
  double devices = 0;
  for (const RoleRequest& role : request.roles)
    devices += double{1} * role.gangs * role.devices_max;
  return devices;
}

/// Returns the request of one gang of a role; the budget is divided by devices.
JobRequest replica_of(const JobRequest& request, const RoleRequest& role, ClassTable& classes) {
  JobRequest one = request;
  one.roles = {role};
  one.roles.front().gangs = 1;
  if (one.budget) one.budget = *one.budget * (devices_of(one) / devices_of(request));
  one.class_id = classes.of(one);
  return one;
}

}  // namespace

bool has_replicas(const JobRequest& request) {
  return request.kind == JobKind::kServe && gangs_of(request) > 1;
}

std::vector<JobRequest> requests_of(const JobSpec& spec, const JobRequest& request, ArrayId array,
                                    ClassTable& classes) {
  std::vector<JobRequest> jobs;
  if (has_replicas(request)) {
    for (const RoleRequest& role : request.roles) {
      jobs.insert(jobs.end(), role.gangs, replica_of(request, role, classes));
    }
  } else if (spec.array) {
    jobs.assign(spec.array->count, request);
  } else {
    return {request};
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].array = array;
    jobs[i].name = fmt::format("{}[{}]", request.name, i);
    // Where such a job fits depends on its siblings, so no other job is placed alike.
    if (keeps_distance(jobs[i])) jobs[i].class_id = ClassId();
  }
  return jobs;
}

bool keeps_distance(const JobRequest& job) {
  return job.kind == JobKind::kServe && job.array.valid() && job.roles.size() == 1 &&
         job.roles.front().spread.has_value();
}

void add_siblings(const JobRequest& job, const PlacedJob& other, std::vector<PlacedGang>& out) {
  const JobRequest& theirs = other.request;
  const bool sibling = theirs.array == job.array && theirs.roles.size() == 1 &&
                       theirs.roles.front().name == job.roles.front().name;
  if (sibling) out.insert(out.end(), other.gangs.begin(), other.gangs.end());
}

std::vector<PlacedGang> siblings_of(const JobRequest& job, std::span<const RunningJob> running) {
  std::vector<PlacedGang> gangs;
  for (const RunningJob& other : running) add_siblings(job, {*other.request, other.gangs}, gangs);
  return gangs;
}

bool too_near(const PlaceTree& tree, const JobRequest& job, std::span<const PlacedGang> gangs,
              std::span<const RunningJob> running) {
  if (!keeps_distance(job)) return false;
  const std::vector<PlacedGang> siblings = siblings_of(job, running);
  const std::vector<NodeRun> full = avoided_by_spread(tree, job.roles.front(), {0, {}, siblings});
  const auto is_full = [&](const NodeDevices& at) {
    return std::ranges::any_of(full, [&](const NodeRun& run) { return run.contains(at.node); });
  };
  return std::ranges::any_of(gangs, [&](const PlacedGang& gang) {
    return std::ranges::any_of(gang.allocation.ranks, is_full);
  });
}

}  // namespace orrery
