// fleet/network/fabric.cpp - packs, measures and answers questions about a scale-out network.
#include "fleet/network/fabric.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace orrery {
namespace {

/// Returns the share of the links of a full mesh of n that join two halves.
double mesh_cut_share(double n) {
  ORRERY_ASSERT(n >= 2, "a dragonfly has two groups, or two routers in its only one");
  const double half = static_cast<double>(static_cast<std::int64_t>(n) / 2);
  return half * (n - half) / (n * (n - 1) / 2);
}

}  // namespace

Fabric::Fabric(FabricParts parts)
    : kind_(parts.kind),
      nodes_(parts.nodes),
      ports_per_node_(parts.ports_per_node),
      port_bandwidth_(parts.port_bandwidth),
      cable_bandwidth_(parts.cable_bandwidth) {
  check(parts);
  switches_ = std::move(parts.switches);
  leaf_of_port_ = std::move(parts.leaf_of_port);
  switches_.shrink_to_fit();
  for (const Switch& item : switches_) {
    ++tier_sizes_[item.tier];
    if (is_dragonfly()) groups_ = std::max(groups_, item.group + 1);
  }
  pack(parts.links);
  bisection_ = measure_bisection();
  if (is_dragonfly()) {
    measure_dragonfly_oversubscription();
  } else {
    measure_tree_oversubscription();
  }
}

void Fabric::check(const FabricParts& parts) const {
  const std::size_t count = parts.switches.size();
  for (std::size_t i = 0; i < count; ++i) {
    ORRERY_ASSERT(parts.switches[i].tier <= 2, "switches are leaves, spines or cores");
    ORRERY_ASSERT(i == 0 || parts.switches[i - 1].tier <= parts.switches[i].tier,
                  "switches stand in order of tier");
  }
  ORRERY_ASSERT(parts.leaf_of_port.size() == std::size_t{nodes_} * ports_per_node_,
                "every port has a place in the table of leaves");
  for (const SwitchIndex leaf : parts.leaf_of_port) {
    ORRERY_ASSERT(leaf.value() < count && parts.switches[leaf.value()].tier == 0,
                  "every port is on a leaf");
  }
  for (std::size_t i = 0; i < parts.links.size(); ++i) {
    const SwitchLink& link = parts.links[i];
    ORRERY_ASSERT(link.lower < link.upper && link.upper.value() < count && link.cables > 0,
                  "a link joins a lower-numbered switch to a higher-numbered one");
    ORRERY_ASSERT(i == 0 || std::pair(parts.links[i - 1].lower, parts.links[i - 1].upper) <
                                std::pair(link.lower, link.upper),
                  "links stand in order, each pair of switches once");
  }
}

void Fabric::pack(const std::vector<SwitchLink>& links) {
  first_uplink_.assign(switches_.size() + 1, 0);
  uppers_.reserve(links.size());
  cables_.reserve(links.size());
  for (const SwitchLink& link : links) {
    ++first_uplink_[link.lower.value() + 1];
    uppers_.push_back(link.upper);
    cables_.push_back(link.cables);
    const std::size_t tier = is_dragonfly() ? (inside_group(link.lower, link.upper) ? 0 : 1)
                                            : switches_[link.lower.value()].tier;
    ORRERY_ASSERT(tier < tier_cables_.size(), "nothing lies above the cores");
    tier_cables_[tier] += link.cables;
  }
  for (std::size_t i = 1; i < first_uplink_.size(); ++i) first_uplink_[i] += first_uplink_[i - 1];
}

bool Fabric::is_dragonfly() const {
  return kind_ == NetworkKind::kDragonfly || kind_ == NetworkKind::kDragonflyPlus;
}

bool Fabric::inside_group(SwitchIndex a, SwitchIndex b) const {
  return switches_[a.value()].group == switches_[b.value()].group;
}

std::uint32_t Fabric::switches(int tier) const {
  ORRERY_ASSERT(tier >= 0 && tier <= 2, "a network has leaves, spines and cores");
  return tier_sizes_[static_cast<std::size_t>(tier)];
}

