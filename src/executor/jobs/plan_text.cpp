#include "executor/jobs/plan_text.hpp"

#include <algorithm>
#include <optional>

#include "planner/launch/layout_text.hpp"

namespace orrery {
namespace {

/// The plan of a gang with an option's number of devices, where it is known.
struct KnownPlan {
  ParallelPlan plan;
  std::optional<double> step_seconds;
};

class GangPlans {
 public:
  GangPlans(const State& state, const RoleSpec& role) : state_(state), role_(role) {}

  [[nodiscard]] std::optional<KnownPlan> of(const GangOption& option) const {
    if (role_.layout) {
      KnownPlan known{role_.layout->plan, std::nullopt};
      known.plan.dp = option.gang.devices / static_cast<std::uint32_t>(known.plan.ranks());
      return known;
    }
    if (!option.plan) return std::nullopt;
    const PlanEntry* entry = state_.plans().find(*option.plan);
    if (entry == nullptr || !*entry) return std::nullopt;
    const PlannedWork& work = (*entry)->front();
    if (work.training() == nullptr) return std::nullopt;
    return KnownPlan{work.training()->plan, work.step_seconds};
  }

 private:
  const State& state_;
  const RoleSpec& role_;
};

void write_plan(Json& to, const std::optional<KnownPlan>& known) {
  if (!known) return;
  to["plan"] = layout_json(known->plan);
  if (known->step_seconds) to["plan"]["step_s"] = *known->step_seconds;
}

/// Returns the largest option of the type that needs at most `devices`; nullptr: there is none.
const GangOption* largest_within(const RoleRequest& role, FleetTypeId type, std::uint32_t devices) {
  const GangOption* best = nullptr;
  for (const GangOption& option : role.options) {
    if (option.gang.type != type || option.gang.devices > devices) continue;
    if (best == nullptr || option.gang.devices > best->gang.devices) best = &option;
  }
  return best;
}

Json fallbacks(const GangPlans& plans, const RoleRequest& role, const GangOption& has) {
  Json table = Json::array();
  const std::optional<KnownPlan> known = plans.of(has);
  const std::uint32_t devices = has.gang.devices;
  const std::uint32_t replicas = known ? known->plan.dp : devices;
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
    // A spare replaces what was lost while the others continue.
    Json& entry = table.emplace_back(
        Json{{"lost", lost}, {"accelerators", next->gang.devices}, {"wait_s", 0}});
    write_plan(entry, plans.of(*next));
  }
  return table;
}

}  // namespace

std::string plan_text(const State& state, const JobSpec& spec, JobId id) {
  const RunningJob& run = state.running(id);
  Json gangs = Json::array();
  for (std::size_t i = 0; i < run.gangs.size(); ++i) {
    const RoleRequest& role = run.request->roles[run.gangs[i].role];
    const GangOption& option = role.options[run.gangs[i].option];
    Json gang{{"gang", i},
              {"role", role.name},
              {"accelerator", state.setup().topology->accelerator(option.gang.type).id},
              {"accelerators", option.gang.devices}};
    const GangPlans plans(state, spec.roles[run.gangs[i].role]);
    write_plan(gang, plans.of(option));
    gang["fallback"] = fallbacks(plans, role, option);
    gangs.push_back(std::move(gang));
  }
  return Json{{"gangs", std::move(gangs)}}.dump();
}

}  // namespace orrery
