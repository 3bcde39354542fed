// twin/figures/fairness.hpp - how well each tenant and kind of job was served in a simulation.
//
// Finish-time fairness (Mahajan et al., "Themis: Fair and Efficient GPU Cluster Scheduling", NSDI
// 2020): rho of a job is its completion time over the one it would have if its tenant had its share
// of the accelerators alone; above 1 sharing costs the job time. A tenant's share is its weight
// over those of all tenants with jobs. Alone, a tenant's jobs start in the order of submission
// wherever enough is free, a later one before an earlier one that has no room; a job larger than
// the share runs on the whole share for proportionally longer. Pure. Cost: O(n log n), and a step
// for each size of job.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "twin/simulation.hpp"

namespace orrery {

/// Means over the measured jobs of a tenant or kind that have ended.
struct GroupFigures {
  std::string name;
  std::uint64_t jobs = 0;
  double avg_jct_s = 0;
  double avg_queueing_s = 0;
  double avg_stretch = 0;
  double rho = 0;             ///< of tenants
  double dominant_share = 0;  ///< of tenants: of the type of which it had the largest part
};

struct FairnessFigures {
  std::vector<GroupFigures> tenants;  ///< tenants with measured jobs that have ended, by name
  std::vector<GroupFigures> kinds;    ///< by name
  double avg_stretch = 0;             ///< mean completion over run time, at least 1
  double rho = 0;
  double jain =
      1;  ///< Jain's index of the tenants' rho: 1 where all fare alike, 1/n where one does
};

struct FairnessInputs {
  std::span<const JobOutcome> outcomes;
  std::span<const PlayedJob> jobs;  ///< played jobs, at least as many and in the same order
  const Topology& topology;
  const TenantTree& tenants;
  Duration time;  ///< that the simulation took
};

/// The time a job takes without waiting: its work on the type its run time is of, else the time for
/// which it had devices.
[[nodiscard]] double run_seconds(const JobOutcome& job);

/// Completion over run time, both in seconds; runs under 10 s count as 10 s, and the least is 1 (D.
/// G. Feitelson's bounded slowdown).
[[nodiscard]] double stretch_of(const JobOutcome& job);

struct AloneJob {
  double submit_s = 0;
  double run_s = 0;
  std::uint32_t devices = 1;
};

/// Completion times of jobs, by their submission, on this many devices of their own.
[[nodiscard]] std::vector<double> completions_alone(std::span<const AloneJob> jobs,
                                                    std::uint32_t devices);

[[nodiscard]] FairnessFigures fairness_of(const FairnessInputs& inputs);

}  // namespace orrery
