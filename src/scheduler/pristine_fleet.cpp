#include "scheduler/pristine_fleet.hpp"

#include <algorithm>
#include <vector>

#include "scheduler/why_never.hpp"

namespace orrery {
namespace {

/// The smallest size of each type.
std::vector<GangOption> smallest_options(const RoleRequest& role) {
  std::vector<GangOption> smallest;
  for (const GangOption& option : role.options) {
    const auto same = std::find_if(smallest.begin(), smallest.end(), [&](const GangOption& other) {
      return other.gang.type == option.gang.type;
    });
    if (same == smallest.end()) {
      smallest.push_back(option);
    } else if (option.gang.devices < same->gang.devices) {
      *same = option;
    }
  }
  return smallest;
}

}  // namespace

PristineFleet::PristineFleet(const Topology& topology)
    : fleet_(topology), tree_(fleet_.topology()), placer_(tree_) {}

const std::optional<std::string>& PristineFleet::refusal(const GangRequest& gang) {
  GangRequest key = gang;
  key.preferred = TopologyLevel::kFleet;  // a wish refuses nothing
  const auto known = verdicts_.find(key);
  if (known != verdicts_.end()) return known->second;
  std::optional<std::string> why;
  if (!fits(key)) why = why_never(*this, key);
  return verdicts_.emplace(key, std::move(why)).first->second;
}

bool PristineFleet::fits(const GangRequest& gang) {
  return placer_.placer().place(fleet_.view(), gang).has_value();
}

bool PristineFleet::fits_together(const JobRequest& job) {
  constexpr std::size_t kWays = 64;
  std::vector<std::vector<GangOption>> options;
  JobRequest trial;
  for (const RoleRequest& role : job.roles) {
    options.push_back(smallest_options(role));
    RoleRequest& one = trial.roles.emplace_back();
    one.gangs = role.gangs;
    one.spread = role.spread;
  }
  std::vector<std::size_t> choice(options.size(), 0);
  for (std::size_t way = 0; way < kWays; ++way) {
    for (std::size_t r = 0; r < options.size(); ++r) {
      trial.roles[r].options = {options[r][choice[r]]};
      trial.roles[r].devices_max = options[r][choice[r]].gang.devices;
    }
    if (placer_.place(fleet_.view(), trial, {})) return true;
    std::size_t r = 0;
    while (r < choice.size() && ++choice[r] == options[r].size()) choice[r++] = 0;
    if (r == choice.size()) return false;
  }
  return true;
}

}  // namespace orrery
