#include "tests/scenarios/scenario_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "planner/launch/layout_text.hpp"

namespace orrery {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

std::string type_text(const Topology& topology, FleetTypeId type) {
  const Accelerator& accelerator = topology.accelerator(type);
  return lower(accelerator.aliases.empty() ? accelerator.id : accelerator.aliases.front());
}

/// The narrowest domain of the tree that holds all nodes, or the one node.
std::string place_text(const Topology& topology, std::span<const NodeId> nodes) {
  if (nodes.size() == 1) return topology.node_name(nodes.front());
  DomainId at = topology.place(nodes.front()).rack;
  const auto holds = [&](NodeId node) {
    const Domain& domain = topology.domain(at);
    return node.value() - domain.first_node.value() < domain.nodes;
  };
  while (at != Topology::root() && !std::all_of(nodes.begin(), nodes.end(), holds)) {
    at = topology.domain(at).parent;
  }
  return fmt::format("{} ({} nodes)", topology.path(at), nodes.size());
}

std::vector<NodeId> nodes_of(std::span<const PlacedGang> gangs, std::uint32_t role) {
  std::vector<NodeId> nodes;
  for (const PlacedGang& gang : gangs) {
    if (gang.role != role) continue;
    for (const NodeDevices& at : gang.allocation.ranks) nodes.push_back(at.node);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

std::string word(TopologyLevel level) {
  for (const auto& [word, value] : enum_words(level)) {
    if (value == level) return std::string(word);
  }
  return "";
}

/// The degrees above 1: "tp4 pp2 dp8".
std::string short_layout(const PlannedWork& plan) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view name, double degree) {
    if (degree > 1) parts.push_back(fmt::format("{}{}", name, degree));
  };
  if (const PlannedTraining* training = plan.training()) {
    add("tp", training->plan.tp);
    add("pp", training->plan.pp);
    add("cp", training->plan.cp);
    add("dp", training->plan.dp);
    add("ep", training->plan.ep);
  } else {
    add("tp", plan.service()->layout.tp);
    add("pp", plan.service()->layout.pp);
    add("replicas ", plan.service()->layout.replicas);
  }
  return parts.empty() ? "undivided" : fmt::format("{}", fmt::join(parts, " "));
}

/// The step time of another option of the role, where that is clearly faster.
std::string penalty_text(const State& state, const RoleRequest& role, const PlannedWork& plan) {
  const GangOption* best = nullptr;
  double least = plan.step_seconds / 1.05;
  for (const GangOption& option : role.options) {
    const PlanEntry* entry = option.plan ? state.plans().find(*option.plan) : nullptr;
    if (entry == nullptr || !*entry || (*entry)->front().step_seconds >= least) continue;
    least = (*entry)->front().step_seconds;
    best = &option;
  }
  if (best == nullptr || plan.training() == nullptr) return "";
  return fmt::format(", {:.2f} x the step of {} x {}", plan.step_seconds / least,
                     best->gang.devices, type_text(state.fleet().topology(), best->gang.type));
}

std::string dollars(std::int64_t micro) {
  const double amount = static_cast<double>(micro) * 1e-6;
  return amount >= 1000 ? fmt::format("{:.0f}", amount) : fmt::format("{:.2f}", amount);
}

}  // namespace

std::string where_text(const State& state, const JobRequest& job,
                       std::span<const PlacedGang> gangs) {
  const Topology& topology = state.fleet().topology();
  std::vector<std::string> roles;
  for (std::uint32_t r = 0; r < job.roles.size(); ++r) {
    std::uint32_t count = 0;
    const PlacedGang* first = nullptr;
    for (const PlacedGang& gang : gangs) {
      if (gang.role != r) continue;
      if (first == nullptr) first = &gang;
      ++count;
    }
    if (first == nullptr) continue;
    const GangRequest& asked = job.roles[r].options[first->option].gang;
    const double share = asked.share / 1000.0;
    const std::string devices =
        share < 1 ? fmt::format("{}", share) : fmt::format("{}", asked.devices);
    const std::string device =
        share < 1
            ? fmt::format(" device {}", std::countr_zero(first->allocation.ranks.front().devices))
            : "";
    roles.push_back(fmt::format("{}{} x {} in {}{}", count > 1 ? fmt::format("{} x ", count) : "",
                                devices, type_text(topology, asked.type),
                                place_text(topology, nodes_of(gangs, r)), device));
  }
  return fmt::format("{}", fmt::join(roles, " + "));
}

std::string terms_text(const State& state, const JobRequest& job, std::span<const PlacedGang> gangs,
                       std::span<const GangTerms> terms) {
  std::string text;
  for (std::size_t i = 0; i < gangs.size(); ++i) {
    if (i > 0 && gangs[i].role == gangs[i - 1].role) continue;
    const std::optional<PlanKey>& key = job.roles[gangs[i].role].options[gangs[i].option].plan;
    const PlanEntry* entry = key ? state.plans().find(*key) : nullptr;
    if (entry != nullptr && *entry) {
      const PlannedWork& plan = (*entry)->at(terms[i].plan);
      text += ", " + short_layout(plan);
      text += penalty_text(state, job.roles[gangs[i].role], plan);
      if (terms[i].ratio > 1.005) text += fmt::format(", {:.2f} x its best step", terms[i].ratio);
    }
    if (terms[i].clock < 1) text += fmt::format(", clock {:.2f}", terms[i].clock);
  }
  return text;
}

std::string shown_refusal(const Refusal& refusal) {
  std::string text(name_of(refusal.kind));
  if (refusal.missing > 0) text += fmt::format(", {} short", refusal.missing);
  if (refusal.level != TopologyLevel::kFleet) text += " in every " + word(refusal.level);
  return text;
}

std::string price_text(const Price& price, Shown shown) {
  std::string text = "$" + dollars(price.total());
  if (shown != Shown::kPrices) return text;
  std::vector<std::string> terms;
  for (const auto& [word, term] : enum_words(PriceTerm())) {
    if (price[term] != 0) terms.push_back(fmt::format("{} {}", word, dollars(price[term])));
  }
  return fmt::format("{} = {}", text, fmt::join(terms, " + "));
}

std::string plan_text(const Topology& topology, const Work& work, const PlanKey& key,
                      const PlanEntry& entry) {
  const std::string what =
      fmt::format("{} on {} x {}: ", work.model->name, key.devices, type_text(topology, key.type));
  if (!entry) return what + entry.error().text();
  const PlannedWork& best = entry->front();
  if (best.training() != nullptr) {
    return what + fmt::format("{}, {:.3g} s a step", print_layout(best.training()->plan),
                              best.step_seconds);
  }
  const PlannedService& service = *best.service();
  return what + fmt::format("{}, ttft {:.3g} ms, tpot {:.3g} ms, {:.3g} requests/s at most",
                            print_layout(service.layout), service.ttft.value() * 1e3,
                            service.tpot.value() * 1e3, service.requests_max);
}

}  // namespace orrery