std::uint64_t Fabric::cables(int tier) const {
  ORRERY_ASSERT(tier >= 0 && tier <= 1, "cables run from tier 0 and from tier 1 upwards");
  return tier_cables_[static_cast<std::size_t>(tier)];
}

double Fabric::oversubscription(int tier) const {
  ORRERY_ASSERT(tier >= 0 && tier <= 1, "cables run from tier 0 and from tier 1 upwards");
  return oversubscription_[static_cast<std::size_t>(tier)];
}

std::uint32_t Fabric::link_count() const {
  return static_cast<std::uint32_t>(leaf_of_port_.size() + uppers_.size());
}

bool Fabric::is_port_link(FabricLinkId link) const { return link.value() < leaf_of_port_.size(); }

FabricLinkId Fabric::link_of_port(FabricPort port) const {
  ORRERY_ASSERT(port.node < nodes_ && port.port < ports_per_node_, "the port exists");
  return FabricLinkId(port.node * ports_per_node_ + port.port);
}

FabricPort Fabric::port_of(FabricLinkId link) const {
  ORRERY_ASSERT(is_port_link(link), "the link is a port's");
  return {link.value() / ports_per_node_, link.value() % ports_per_node_};
}

SwitchLink Fabric::switch_link(FabricLinkId link) const {
  ORRERY_ASSERT(!is_port_link(link) && link.value() < link_count(), "the link joins switches");
  const auto at = static_cast<std::uint32_t>(link.value() - leaf_of_port_.size());
  const auto past = std::ranges::upper_bound(first_uplink_, at);
  return {SwitchIndex::at(static_cast<std::size_t>(past - first_uplink_.begin()) - 1), uppers_[at],
          cables_[at]};
}

BytesPerSecond Fabric::bandwidth(FabricLinkId link) const {
  if (is_port_link(link)) return port_bandwidth_;
  ORRERY_ASSERT(link.value() < link_count(), "the link exists");
  return cable_bandwidth_ * cables_[link.value() - leaf_of_port_.size()];
}

SwitchIndex Fabric::leaf_of(FabricPort port) const {
  return leaf_of_port_[link_of_port(port).value()];
}

Fabric::Uplinks Fabric::uplinks(SwitchIndex from) const {
  ORRERY_ASSERT(from.value() < switches_.size(), "the switch exists");
  const std::size_t begin = first_uplink_[from.value()];
  const std::size_t count = first_uplink_[from.value() + 1] - begin;
  return {FabricLinkId::at(leaf_of_port_.size() + begin), std::span(uppers_).subspan(begin, count),
          std::span(cables_).subspan(begin, count)};
}

// Port 0 represents all ports by the invariant on leaves; the first uplink represents all because
// the leaves of a pod have the same spines.
NetworkTier Fabric::tier_between(std::uint32_t a, std::uint32_t b) const {
  ORRERY_ASSERT(a < nodes_ && b < nodes_, "the nodes exist");
  if (a == b) return NetworkTier::kNode;
  if (ports_per_node_ == 0) return NetworkTier::kNone;
  const SwitchIndex leaf_a = leaf_of({a, 0});
  const SwitchIndex leaf_b = leaf_of({b, 0});
  if (leaf_a == leaf_b) return NetworkTier::kLeaf;
  if (is_dragonfly()) {
    return inside_group(leaf_a, leaf_b) ? NetworkTier::kSpine : NetworkTier::kCore;
  }
  const std::span<const SwitchIndex> spines_a = uplinks(leaf_a).uppers;
  const std::span<const SwitchIndex> spines_b = uplinks(leaf_b).uppers;
  if (spines_a.empty() || spines_b.empty()) return NetworkTier::kNone;
  return spines_a.front() == spines_b.front() ? NetworkTier::kSpine : NetworkTier::kCore;
}

