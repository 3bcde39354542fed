// A change of the fleet, checked before it is decided.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "control/state/snapshot.hpp"
#include "control/state/state.hpp"
#include "fleet/fleet_map.hpp"

namespace orrery {
namespace {

bool same_way(const PlannedWork& was, const PlannedWork& is) {
  if (was.devices != is.devices) return false;
  if (was.training() == nullptr || is.training() == nullptr) {
    return was.training() == is.training();
  }
  return was.training()->plan == is.training()->plan;
}

/// Whether new facts lead to the plan that a gang runs by, and to the same best one.
bool keeps_plan(const PlanEntry& had, const PlanEntry* found, std::uint32_t plan) {
  if (!had || plan >= had->size()) return true;
  if (found == nullptr || !*found || plan >= (*found)->size()) return false;
  return same_way(had->front(), (*found)->front()) && same_way((*had)[plan], (**found)[plan]);
}

/// Whether all gangs of a job keep their plans.
bool keeps_plans(const State& state, const RunningJob& run, const FleetMap& map,
                 const ControlSetup& next) {
  for (std::size_t i = 0; i < run.gangs.size(); ++i) {
    const PlacedGang& gang = run.gangs[i];
    const auto& key = run.request->roles[gang.role].options[gang.option].plan;
    const PlanEntry* had = key ? state.plans().find(*key) : nullptr;
    if (had == nullptr) continue;
    const FleetTypeId type = map.types[key->type.value()];
    const auto found = next.plans({key->work, type, key->devices});
    if (!keeps_plan(*had, found.get(), run.terms[i].plan)) return false;
  }
  return true;
}

Status check_plans(const State& state, const FleetMap& map, const ControlSetup& next) {
  std::vector<std::uint32_t> jobs;
  for (const RunningJob& run : state.running()) {
    if (!keeps_plans(state, run, map, next)) jobs.push_back(run.id.value());
  }
  if (jobs.empty()) return {};
  constexpr std::size_t kShown = 20;
  const std::string more =
      jobs.size() > kShown ? fmt::format(" and {} more", jobs.size() - kShown) : std::string();
  jobs.resize(std::min(jobs.size(), kShown));
  return infeasible(
      fmt::format("the new catalog or calibration changes the plans by which jobs run: {}{}; end "
                  "them first, or leave the rows and constants of their models as they are",
                  fmt::join(jobs, ", "), more));
}

}  // namespace

Status check_change(const State& state, const ControlSetup& next) {
  const Result<State> changed = with_fleet(state, next);
  if (!changed) return tl::unexpected(changed.error());
  return check_plans(state, *fleet_map(*state.setup().topology, *next.topology), next);
}

}  // namespace orrery
