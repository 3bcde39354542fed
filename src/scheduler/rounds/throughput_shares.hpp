// scheduler/rounds/throughput_shares.hpp - how jobs of unlike speeds share devices of unlike types:
// the allocation of Gavel's max-min fairness.
//
// D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning
// Workloads", OSDI 2020, section 4.1. X(m, o) is the fraction of its time that job m runs by option
// o. The X are those for which the worst-off job has most:
//   maximise  min over m of  z(m) x sum over o of X(m, o) x speed(m, o) / equal(m)
//   where     sum over o of X(m, o) <= 1,   sum over m, o on type j of z(m, o) x X(m, o) <= n(j)
// with z the devices, n(j) the devices of a type and equal(m) the speed of the job if it had each
// type for a time in proportion to n(j). What the minimum leaves undetermined goes to the jobs that
// it helps most: a thousandth of the mean is added to the objective. Jobs that are alike have equal
// shares, so the program has a column for each option of a class of jobs, not of a job.
//
// Options of types without devices have X = 0, and a speed below 1e-6 of the job's best counts as
// 1e-6 of it. If the program has no solution, or takes too many steps, shares are equal_shares.
//
// The result of the last call is cached in a scheduler's memory; that changes no answer. Cost: a
// LinearProgram with classes + types rows; nothing if the inputs equal the last ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fleet/ids.hpp"

namespace orrery {

/// Jobs that have the same options.
struct ShareClass {
  struct Option {
    FleetTypeId type;
    std::uint32_t devices = 1;
    double speed = 1;  ///< speed of the whole gang, in any unit that the options of the class share

    friend auto operator<=>(const Option&, const Option&) = default;
  };
  std::vector<Option> options;
  std::uint32_t jobs = 1;

  friend bool operator==(const ShareClass&, const ShareClass&) = default;
};

/// X by option, in proportion to the devices of each option's type.
[[nodiscard]] std::vector<double> equal_shares(const ShareClass& jobs,
                                               std::span<const std::uint32_t> devices);

/// X by class, then option. `devices`: n(j) by type.
[[nodiscard]] std::vector<std::vector<double>> throughput_shares(
    std::span<const ShareClass> classes, std::span<const std::uint32_t> devices);

/// throughput_shares() that keeps its last result.
class ThroughputShares {
 public:
  [[nodiscard]] const std::vector<std::vector<double>>& of(
      const std::vector<ShareClass>& classes, const std::vector<std::uint32_t>& devices);

 private:
  std::vector<ShareClass> classes_;
  std::vector<std::uint32_t> devices_;
  std::vector<std::vector<double>> found_;
};

}  // namespace orrery