BytesPerSecond Fabric::measure_bisection() const {
  const BytesPerSecond nics = port_bandwidth_ * (static_cast<double>(leaf_of_port_.size()) / 2);
  const BytesPerSecond leaf_cables = cable_bandwidth_ * static_cast<double>(tier_cables_[0]);
  const BytesPerSecond upper_cables = cable_bandwidth_ * static_cast<double>(tier_cables_[1]);
  if (is_dragonfly()) {
    if (groups_ > 1) return std::min(nics, upper_cables * mesh_cut_share(groups_));
    const bool mesh = kind_ == NetworkKind::kDragonfly;
    return std::min(nics, leaf_cables * (mesh ? mesh_cut_share(tier_sizes_[0]) : 0.5));
  }
  BytesPerSecond least = nics;
  if (tier_sizes_[1] > 0) least = std::min(least, leaf_cables / 2);
  if (tier_sizes_[2] > 0) least = std::min(least, upper_cables / 2);
  return least;
}

void Fabric::measure_tree_oversubscription() {
  std::vector<BytesPerSecond> below(switches_.size());
  std::vector<BytesPerSecond> above(switches_.size());
  for (const SwitchIndex leaf : leaf_of_port_) below[leaf.value()] += port_bandwidth_;
  for (std::size_t lower = 0; lower < switches_.size(); ++lower) {
    for (std::size_t link = first_uplink_[lower]; link < first_uplink_[lower + 1]; ++link) {
      above[lower] += cable_bandwidth_ * cables_[link];
      below[uppers_[link].value()] += cable_bandwidth_ * cables_[link];
    }
  }
  std::array<double, 2> worst{};
  for (std::size_t i = 0; i < switches_.size(); ++i) {
    if (above[i] == BytesPerSecond(0)) continue;
    double& tier = worst[switches_[i].tier];
    tier = std::max(tier, below[i] / above[i]);
  }
  for (std::size_t tier = 0; tier < worst.size(); ++tier) {
    if (worst[tier] > 0) oversubscription_[tier] = worst[tier];
  }
}

void Fabric::measure_dragonfly_oversubscription() {
  std::vector<double> router_ports(switches_.size());
  std::vector<double> router_local(switches_.size());
  std::vector<double> group_ports(groups_);
  std::vector<double> group_global(groups_);
  for (const SwitchIndex leaf : leaf_of_port_) {
    ++router_ports[leaf.value()];
    ++group_ports[switches_[leaf.value()].group];
  }
  for (std::uint32_t lower = 0; lower < switches_.size(); ++lower) {
    for (std::size_t link = first_uplink_[lower]; link < first_uplink_[lower + 1]; ++link) {
      const SwitchIndex upper = uppers_[link];
      const bool local = inside_group(SwitchIndex(lower), upper);
      std::vector<double>& table = local ? router_local : group_global;
      table[local ? lower : switches_[lower].group] += cables_[link];
      table[local ? upper.value() : switches_[upper.value()].group] += cables_[link];
    }
  }
  const double rates = port_bandwidth_ / cable_bandwidth_;
  const auto worst = [rates](const std::vector<double>& below, const std::vector<double>& above) {
    double ratio = 0;
    for (std::size_t i = 0; i < below.size(); ++i) {
      if (above[i] > 0) ratio = std::max(ratio, below[i] / above[i] * rates);
    }
    return ratio > 0 ? ratio : 1;
  };
  oversubscription_ = {worst(router_ports, router_local), worst(group_ports, group_global)};
}

Bytes Fabric::footprint() const {
  const std::size_t bytes = sizeof(Fabric) + switches_.capacity() * sizeof(Switch) +
                            leaf_of_port_.capacity() * sizeof(SwitchIndex) +
                            first_uplink_.capacity() * sizeof(std::uint32_t) +
                            uppers_.capacity() * sizeof(SwitchIndex) +
                            cables_.capacity() * sizeof(std::uint16_t);
  return Bytes(static_cast<double>(bytes));
}

}  // namespace orrery
