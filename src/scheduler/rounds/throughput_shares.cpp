#include "scheduler/rounds/throughput_shares.hpp"

#include <algorithm>
#include <numeric>

#include "scheduler/rounds/linear_program.hpp"

namespace orrery {
namespace {

constexpr double kOfTheMean = 1e-3;
/// The slowest option that is distinguished from others, relative to the fastest: the program
/// allows no wider span.
constexpr double kSlowest = 1e-6;

/// The class as the program sees it: nothing on types without devices, no speed next to nothing.
ShareClass in_span(ShareClass jobs, std::span<const std::uint32_t> devices) {
  double fastest = 0;
  for (const ShareClass::Option& option : jobs.options) {
    if (devices[option.type.value()] > 0) fastest = std::max(fastest, option.speed);
  }
  for (ShareClass::Option& option : jobs.options) {
    const bool runs = devices[option.type.value()] > 0 && option.speed > 0;
    option.speed = runs ? std::max(option.speed / fastest, kSlowest) : 0;
  }
  return jobs;
}

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

std::vector<double> equal_shares(const ShareClass& jobs, std::span<const std::uint32_t> devices) {
  const ShareClass alike = in_span(jobs, devices);
  std::vector<double> shares;
  double all = 0;
  for (const ShareClass::Option& option : alike.options) {
    shares.push_back(option.speed > 0 ? devices[option.type.value()] : 0);
    all += shares.back();
  }
  for (double& share : shares) share = all > 0 ? share / all : 0;
  return shares;
}

std::vector<std::vector<double>> throughput_shares(std::span<const ShareClass> classes,
                                                   std::span<const std::uint32_t> devices) {
  double jobs = 0;
  for (const ShareClass& alike : classes) jobs += alike.jobs;
  LinearProgram program;
  const std::uint32_t least = program.add_column(1);
  std::vector<std::vector<std::uint32_t>> columns(classes.size());
  std::vector<std::vector<LinearProgram::Term>> of_type(devices.size());
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const ShareClass alike = in_span(classes[c], devices);
    const double equal = equal_speed(alike, devices);
    std::vector<LinearProgram::Term> time;
    std::vector<LinearProgram::Term> falls_short{{least, 1}};
    for (const ShareClass::Option& option : alike.options) {
      const double worth = equal > 0 ? most_devices(alike) * option.speed / equal : 0;
      const std::uint32_t x = program.add_column(kOfTheMean * worth * alike.jobs / jobs);
      columns[c].push_back(x);
      time.push_back({x, 1});
      falls_short.push_back({x, -worth});
      if (devices[option.type.value()] == 0) continue;
      of_type[option.type.value()].push_back({x, double{1} * option.devices * alike.jobs});
    }
    program.add_row(time, 1);
    // A class that cannot run anywhere does not limit the others.
    if (equal > 0) program.add_row(falls_short, 0);
  }
  for (std::size_t j = 0; j < devices.size(); ++j) {
    if (!of_type[j].empty()) program.add_row(of_type[j], devices[j]);
  }
  std::vector<std::vector<double>> shares(classes.size());
  const std::optional<std::vector<double>> values = program.solve();
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (!values) shares[c] = equal_shares(classes[c], devices);
    if (!values) continue;
    for (std::size_t o = 0; o < columns[c].size(); ++o) {
      const bool there = devices[classes[c].options[o].type.value()] > 0;
      shares[c].push_back(there ? std::clamp((*values)[columns[c][o]], 0.0, 1.0) : 0);
    }
  }
  return shares;
}

const std::vector<std::vector<double>>& ThroughputShares::of(
    const std::vector<ShareClass>& classes, const std::vector<std::uint32_t>& devices) {
  if (classes != classes_ || devices != devices_) {
    found_ = throughput_shares(classes, devices);
    classes_ = classes;
    devices_ = devices;
  }
  return found_;
}

}  // namespace orrery
