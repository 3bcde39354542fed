#include "control/jobs/last_places.hpp"

#include <bit>
#include <optional>
#include <utility>

namespace orrery {
namespace {

/// Returns the last place of a job with one gang, from its record; none for other jobs.
std::optional<PlacedGang> last_place(const Job& job, const Topology& topology) {
  const std::vector<RoleRequest>& roles = job.submission->request.roles;
  if (job.placed.size() != 1 || roles.size() != 1 || job.placed.front().empty()) return {};
  const std::vector<NodeDevices>& ranks = job.placed.front();
  const FleetTypeId type = topology.group(ranks.front().node).type;
  std::uint32_t devices = 0;
  for (const NodeDevices& at : ranks) {
    devices += static_cast<std::uint32_t>(std::popcount(at.devices));
  }
  const std::vector<GangOption>& options = roles.front().options;
  for (std::uint32_t i = 0; i < options.size(); ++i) {
    const GangRequest& gang = options[i].gang;
    const bool whole = !gang.exclusive && gang.share == kWholeDevice;
    if (gang.type != type || gang.devices != devices || !whole) continue;
    return PlacedGang{0, i, {.ranks = ranks}, gang.host};
  }
  return {};
}

}  // namespace

void LastPlaces::recall_all(const State& state) {
  places_.clear();
  for (const Job& job : state.all_jobs()) recall(job, *state.setup().topology);
}

void LastPlaces::recall(const Job& job, const Topology& topology) {
  if (ended(job.phase) || job.attempt == 0 || job.stop != StopReason::kInfra) return;
  if (holds_devices(job.phase) && job.phase != JobPhase::kStopping) return;
  std::optional<PlacedGang> place = last_place(job, topology);
  if (place) places_[job.id] = {*std::move(place)};
}

}  // namespace orrery
