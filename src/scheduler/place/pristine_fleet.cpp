#include "scheduler/place/pristine_fleet.hpp"

#include <algorithm>

#include "scheduler/forecast/why_never.hpp"

namespace orrery {
PristineFleet::PristineFleet(const Topology& topology)
    : fleet_(topology), tree_(fleet_.topology()), placer_(tree_) {}

const std::optional<std::string>& PristineFleet::refusal(const GangRequest& gang) {
  GangRequest key = gang;
  key.preferred = TopologyLevel::kFleet;  // a wish refuses nothing
  const auto known = refusals_.find(key);
  if (known != refusals_.end()) return known->second;
  std::optional<std::string> why;
  if (!fits(key)) why = why_never(*this, key);
  return refusals_.emplace(key, std::move(why)).first->second;
}

bool PristineFleet::fits(const GangRequest& gang) {
  return placer_.placer().place(fleet_.view(), gang).has_value();
}

PristineFleet::Gangs PristineFleet::gangs_of_role(const RoleRequest& role) {
  Gangs gangs{.count = role.gangs, .spread = std::nullopt, .options = {}};
  if (role.spread) gangs.spread = {role.spread->level, role.spread->most};
  for (const GangOption& option : role.options) {
    GangRequest gang = option.gang;
    gang.preferred = TopologyLevel::kFleet;
    const auto same =
        std::find_if(gangs.options.begin(), gangs.options.end(),
                     [&](const GangRequest& other) { return other.type == gang.type; });
    if (same == gangs.options.end()) {
      gangs.options.push_back(gang);
    } else if (gang.devices < same->devices) {
      *same = gang;
    }
  }
  return gangs;
}

bool PristineFleet::fits_together(const JobRequest& job) {
  std::vector<Gangs> roles;
  roles.reserve(job.roles.size());
  for (const RoleRequest& role : job.roles) roles.push_back(gangs_of_role(role));
  const auto known = together_.find(roles);
  if (known != together_.end()) return known->second;
  const bool fits = place_together(roles);
  return together_.emplace(std::move(roles), fits).first->second;
}

bool PristineFleet::place_together(const std::vector<Gangs>& roles) {
  constexpr std::size_t kWays = 64;
  JobRequest trial;
  for (const Gangs& gangs : roles) {
    RoleRequest& role = trial.roles.emplace_back();
    role.gangs = gangs.count;
    if (gangs.spread) role.spread = SpreadSpec{gangs.spread->first, gangs.spread->second, {}};
  }
  std::vector<std::size_t> choice(roles.size(), 0);
  for (std::size_t way = 0; way < kWays; ++way) {
    for (std::size_t r = 0; r < roles.size(); ++r) {
      const GangRequest& gang = roles[r].options[choice[r]];
      trial.roles[r].options = {GangOption{gang, 1, std::nullopt}};
      trial.roles[r].devices_max = gang.devices;
    }
    if (placer_.place(fleet_.view(), trial, {})) return true;
    std::size_t r = 0;
    while (r < choice.size() && ++choice[r] == roles[r].options.size()) choice[r++] = 0;
    if (r == choice.size()) return false;
  }
  return true;
}

}  // namespace orrery
