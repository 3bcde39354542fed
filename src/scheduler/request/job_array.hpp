// scheduler/request/job_array.hpp - the jobs that one spec stands for: those of its `array`, or the
// replicas of a service.
//
// Each is a job of its own, with its own phase, attempt, epoch and placement: it starts when its
// own gang has a place, and a lost node stops the jobs with ranks on it and no others. Gangs of
// other kinds of job (Train, Batch, FineTune) work on one result, start together and end together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/place/place_tree.hpp"
#include "scheduler/plans/class_table.hpp"
#include "scheduler/request/placed_gang.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

/// Whether a request is that of a service with several replicas, which do not depend on each other.
[[nodiscard]] bool has_replicas(const JobRequest& request);

/// Returns the requests of a spec's jobs in order, named "name[0]" and so on if there are several;
/// one for each replica of a service, in the order of its roles. `request` is the resolved spec.
/// `array` is the number of the array, unused if the spec is one job.
[[nodiscard]] std::vector<JobRequest> requests_of(const JobSpec& spec, const JobRequest& request,
                                                  ArrayId array, ClassTable& classes);

/// Whether the places of the other jobs of its array limit where a job may go: replicas of a role
/// with `spread`.
[[nodiscard]] bool keeps_distance(const JobRequest& job);

/// Returns the gangs of a job's array that count for its `spread`: those of its role, among
/// `running`. Precondition: keeps_distance(job). O(running).
[[nodiscard]] std::vector<PlacedGang> siblings_of(const JobRequest& job,
                                                  std::span<const RunningJob> running);

/// A job that is placed.
struct PlacedJob {
  const JobRequest& request;
  std::span<const PlacedGang> gangs;
};
/// Adds the gangs of another job that count for the `spread` of `job`, if it is of its array and
/// role.
void add_siblings(const JobRequest& job, const PlacedJob& other, std::vector<PlacedGang>& out);

/// Whether a node of `gangs` is where the `spread` of a job's role allows no further gang, given
/// the jobs in `running`. O(running).
[[nodiscard]] bool too_near(const PlaceTree& tree, const JobRequest& job,
                            std::span<const PlacedGang> gangs, std::span<const RunningJob> running);

}  // namespace orrery
