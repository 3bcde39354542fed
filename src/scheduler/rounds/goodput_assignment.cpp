#include "scheduler/rounds/goodput_assignment.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "scheduler/rounds/linear_program.hpp"

namespace orrery {
namespace {

constexpr double kLambda = 1.1;
/// Added to the gain of a running job for the option that it has: it goes on where another job
/// would gain as much.
constexpr double kStays = 1e-3;
/// The steps from 0 to 1 in which the restart factor is counted.
constexpr double kRestartSteps = 256;

const std::vector<GangOption>& options_of(const GoodputJob& job) {
  return job.request->roles.front().options;
}

/// The fraction of its goodput that a restart leaves of a job.
double restart_factor(const GoodputJob& job) {
  const double whole = job.age + job.restart;
  return whole > 0 ? std::max(job.age - job.restarts * job.restart, 0.0) / whole : 1;
}

/// The restart factor in whole steps, by which the program distinguishes jobs; 0 for jobs that
/// wait.
std::uint32_t restart_steps(const GoodputJob& job) {
  return job.has ? static_cast<std::uint32_t>(std::lround(restart_factor(job) * kRestartSteps)) : 0;
}

double gain_where_left(const GoodputJob& job, std::uint32_t option, double left) {
  const std::vector<GangOption>& options = options_of(job);
  double worst = options.front().speed;
  for (const GangOption& other : options) worst = std::min(worst, other.speed);
  const double goodput = worst > 0 ? options[option].speed / worst : 1;
  const bool stays = !job.has || *job.has == option;
  const double kept = (stays ? 1 : left) * goodput;
  return kept > 0 ? kLambda - 1 / std::sqrt(kept) : -kLambda;
}

/// An option as the program sees it.
using ProgramOption = std::tuple<FleetTypeId, std::uint32_t, double>;
/// A job as the program sees it: its options, the one it has, and its restart steps.
using ProgramJob =
    std::tuple<std::vector<ProgramOption>, std::optional<std::uint32_t>, std::uint32_t>;

/// Groups jobs that are equal for the program.
std::vector<std::vector<std::uint32_t>> groups_of(std::span<const GoodputJob> jobs) {
  std::vector<std::vector<std::uint32_t>> groups;
  std::map<ProgramJob, std::size_t> known;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    std::vector<ProgramOption> options;
    for (const GangOption& option : options_of(jobs[i])) {
      options.emplace_back(option.gang.type, option.gang.devices, option.speed);
    }
    ProgramJob alike{std::move(options), jobs[i].has, restart_steps(jobs[i])};
    const std::size_t at = known.emplace(std::move(alike), groups.size()).first->second;
    if (at == groups.size()) groups.emplace_back();
    groups[at].push_back(i);
  }
  return groups;
}

/// Distributes the numbers of jobs of a group for each option, the first jobs first.
void deal(std::span<const std::uint32_t> group, std::span<const double> counts,
          GoodputAssignment& out) {
  std::size_t next = 0;
  for (std::size_t o = 0; o < counts.size(); ++o) {
    double left = counts[o];
    while (left > 1e-9 && next < group.size()) {
      std::vector<double>& parts = out[group[next]];
      double taken = 0;
      for (const double part : parts) taken += part;
      const double part = std::min(left, 1 - taken);
      parts[o] += part;
      left -= part;
      if (taken + part >= 1 - 1e-9) ++next;
    }
  }
}

}  // namespace

double goodput_gain(const GoodputJob& job, std::uint32_t option) {
  return gain_where_left(job, option, restart_factor(job));
}

GoodputAssignment assign_goodput(std::span<const GoodputJob> jobs,
                                 std::span<const std::uint32_t> devices) {
  const std::vector<std::vector<std::uint32_t>> groups = groups_of(jobs);
  LinearProgram program;
  std::vector<std::vector<std::uint32_t>> columns(groups.size());
  std::vector<std::vector<LinearProgram::Term>> of_type(devices.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const GoodputJob& job = jobs[groups[g].front()];
    const std::vector<GangOption>& options = options_of(job);
    const double left = restart_steps(job) / kRestartSteps;
    std::vector<LinearProgram::Term> once;
    for (std::uint32_t o = 0; o < options.size(); ++o) {
      const double stays = job.has == o ? kStays : 0;
      const std::uint32_t column = program.add_column(gain_where_left(job, o, left) + stays);
      columns[g].push_back(column);
      once.push_back({column, 1});
      const GangRequest& gang = options[o].gang;
      of_type[gang.type.value()].push_back({column, double{1} * gang.devices});
    }
    program.add_row(once, static_cast<double>(groups[g].size()));
  }
  for (std::size_t t = 0; t < devices.size(); ++t) {
    if (!of_type[t].empty()) program.add_row(of_type[t], devices[t]);
  }
  GoodputAssignment found;
  for (const GoodputJob& job : jobs) found.emplace_back(options_of(job).size());
  const std::optional<std::vector<double>> values = program.solve();
  for (std::size_t i = 0; i < jobs.size() && !values; ++i) {
    if (jobs[i].has) found[i][*jobs[i].has] = 1;
  }
  if (!values) return found;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<double> counts;
    for (const std::uint32_t column : columns[g]) counts.push_back((*values)[column]);
    deal(groups[g], counts, found);
  }
  return found;
}

}  // namespace orrery
