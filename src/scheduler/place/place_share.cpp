#include <bit>
#include <limits>

#include "scheduler/place/placer.hpp"

namespace orrery {
namespace {

/// A device that can take the share.
struct Seat {
  NodeId node;
  std::uint32_t device = 0;  ///< of the node
  std::uint32_t left = 0;    ///< thousandths left after the placement
  std::uint32_t free = 0;    ///< devices of the node that are entirely unused
};

/// Fuller devices first, then nodes with fewer free devices: whole accelerators stay whole.
bool better(const Seat& a, const Seat& b) {
  return a.left != b.left ? a.left < b.left : a.free < b.free;
}

}  // namespace

AllocationOrRefusal place_share(const PlaceTree& tree, const FleetView& view,
                                const GangRequest& request, const PlaceOptions& options) {
  const Topology& topology = tree.topology();
  const NodeRun& nodes = tree[options.within].nodes;
  Seat best;
  best.left = std::numeric_limits<std::uint32_t>::max();
  for (std::uint32_t i = 0; i < nodes.count; ++i) {
    const NodeId node(nodes.first.value() + i);
    const NodeGroup& group = topology.group(node);
    const NodeState& state = view.node(node);
    if (group.type != request.type || state.health != NodeHealth::kReady) continue;
    const std::uint8_t site = tree[tree.around(node)].site;
    if (site != Place::kAboveSites && (request.sites >> site & 1) == 0) continue;
    if (host_ranks(group.host, state, request.host) == 0) continue;
    const auto free = static_cast<std::uint32_t>(std::popcount(state.free_mask));
    for (std::uint32_t device = 0; device < group.devices; ++device) {
      const bool whole = (state.free_mask >> device & 1) != 0;
      const std::uint32_t used =
          whole ? 0 : view.shared(DeviceId(topology.place(node).first_device.value() + device));
      if (!whole && used == 0) continue;
      const std::uint32_t limit = whole ? kWholeDevice : options.share_max;
      if (used + request.share > limit) continue;
      const Seat seat{node, device, limit - used - request.share, free};
      if (!best.node.valid() || better(seat, best)) best = seat;
      if (options.fit == NodeFit::kFirst) break;
    }
    if (options.fit == NodeFit::kFirst && best.node.valid()) break;
  }
  if (!best.node.valid()) {
    return tl::unexpected(Refusal{RejectionKind::kBusy, TopologyLevel::kNode, 1});
  }
  Allocation out;
  out.share = request.share;
  out.ranks.push_back({best.node, std::uint64_t{1} << best.device});
  return out;
}

}  // namespace orrery
