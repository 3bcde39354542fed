#include "scheduler/counted_fleet.hpp"

#include <algorithm>
#include <bit>
#include <map>

namespace orrery {
namespace {

constexpr std::int32_t kWhole = kWholeDevice;

}  // namespace

CountedFleet::CountedFleet(const FleetView& view, const PlaceTree& tree) : tree_(&tree) {
  const Topology& topology = view.topology();
  lists_.resize(topology.type_count());
  for (std::uint32_t t = 0; t < lists_.size(); ++t) {
    lists_[t].resize(topology.node_devices_max(FleetTypeId(t)) + 1);
  }
  free_.assign(topology.type_count(), 0);
  nodes_.resize(topology.node_count());
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    const NodeId id(i);
    const std::uint32_t available = view.node(id).available();
    nodes_[i].ready = view.node(id).health == NodeHealth::kReady;
    nodes_[i].free = static_cast<std::int32_t>(available) * kWhole;
    std::vector<NodeId>& list = list_of(id, nodes_[i].free);
    nodes_[i].at = static_cast<std::uint32_t>(list.size());
    list.push_back(id);
    free_[type_of(id).value()] += available;
  }
}

std::vector<NodeId>& CountedFleet::list_of(NodeId node, std::int32_t free) {
  std::vector<std::vector<NodeId>>& lists = lists_[type_of(node).value()];
  return lists[std::min(static_cast<std::size_t>(free / kWhole), lists.size() - 1)];
}

void CountedFleet::change(NodeId id, std::int32_t by) {
  Node& node = nodes_[id.value()];
  std::vector<NodeId>& before = list_of(id, node.free);
  free_[type_of(id).value()] += (node.free + by) / kWhole - node.free / kWhole;
  node.free += by;
  std::vector<NodeId>& after = list_of(id, node.free);
  if (&before == &after) return;
  nodes_[before.back().value()].at = node.at;
  before[node.at] = before.back();
  before.pop_back();
  node.at = static_cast<std::uint32_t>(after.size());
  after.push_back(id);
}

bool CountedFleet::is_inside(NodeId node, PlaceId place) const {
  return (*tree_)[place].nodes.contains(node);
}

NodeId CountedFleet::tightest(const GangRequest& gang, std::int32_t wanted, PlaceId inside) {
  const auto& lists = lists_[gang.type.value()];
  for (auto k = static_cast<std::size_t>((wanted + kWhole - 1) / kWhole); k < lists.size(); ++k) {
    if (inside == PlaceTree::root()) {
      if (!lists[k].empty()) return lists[k].back();
      continue;
    }
    for (const NodeId node : lists[k]) {
      if (is_inside(node, inside)) return node;
    }
  }
  return {};
}

PlaceId CountedFleet::place_for(const GangRequest& gang, TopologyLevel level) {
  if (level == TopologyLevel::kFleet) return PlaceTree::root();
  const std::uint32_t units = gang.devices / gang.node_devices;
  std::map<PlaceId, std::uint32_t> found;
  const auto& lists = lists_[gang.type.value()];
  for (std::size_t k = gang.node_devices; k < lists.size(); ++k) {
    for (const NodeId node : lists[k]) {
      found[tree_->around(node, level)] += static_cast<std::uint32_t>(k) / gang.node_devices;
    }
  }
  PlaceId best;
  for (const auto& [place, has] : found) {
    if (has >= units && (!best.valid() || has < found[best])) best = place;
  }
  return best;
}

bool CountedFleet::take(const GangRequest& gang, std::vector<CountedPiece>& pieces) {
  if (gang.share == kWholeDevice && free(gang.type) < gang.devices) return false;
  const std::size_t before = pieces.size();
  const auto add = [&](NodeId node, std::int32_t thousandths, std::int32_t devices) {
    change(node, -thousandths);
    pieces.push_back({node, thousandths, devices});
  };
  const TopologyLevel level = tree_->level_here(gang.required);
  const bool one = gang.devices <= gang.node_devices || level == TopologyLevel::kNode;
  const PlaceId inside = one ? PlaceTree::root() : place_for(gang, level);
  if (!inside.valid()) return false;
  const auto devices = static_cast<std::int32_t>(gang.devices);
  const auto each = static_cast<std::int32_t>(gang.node_devices);
  std::int32_t left = devices;
  auto& lists = lists_[gang.type.value()];
  for (auto k = static_cast<std::int32_t>(lists.size()) - 1; !one && k >= each && left >= each;) {
    const auto& list = lists[static_cast<std::size_t>(k)];
    const auto node =
        std::find_if(list.rbegin(), list.rend(), [&](NodeId id) { return is_inside(id, inside); });
    if (node == list.rend()) {
      --k;
      continue;
    }
    const std::int32_t ranks = std::min(k / each, left / each) * each;
    left -= ranks;
    add(*node, ranks * kWhole, ranks);
  }
  if (one || (left > 0 && left < each)) {
    const std::int32_t wanted = one && gang.share < kWholeDevice ? gang.share : left * kWhole;
    const NodeId node = tightest(gang, wanted, inside);
    if (node.valid()) {
      add(node, wanted, left);
      left = 0;
    }
  }
  if (left == 0) return true;
  for (std::size_t i = before; i < pieces.size(); ++i)
    change(pieces[i].node, pieces[i].thousandths);
  pieces.resize(before);
  return false;
}

void CountedFleet::give_back(const CountedPiece& piece) {
  if (nodes_[piece.node.value()].ready) change(piece.node, piece.thousandths);
}

void CountedFleet::append(const PlacedGang& gang, std::vector<CountedPiece>& pieces) {
  for (const NodeDevices& at : gang.allocation.ranks) {
    const auto devices = static_cast<std::int32_t>(std::popcount(at.devices));
    pieces.push_back({at.node, devices * gang.allocation.share, devices});
  }
  for (const NodeDevices& at : gang.allocation.idle) {
    pieces.push_back({at.node, static_cast<std::int32_t>(std::popcount(at.devices)) * kWhole, 0});
  }
}

}  // namespace orrery
