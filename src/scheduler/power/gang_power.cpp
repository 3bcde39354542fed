#include "scheduler/power/gang_power.hpp"

#include <algorithm>
#include <bit>

namespace orrery {
namespace {

PowerLoad load_of(double clock_bound) {
  return {.compute_share = clock_bound, .network_share = 1 - clock_bound};
}

}  // namespace

std::vector<NodeShare> shares_of(const PlacedGang& gang) {
  const double share = gang.allocation.share / static_cast<double>(kWholeDevice);
  std::vector<NodeShare> nodes;
  nodes.reserve(gang.allocation.ranks.size());
  for (const NodeDevices& at : gang.allocation.ranks) {
    nodes.push_back({at.node, std::popcount(at.devices) * share});
  }
  return nodes;
}

std::optional<Duration> longest_of(std::span<const GangTerms> gangs) {
  Duration longest;
  for (const GangTerms& terms : gangs) {
    if (!terms.length) return std::nullopt;
    longest = std::max(longest, *terms.length);
  }
  return longest;
}

GangClocks clocks_of(const Situation& situation, const JobRequest& job, const PlacedGang& gang,
                     const GangTerms& terms) {
  if (situation.costs == nullptr) return {};
  const GangOption& option = job.roles[gang.role].options[gang.option];
  const Topology& topology = situation.fleet.topology();
  const DomainId rack = topology.place(gang.allocation.ranks.front().node).rack;
  const DeviceCosts* costs =
      situation.costs->find(option.gang.type, topology.ancestor(rack, Level::kSite));
  if (costs == nullptr || !costs->power) return {};
  const PlanEntry* entry =
      situation.plans != nullptr && option.plan ? situation.plans->find(*option.plan) : nullptr;
  if (entry == nullptr || !*entry) return {&*costs->power, 1};
  const auto& plans = entry->value();
  return {&*costs->power, plans[terms.plan < plans.size() ? terms.plan : 0].clock_bound};
}

std::vector<ClockStep> ladder_of(const GangClocks& clocks) {
  if (clocks.model == nullptr) return {};
  Result<std::vector<ClockStep>> ladder = clock_ladder(*clocks.model, load_of(clocks.clock_bound));
  if (!ladder) return {};
  return *std::move(ladder);
}

std::vector<NodeDraw> draws_of_gang(const PowerTree& tree, const PlacedGang& gang, Watts each) {
  return draws_of(tree, shares_of(gang), each);
}

std::optional<PowerShortfall> settle_power(const PowerQuestion& question, const PlacedGang& gang,
                                           GangTerms& terms) {
  const std::vector<NodeShare> nodes = shares_of(gang);
  const PowerTree& tree = question.budget.tree();
  std::optional<PowerShortfall> shortfall =
      question.budget.check(question.caps, draws_of(tree, nodes, terms.draw));
  if (!shortfall) return shortfall;
  std::vector<ClockStep> ladder = ladder_of(question.clocks);
  if (ladder.empty()) return shortfall;
  // The plan's draw is more exact than the ladder's, so the ladder is scaled to it.
  const double scale = terms.draw / ladder.front().each;
  for (ClockStep& step : ladder) step.each = step.each * scale;
  const auto step = clock_for(question.budget, question.caps, {.nodes = nodes, .ladder = ladder});
  if (!step) return step.error();
  const ClockStep& taken = ladder[*step];
  terms.clock = taken.clock;
  terms.draw = taken.each;
  if (terms.length) {
    terms.length = Duration::from_seconds(terms.length->count_seconds() / taken.throughput);
  }
  return std::nullopt;
}

}  // namespace orrery
