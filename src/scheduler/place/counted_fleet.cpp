#include "scheduler/place/counted_fleet.hpp"

#include <algorithm>
#include <bit>

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
  free_in_.assign(lists_.size() * tree.places().size(), 0);
  auto places = std::make_shared<LevelPlaces>(static_cast<std::size_t>(TopologyLevel::kFleet) + 1);
  for (const Place& place : tree.places()) {
    for (std::size_t level = 0; level < places->size(); ++level) {
      if (place.is(static_cast<TopologyLevel>(level)))
        (*places)[level].push_back(tree.id_of(place));
    }
  }
  places_ = std::move(places);
  nodes_.resize(topology.node_count());
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    const NodeId id(i);
    const std::uint32_t available = view.node(id).available();
    nodes_[i].type = topology.group(id).type;
    nodes_[i].ready = view.node(id).health == NodeHealth::kReady;
    std::vector<NodeId>& list = list_of(id, 0);
    nodes_[i].at = static_cast<std::uint32_t>(list.size());
    list.push_back(id);
    change(id, static_cast<std::int32_t>(available) * kWhole);
  }
}

std::vector<NodeId>& CountedFleet::list_of(NodeId node, std::int32_t free) {
  std::vector<std::vector<NodeId>>& lists = lists_[type_of(node).value()];
  return lists[std::min(static_cast<std::size_t>(free / kWhole), lists.size() - 1)];
}

void CountedFleet::change(NodeId id, std::int32_t by) {
  Node& node = nodes_[id.value()];
  const std::int32_t more = (node.free + by) / kWhole - node.free / kWhole;
  std::vector<NodeId>& before = list_of(id, node.free);
  node.free += by;
  if (more == 0) return;
  free_[node.type.value()] += more;
  for (PlaceId at = tree_->around(id); at.valid(); at = (*tree_)[at].parent) {
    free_in(node.type, at) += more;
  }
  std::vector<NodeId>& after = list_of(id, node.free);
  if (&before == &after) return;
  nodes_[before.back().value()].at = node.at;
  before[node.at] = before.back();
  before.pop_back();
  node.at = static_cast<std::uint32_t>(after.size());
  after.push_back(id);
}

NodeId CountedFleet::tightest(const GangRequest& gang, std::int32_t wanted, PlaceId inside) {
  NodeId best;
  if (inside != PlaceTree::root()) {
    const NodeRun& run = (*tree_)[inside].nodes;
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const NodeId id(run.first.value() + i);
      const Node& node = nodes_[id.value()];
      if (node.type != gang.type || node.free < wanted) continue;
      if (!best.valid() || node.free < nodes_[best.value()].free) best = id;
    }
    return best;
  }
  const auto& lists = lists_[gang.type.value()];
  for (auto k = static_cast<std::size_t>((wanted + kWhole - 1) / kWhole); k < lists.size(); ++k) {
    if (!lists[k].empty()) return lists[k].back();
  }
  return best;
}

PlaceId CountedFleet::place_for(const GangRequest& gang, TopologyLevel level) {
  if (level == TopologyLevel::kFleet) return PlaceTree::root();
  const auto wanted = static_cast<std::int32_t>(gang.devices);
  PlaceId best;
  for (const PlaceId place : (*places_)[static_cast<std::size_t>(level)]) {
    const std::int32_t has = free_in(gang.type, place);
    if (has >= wanted && (!best.valid() || has < free_in(gang.type, best))) best = place;
  }
  return best;
}

void CountedFleet::add(const CountedPiece& piece, std::vector<CountedPiece>& pieces) {
  change(piece.node, -piece.thousandths);
  pieces.push_back(piece);
}

std::int32_t CountedFleet::take_units(const GangRequest& gang, PlaceId inside,
                                      std::vector<CountedPiece>& pieces) {
  const auto each = static_cast<std::int32_t>(gang.node_devices);
  auto left = static_cast<std::int32_t>(gang.devices);
  const auto take_from = [&](NodeId id) {
    const std::int32_t most = nodes_[id.value()].free / kWhole / each;
    const std::int32_t devices = std::min(most, left / each) * each;
    left -= devices;
    if (devices > 0) add({id, devices * kWhole, devices}, pieces);
  };
  if (inside != PlaceTree::root()) {
    const NodeRun& run = (*tree_)[inside].nodes;
    for (std::uint32_t i = 0; i < run.count && left >= each; ++i) {
      const NodeId id(run.first.value() + i);
      if (nodes_[id.value()].type == gang.type) take_from(id);
    }
    return left;
  }
  const auto& lists = lists_[gang.type.value()];
  for (std::size_t k = lists.size() - 1; k >= gang.node_devices && left >= each;) {
    lists[k].empty() ? static_cast<void>(--k) : take_from(lists[k].back());
  }
  return left;
}

bool CountedFleet::take(const GangRequest& gang, std::vector<CountedPiece>& pieces) {
  if (gang.share == kWholeDevice && free(gang.type) < gang.devices) return false;
  const std::size_t before = pieces.size();
  const TopologyLevel level = tree_->level_here(gang.required);
  const bool one = gang.devices <= gang.node_devices || level == TopologyLevel::kNode;
  const PlaceId inside = one ? PlaceTree::root() : place_for(gang, level);
  if (!inside.valid()) return false;
  auto left = static_cast<std::int32_t>(gang.devices);
  if (!one) left = take_units(gang, inside, pieces);
  if (one || (left > 0 && left < static_cast<std::int32_t>(gang.node_devices))) {
    const std::int32_t wanted = one && gang.share < kWholeDevice ? gang.share : left * kWhole;
    const NodeId node = tightest(gang, wanted, inside);
    if (node.valid()) {
      add({node, wanted, left}, pieces);
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
