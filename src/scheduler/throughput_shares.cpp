#include "scheduler/throughput_shares.hpp"

#include <algorithm>
#include <numeric>

#include "scheduler/linear_program.hpp"

namespace orrery {
namespace {

constexpr double kOfTheMean = 1e-3;

/// Its speed if it had each type for a time in proportion to the devices of the type.
double equal_speed(const ShareClass& jobs, std::span<const std::uint32_t> devices) {
  std::vector<double> best(devices.size());
  for (const ShareClass::Option& option : jobs.options) {
    double& speed = best[option.type.value()];
    speed = std::max(speed, option.speed);
  }
  const double all = std::accumulate(devices.begin(), devices.end(), 0.0);
  double sum = 0;
  for (std::size_t j = 0; j < devices.size(); ++j) sum += devices[j] / all * best[j];
  return sum;
}

std::uint32_t most_devices(const ShareClass& jobs) {
  std::uint32_t most = 0;
  for (const ShareClass::Option& option : jobs.options) most = std::max(most, option.devices);
  return most;
}

}  // namespace

std::vector<std::vector<double>> throughput_shares(std::span<const ShareClass> classes,
                                                   std::span<const std::uint32_t> devices) {
  using Term = LinearProgram::Term;
  double jobs = 0;
  for (const ShareClass& alike : classes) jobs += alike.jobs;
  LinearProgram program;
  const std::uint32_t least = program.add_column(1);
  std::vector<std::vector<std::uint32_t>> columns(classes.size());
  std::vector<std::vector<Term>> of_type(devices.size());
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const ShareClass& alike = classes[c];
    const double equal = equal_speed(alike, devices);
    std::vector<Term> time;
    std::vector<Term> falls_short{{least, 1}};
    for (const ShareClass::Option& option : alike.options) {
      const double worth = equal > 0 ? most_devices(alike) * option.speed / equal : 0;
      const std::uint32_t x = program.add_column(kOfTheMean * worth * alike.jobs / jobs);
      columns[c].push_back(x);
      time.push_back({x, 1});
      falls_short.push_back({x, -worth});
      of_type[option.type.value()].push_back({x, double{1} * option.devices * alike.jobs});
    }
    program.add_row(time, 1);
    // Who can run nowhere holds nobody back.
    if (equal > 0) program.add_row(falls_short, 0);
  }
  for (std::size_t j = 0; j < devices.size(); ++j) {
    if (!of_type[j].empty()) program.add_row(of_type[j], devices[j]);
  }
  std::vector<std::vector<double>> shares(classes.size());
  const std::optional<std::vector<double>> values = program.solve();
  for (std::size_t c = 0; c < classes.size(); ++c) {
    for (const std::uint32_t x : columns[c]) {
      shares[c].push_back(values ? std::clamp((*values)[x], 0.0, 1.0) : 0);
    }
  }
  return shares;
}

const std::vector<std::vector<double>>& ThroughputShares::of(std::vector<ShareClass> classes,
                                                             std::vector<std::uint32_t> devices) {
  if (classes != classes_ || devices != devices_) {
    found_ = throughput_shares(classes, devices);
    classes_ = std::move(classes);
    devices_ = std::move(devices);
  }
  return found_;
}

}  // namespace orrery
