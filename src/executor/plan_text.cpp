#include "executor/plan_text.hpp"

#include <algorithm>

#include "planner/layout_text.hpp"

namespace orrery {
namespace {

/// The best way to do the work of an option, where one is known.
const PlannedWork* planned(const State& state, const GangOption& option) {
  if (!option.plan) return nullptr;
  const PlanEntry* entry = state.plans().find(*option.plan);
  return entry == nullptr || !*entry ? nullptr : &(*entry)->front();
}

void write_plan(Json& to, const PlannedWork* work) {
  if (work == nullptr || work->training() == nullptr) return;
  to["plan"] = layout_json(work->training()->plan);
  to["plan"]["step_s"] = work->step_seconds;
}

/// What is left to go on with on `devices` of the type; the largest.
const GangOption* largest_within(const RoleRequest& role, FleetTypeId type, std::uint32_t devices) {
  const GangOption* best = nullptr;
  for (const GangOption& option : role.options) {
    if (option.gang.type != type || option.gang.devices > devices) continue;
    if (best == nullptr || option.gang.devices > best->gang.devices) best = &option;
  }
  return best;
}

Json fallbacks(const State& state, const RoleRequest& role, const GangOption& has) {
  Json table = Json::array();
  const PlannedWork* work = planned(state, has);
  const std::uint32_t devices = has.gang.devices;
  const bool replicated = work != nullptr && work->training() != nullptr;
  const std::uint32_t replicas = replicated ? work->training()->plan.dp : devices;
  const GangOption* last = &has;
  for (std::uint32_t lost = 1; lost <= replicas; ++lost) {
    const GangOption* next =
        role.elastic() && lost < replicas
            ? largest_within(role, has.gang.type, devices - devices / replicas * lost)
            : nullptr;
    if (next == nullptr) {
      table.push_back({{"lost", lost}, {"restart", true}});
      break;
    }
    if (next == last) continue;
    last = next;
    // A spare is put in the place of what is lost while the others go on.
    Json& entry = table.emplace_back(
        Json{{"lost", lost}, {"accelerators", next->gang.devices}, {"wait_s", 0}});
    write_plan(entry, planned(state, *next));
  }
  return table;
}

}  // namespace

std::string plan_text(const State& state, JobId id) {
  const RunningJob& run = state.running(id);
  Json gangs = Json::array();
  for (std::size_t i = 0; i < run.gangs.size(); ++i) {
    const RoleRequest& role = run.request->roles[run.gangs[i].role];
    const GangOption& option = role.options[run.gangs[i].option];
    Json gang{{"gang", i},
              {"role", role.name},
              {"accelerator", state.setup().topology->accelerator(option.gang.type).id},
              {"accelerators", option.gang.devices}};
    write_plan(gang, planned(state, option));
    gang["fallback"] = fallbacks(state, role, option);
    gangs.push_back(std::move(gang));
  }
  return Json{{"gangs", std::move(gangs)}}.dump();
}

}  // namespace orrery
