// scheduler/rounds/goodput_assignment.hpp - assigns options to jobs so that goodput is greatest:
// the assignment of Sia.
//
// S. Jayaram Subramanya et al., "Sia: Heterogeneity-aware, goodput-optimized ML-cluster
// scheduling", SOSP 2023, section 3.4. With g the goodput of a job by an option over that by its
// worst one, and r what a restart leaves of it, wanted is the assignment A of at most one option a
// job that makes
//   sum of A x (lambda - (r x g)^p),  p = -0.5, lambda = 1.1
// greatest, within the devices of each type. r is 1 for the option a job has and for jobs that
// wait, else max(T - N x S, 0) / (T + S): T is the time since the job was submitted, N how often it
// has been restarted and S what a restart takes (as in policies/mip.py and cluster.py of
// siasosp23/artifacts). Goodput is the option's speed: nothing here tells statistical efficiency.
//
// Sia solves an integer program. Here it is the linear one: at its vertices no more jobs than there
// are types are split, and of those the largest parts go first. Jobs with equal options share one
// column an option: waiting jobs, and running jobs that have the same option and the same restart
// factor in 256ths. Where the program takes too many steps (LinearProgram), running jobs keep what
// they have and the rest is assigned to no job. Pure. Cost: LinearProgram of groups + types rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/request/request.hpp"

namespace orrery {

struct GoodputJob {
  const JobRequest* request = nullptr;
  std::optional<std::uint32_t> has;  ///< the option that it runs with; none: it waits
  double age = 0;                    ///< seconds since it was submitted
  std::uint32_t restarts = 0;        ///< starts but for the first
  double restart = 0;                ///< seconds
};

/// Returns lambda - (r x g)^p.
[[nodiscard]] double goodput_gain(const GoodputJob& job, std::uint32_t option);

/// By job, then option: the part that the program assigns: 0 or 1, except for jobs that are split.
using GoodputAssignment = std::vector<std::vector<double>>;
/// Solves the program. `devices`: by type.
[[nodiscard]] GoodputAssignment assign_goodput(std::span<const GoodputJob> jobs,
                                               std::span<const std::uint32_t> devices);

}  // namespace orrery
