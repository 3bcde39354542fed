#include "node/devices/device_clocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <sstream>

namespace orrery {
namespace {

bool has(const RankShare& share, std::uint32_t device) {
  return (share.devices >> device & 1) != 0;
}

}  // namespace

DeviceClocks::DeviceClocks(std::uint32_t devices, std::string_view noted) : devices_(devices) {
  std::istringstream lines{std::string(noted)};
  std::uint32_t device = 0;
  double clock = 1;
  while (lines >> device >> clock) {
    if (device < devices_.size() && clock > 0 && clock < 1) {
      devices_[device] = {.held = clock, .asked = clock, .refusal = {}};
    }
  }
}

void DeviceClocks::adopt(const AttemptId& id) { attempts_.try_emplace(id); }

void DeviceClocks::want(const AttemptId& id, const std::vector<RankShare>& shares) {
  attempts_[id] = shares;
  for (Device& device : devices_) {
    if (!device.refusal.empty()) device.asked.reset();
  }
}

void DeviceClocks::forget(const AttemptId& id) { attempts_.erase(id); }

double DeviceClocks::wanted(std::uint32_t device) const {
  double lowest = 1;
  bool named = false;
  bool all_known = true;
  for (const auto& [id, shares] : attempts_) {
    all_known = all_known && shares.has_value();
    if (!shares) continue;
    for (const RankShare& share : *shares) {
      if (!has(share, device)) continue;
      named = true;
      lowest = std::min(lowest, share.clock);
    }
  }
  return named || all_known ? lowest : devices_[device].held;
}

std::vector<DeviceClocks::Change> DeviceClocks::take_changes() {
  std::vector<Change> changes;
  changes.reserve(devices_.size());
  for (std::uint32_t at = 0; at < devices_.size(); ++at) {
    Device& device = devices_[at];
    const double clock = wanted(at);
    if (clock == device.asked) continue;
    changes.push_back({at, clock});
    device.asked = clock;
  }
  return changes;
}

void DeviceClocks::note(const Change& change, const std::string& refusal) {
  Device& device = devices_.at(change.device);
  if (refusal.empty()) device.held = change.clock;
  // A refused change to the clock that is held anyhow is not reported.
  if (change.clock == device.asked) device.refusal = change.clock == device.held ? "" : refusal;
}

std::vector<double> DeviceClocks::held(const AttemptId& id) const {
  std::vector<double> clocks;
  const auto found = attempts_.find(id);
  if (found == attempts_.end() || !found->second) return clocks;
  clocks.reserve(found->second->size());
  for (const RankShare& share : *found->second) {
    double highest = share.clock;
    for (std::uint64_t left = share.devices; left != 0; left &= left - 1) {
      highest = std::max(highest, clock(static_cast<std::uint32_t>(std::countr_zero(left))));
    }
    clocks.push_back(highest);
  }
  return clocks;
}

double DeviceClocks::clock(std::uint32_t device) const {
  return device < devices_.size() ? devices_[device].held : 1;
}

std::string DeviceClocks::refusal() const {
  for (const Device& device : devices_) {
    if (!device.refusal.empty()) return device.refusal;
  }
  if (!devices_.empty()) return "";
  for (const auto& [id, shares] : attempts_) {
    if (!shares) continue;
    for (const RankShare& share : *shares) {
      if (share.clock < 1) return "no driver here sets the clock of its accelerators";
    }
  }
  return "";
}

std::string DeviceClocks::text() const {
  std::string text;
  for (std::size_t at = 0; at < devices_.size(); ++at) {
    const double clock = std::min(devices_[at].held, devices_[at].asked.value_or(1));
    if (clock > 0 && clock < 1) text += fmt::format("{} {}\n", at, clock);
  }
  return text;
}

}  // namespace orrery
