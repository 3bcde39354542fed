#include "scheduler/preempt/leaving_jobs.hpp"

#include <algorithm>
#include <bit>

namespace orrery {
namespace {

/// Whether a job is one gang of whole devices, by each of its options.
bool asks_by_number(const JobRequest& job) {
  if (gangs_of(job) != 1) return false;
  const std::vector<GangOption>& options = job.roles.front().options;
  return std::all_of(options.begin(), options.end(), [](const GangOption& option) {
    return !option.plan && option.gang.share == kWholeDevice;
  });
}

}  // namespace

LeavingJobs::LeavingJobs(PassContext& pass, StartSearch& search, LeavingMemory& memory,
                         std::size_t askers)
    : pass_(pass), s_(pass.situation), search_(search), memory_(memory), askers_(askers) {}

Yielders& LeavingJobs::yielders() {
  if (!looked_) memory_.yielders.look(s_, pass_.policy);
  looked_ = true;
  return memory_.yielders;
}

std::vector<std::uint32_t> LeavingJobs::devices_of(std::span<const std::uint32_t> from) const {
  const Topology& topology = s_.fleet.topology();
  std::vector<std::uint32_t> devices(topology.type_count());
  for (const std::uint32_t i : from) {
    for (const PlacedGang& gang : s_.running[i].gangs) {
      for (const auto* at : {&gang.allocation.ranks, &gang.allocation.idle}) {
        for (const NodeDevices& part : *at) {
          devices[topology.group(part.node).type.value()] +=
              static_cast<std::uint32_t>(std::popcount(part.devices));
        }
      }
    }
  }
  return devices;
}

bool LeavingJobs::enough_with(std::span<const std::uint32_t> devices, const JobRequest& job) const {
  if (!asks_by_number(job)) return true;
  const std::vector<GangOption>& options = job.roles.front().options;
  const FleetView now = pass_.fleet.now();
  return std::any_of(options.begin(), options.end(), [&](const GangOption& option) {
    const FleetTypeId type = option.gang.type;
    return now.free(Topology::root(), type).devices + devices[type.value()] >= option.gang.devices;
  });
}

bool LeavingJobs::too_few_with(const WaitingJob& job, double service) {
  if (!asks_by_number(*job.request)) return false;
  const std::uint64_t left = yielders().devices_with(service);
  const FleetView now = pass_.fleet.now();
  const std::vector<GangOption>& options = job.request->roles.front().options;
  return std::none_of(options.begin(), options.end(), [&](const GangOption& option) {
    return now.free(Topology::root(), option.gang.type).devices + left >= option.gang.devices;
  });
}

// If one gang finds no room by free counts and nodes, it finds none when fewer jobs leave.
bool LeavingJobs::no_room_without(LeaverList& leavers, const WaitingJob& job) {
  if (gangs_of(*job.request) != 1) return false;
  for (const GangOption& option : job.request->roles.front().options) {
    if (option.gang.asks_slice() || option.gang.share != kWholeDevice) return false;
  }
  if (leavers.devices.empty()) leavers.devices = devices_of(leavers.who);
  if (!enough_with(leavers.devices, *job.request)) return true;
  return !fits_without(leavers, job);
}

// The fleet without the leavers is built once for each list of jobs.
bool LeavingJobs::fits_without(const LeaverList& leavers, const WaitingJob& job) {
  if (built_for_ != &leavers || built_under_ != leavers.under) {
    build_without(leavers.who);
    built_for_ = &leavers;
    built_under_ = leavers.under;
  }
  return fits_there(job);
}

bool LeavingJobs::fits_without(std::span<const std::uint32_t> who, const WaitingJob& job) {
  build_without(who);
  built_for_ = nullptr;
  return fits_there(job);
}

void LeavingJobs::build_without(std::span<const std::uint32_t> who) {
  if (!memory_.without) memory_.without.emplace(pass_.fleet.now());
  memory_.without->reset(pass_.fleet.now());
  for (const std::uint32_t i : who) {
    give_back(*memory_.without, std::span<const PlacedGang>(s_.running[i].gangs));
  }
}

bool LeavingJobs::fits_there(const WaitingJob& job) {
  JobPlaceRules rules = search_.rules_for(job);
  rules.may_take = nullptr;
  return search_.fits(memory_.without->view(), job, rules);
}

}  // namespace orrery
