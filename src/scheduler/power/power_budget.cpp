#include "scheduler/power/power_budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "fleet/node_power.hpp"

namespace orrery {
namespace {

constexpr double kNodeWattsMax = 1e9;
// An exawatt: more than any sum of draws, and far from overflow.
constexpr double kLimitWattsMax = 1e15;
constexpr Milliwatts kBoundless = 1'000'000'000'000'000'000;

bool is_facility(PowerKind kind) {
  return kind == PowerKind::kSiteCap || kind == PowerKind::kFeeds;
}

void take_least(std::optional<Watts>& limit, const std::optional<Watts>& other) {
  if (other) limit = std::min(limit.value_or(*other), *other);
}

}  // namespace

Milliwatts milliwatts_of(Watts watts) {
  ORRERY_ASSERT(!std::isnan(watts.value()), "a draw is a number");
  return std::llround(std::clamp(watts.value(), -kNodeWattsMax, kNodeWattsMax) * 1000);
}

PowerTree::PowerTree(const Topology& topology) : topology_(&topology) {
  set_paths();
  set_idle();
}

void PowerTree::set_paths() {
  const auto domains = topology_->domains();
  overhead_.resize(topology_->power_domains().size());
  std::vector<Overhead> of_site(domains.size());
  for (const SiteFacts& site : topology_->sites()) {
    of_site[site.domain.value()] = {site.pue, milliwatts_of(shared_power(*topology_, site))};
  }
  for (std::size_t i = 0; i < domains.size(); ++i) {
    const DomainId rack = DomainId::at(i);
    if (domains[i].level != Level::kRack) continue;
    // Domains are numbered level by level: all racks follow the first.
    if (!first_rack_.valid()) first_rack_ = rack;
    path_start_.push_back(static_cast<std::uint32_t>(path_.size()));
    const PowerDomainId own = topology_->power_of(rack);
    for (PowerDomainId at = own; at.valid(); at = topology_->power(at).parent) {
      path_.push_back(at);
      if (!is_facility(topology_->power(at).kind)) continue;
      overhead_[at.value()] = of_site[topology_->ancestor(rack, Level::kSite).value()];
    }
    const PowerDomainId loop = topology_->power(own).loop;
    if (loop.valid()) path_.push_back(loop);
  }
  path_start_.push_back(static_cast<std::uint32_t>(path_.size()));
}

void PowerTree::set_idle() {
  for (const NodeGroup& group : topology_->groups()) {
    const NodeType& type = topology_->node_type(group);
    node_idle_.push_back(milliwatts_of(idle_power(group, type)));
    if (type.idle_power) continue;
    std::string text = fmt::format("idle power of {}: not published, counted as 0 W", type.id);
    if (std::find(assumptions_.begin(), assumptions_.end(), text) == assumptions_.end()) {
      assumptions_.push_back(std::move(text));
    }
  }
  domain_idle_.resize(overhead_.size());
  for (std::uint32_t n = 0; n < topology_->node_count(); ++n) {
    for (const PowerDomainId id : path(topology_->place(NodeId(n)).rack)) {
      domain_idle_[id.value()] += idle(NodeId(n));
    }
  }
}

std::span<const PowerDomainId> PowerTree::path(DomainId rack) const {
  const std::size_t i = rack.value() - first_rack_.value();
  return std::span(path_).subspan(path_start_[i], path_start_[i + 1] - path_start_[i]);
}

Milliwatts PowerTree::idle(NodeId node) const { return node_idle_[topology_->place(node).group]; }

Milliwatts PowerTree::room_under(PowerDomainId id, Watts limit) const {
  const Overhead& overhead = overhead_[id.value()];
  const double watts = std::min(limit.value() / overhead.pue, kLimitWattsMax);
  return std::llround(watts * 1000) - overhead.shared;
}

Watts PowerTree::load_of(PowerDomainId id, Milliwatts draw) const {
  const Overhead& overhead = overhead_[id.value()];
  return watts_of(draw + overhead.shared) * overhead.pue;
}

std::vector<NodeDraw> draws_of(const PowerTree& tree, std::span<const NodeShare> nodes,
                               Watts each) {
  std::vector<NodeDraw> draws;
  draws.reserve(nodes.size());
  for (const NodeShare& share : nodes) {
    const double devices = tree.topology().group(share.node).devices;
    const Watts idle = watts_of(tree.idle(share.node)) / devices;
    const Watts added = std::max(each - idle, Watts(0)) * share.accelerators;
    draws.push_back({share.node, milliwatts_of(added)});
  }
  return draws;
}

PowerCaps::PowerCaps(const PowerTree& tree) : tree_(&tree) {
  const std::size_t domains = tree.topology().power_domains().size();
  cap_.resize(domains);
  supply_.resize(domains);
  room_.resize(domains);
  for (std::size_t i = 0; i < domains; ++i) update(PowerDomainId::at(i));
}

void PowerCaps::set_cap(PowerDomainId id, std::optional<Watts> cap) {
  cap_[id.value()] = cap;
  update(id);
}

void PowerCaps::set_supply(PowerDomainId id, std::optional<Watts> supply) {
  supply_[id.value()] = supply;
  update(id);
}

std::optional<Watts> PowerCaps::limit(PowerDomainId id) const {
  const PowerDomain& domain = tree_->topology().power(id);
  std::optional<Watts> least = cap_[id.value()];
  if (domain.kind != PowerKind::kSiteCap || !least) take_least(least, domain.limit);
  take_least(least, supply_[id.value()]);
  return least;
}

void PowerCaps::update(PowerDomainId id) {
  const std::optional<Watts> now = limit(id);
  room_[id.value()] = now ? tree_->room_under(id, *now) : kBoundless;
}

std::span<const PowerDomainId> PowerBudget::path_of(NodeId node) const {
  return tree_->path(tree_->topology().place(node).rack);
}

void PowerBudget::add(std::span<const NodeDraw> draws) {
  for (const NodeDraw& draw : draws) {
    ORRERY_ASSERT(draw.added >= 0, "a gang adds to what idle nodes draw");
    for (const PowerDomainId id : path_of(draw.node)) planned_[id.value()] += draw.added;
  }
}

void PowerBudget::remove(std::span<const NodeDraw> draws) {
  for (const NodeDraw& draw : draws) {
    for (const PowerDomainId id : path_of(draw.node)) {
      planned_[id.value()] -= draw.added;
      ORRERY_ASSERT(planned_[id.value()] >= tree_->domain_idle_[id.value()],
                    "only what was added comes off");
    }
  }
}

std::optional<PowerShortfall> PowerBudget::try_add(const PowerCaps& caps,
                                                   std::span<const NodeDraw> draws) {
  add(draws);
  PowerShortfall worst;
  for (const NodeDraw& draw : draws) {
    if (draw.added == 0) continue;
    for (const PowerDomainId id : path_of(draw.node)) {
      const Milliwatts missing = excess(caps, id);
      const bool tie = missing == worst.missing && worst.missing > 0 && id < worst.domain;
      if (missing > worst.missing || tie) worst = {id, missing};
    }
  }
  if (worst.missing == 0) return std::nullopt;
  remove(draws);
  return worst;
}

std::optional<PowerShortfall> PowerBudget::check(const PowerCaps& caps,
                                                 std::span<const NodeDraw> draws) const {
  PowerBudget trial = *this;
  return trial.try_add(caps, draws);
}

PowerHeadroom PowerBudget::headroom(const PowerCaps& caps, DomainId rack) const {
  PowerHeadroom least{.free = kBoundless};
  for (const PowerDomainId id : tree_->path(rack)) {
    const Milliwatts free = std::max<Milliwatts>(-excess(caps, id), 0);
    if (free < least.free || (free == least.free && id < least.binding)) least = {free, id};
  }
  return least;
}

}  // namespace orrery
