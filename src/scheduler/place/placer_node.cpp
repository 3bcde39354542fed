// Searches one node for a whole gang.
#include <algorithm>
#include <limits>

#include "base/assert.hpp"
#include "scheduler/place/placer.hpp"

namespace orrery {

NodeId Placer::tightest_node(DomainId from, std::uint32_t available) const {
  const FleetTypeId type = job_.request->type;
  const Topology& topology = tree_->topology();
  DomainId at = from;
  while (topology.domain(at).children > 0) {
    const Domain& domain = topology.domain(at);
    DomainId best;
    std::uint32_t best_free = std::numeric_limits<std::uint32_t>::max();
    for (std::uint32_t i = 0; i < domain.children; ++i) {
      const DomainId child(domain.first_child.value() + i);
      const auto cell = topology.count_row(child, type);
      if (!cell) continue;
      const std::uint32_t* row = &FreeCounts::item(job_.view->pages().counts, *cell);
      const std::uint32_t free = row[CountRow::kDevices];
      if (row[CountRow::kNodesWith + available] == 0 || free >= best_free) continue;
      best = child;
      best_free = free;
      if (free == available) break;  // that node's alone
    }
    at = best;
  }
  const Domain& rack = topology.domain(at);
  for (std::uint32_t i = 0; i < rack.nodes; ++i) {
    const NodeId node(rack.first_node.value() + i);
    if (topology.group(node).type == type && job_.view->node(node).available() == available) {
      return node;
    }
  }
  ORRERY_ASSERT(false, "a rack has the nodes its counts say");
}

NodeId Placer::first_node(DomainId from) const {
  const FleetTypeId type = job_.request->type;
  const Topology& topology = tree_->topology();
  DomainId at = from;
  while (topology.domain(at).children > 0) {
    const Domain& domain = topology.domain(at);
    DomainId next = domain.first_child;
    while (job_.view->units(next, type, job_.request->devices) == 0)
      next = DomainId(next.value() + 1);
    at = next;
  }
  const Domain& rack = topology.domain(at);
  for (std::uint32_t i = 0; i < rack.nodes; ++i) {
    const NodeId node(rack.first_node.value() + i);
    if (node_holds(node)) return node;
  }
  ORRERY_ASSERT(false, "a rack has the nodes its counts say");
}

bool Placer::node_holds(NodeId node) const {
  const GangRequest& request = *job_.request;
  const NodeGroup& group = tree_->topology().group(node);
  if (group.type != request.type) return false;
  const NodeState& state = job_.view->node(node);
  if (state.available() < request.devices || host_units(node) < request.devices) return false;
  if (request.exclusive && (state.available() != group.devices || state.used_cpu != 0))
    return false;
  return !avoided(node) && allowed((*tree_)[tree_->around(node)]);
}

// Nodes by how few devices they would be left with, one for each such remainder. Only with counts
// that are exact: a domain of the place, no site excluded.
void Placer::find_nodes() {
  const Place& within = (*tree_)[job_.options->within];
  const GangRequest& request = *job_.request;
  if (job_.options->fit == NodeFit::kFirst) {
    if (job_.view->units(within.domain, request.type, request.devices) > 0) {
      holders_.push_back({job_.options->within, first_node(within.domain), 0, 0});
    }
    return;
  }
  const std::uint32_t most = tree_->topology().node_devices_max(request.type);
  for (std::uint32_t k = request.devices; k <= most; ++k) {
    if (job_.view->nodes_with(within.domain, request.type, k) == 0) continue;
    const NodeId node = tightest_node(within.domain, k);
    holders_.push_back({tree_->around(node), node, 0, k});
    if (holders_.size() >= job_.options->most) return;
  }
}

// Fullest nodes first, then fullest racks.
std::uint32_t Placer::holder_key(NodeId node, std::uint32_t available) const {
  if (job_.options->fit == NodeFit::kFirst) return 0;
  const DomainId rack = tree_->topology().place(node).rack;
  const std::uint32_t free = job_.view->free(rack, job_.request->type).devices;
  return available << 16 | std::min(0xffffu, free);
}

// The counts of a rack are an upper bound: a rack is skipped if even its fullest suitable node
// would be worse than enough others, and so are the racks of a domain for which that holds.
void Placer::find_nodes_exactly() {
  const Place& within = (*tree_)[job_.options->within];
  const Topology& topology = tree_->topology();
  const std::uint32_t end = within.nodes.first.value() + within.nodes.count;
  std::vector<std::uint32_t> best;  // keys, ascending
  // Devices of the fullest suitable node; 0: none.
  const auto fullest = [&](DomainId domain) -> std::uint32_t {
    const auto nodes = job_.view->nodes_by_available(domain, job_.request->type);
    std::uint32_t least = job_.request->devices;
    while (least < nodes.size() && nodes[least] == 0) ++least;
    return least < nodes.size() ? least : 0;
  };
  const auto worse = [&](std::uint32_t key) {
    return best.size() >= job_.options->most && key > best.back();
  };
  for (std::uint32_t i = within.nodes.first.value(); i < end;) {
    const Domain& rack = topology.domain(topology.place(NodeId(i)).rack);
    const Domain& around = topology.domain(rack.parent);
    if (i == around.first_node.value()) {
      const std::uint32_t least = fullest(rack.parent);
      const bool best_fit = job_.options->fit == NodeFit::kBest;
      if (least == 0 || (best_fit && worse(least << 16))) {
        i = std::min(end, i + around.nodes);
        continue;
      }
    }
    const std::uint32_t rack_end = std::min(end, rack.first_node.value() + rack.nodes);
    const std::uint32_t least = fullest(topology.place(NodeId(i)).rack);
    if (least == 0 || worse(holder_key(NodeId(i), least))) {
      i = rack_end;
      continue;
    }
    for (; i < rack_end; ++i) {
      const NodeId node(i);
      if (!node_holds(node)) continue;
      const std::uint32_t key = holder_key(node, job_.view->node(node).available());
      holders_.push_back({tree_->around(node), node, 0, key});
      if (job_.options->fit == NodeFit::kFirst && holders_.size() >= job_.options->most) return;
      best.insert(std::upper_bound(best.begin(), best.end(), key), key);
      if (best.size() > job_.options->most) best.pop_back();
    }
  }
}

}  // namespace orrery
