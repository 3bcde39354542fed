// fleet/view.hpp - a fleet to look at: live, as a snapshot, or under a hypothesis.
//
// FleetView is a small value of pointers, cheap to copy and pass; what it shows must outlive it:
// the Fleet (then it shows every later edit), a FleetSnapshot, or a FleetOverlay on another view.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "fleet/state.hpp"
#include "fleet/topology.hpp"

namespace orrery {

class FleetOverlay;

class FleetView {
 public:
  /// The pages to read; see CowArray::directory.
  struct Pages {
    const NodeStates::Page* const* nodes;
    const FreeCounts::Page* const* counts;
    const LinkStates::Page* const* links;
  };

  FleetView(const Topology& topology, Pages pages) : topology_(&topology), pages_(pages) {}

  [[nodiscard]] const Topology& topology() const { return *topology_; }
  [[nodiscard]] const NodeState& node(NodeId id) const;
  [[nodiscard]] const LinkState& link(LinkId id) const {
    return LinkStates::item(pages_.links, id.value());
  }
  /// Free counts of a type in a domain; zero where the domain has none. O(types of the domain).
  [[nodiscard]] FreeCount free(DomainId domain, FleetTypeId type) const;

 private:
  friend class FleetOverlay;
  FleetView(FleetView base, const FleetOverlay& overlay) : FleetView(base) { overlay_ = &overlay; }

  const Topology* topology_;
  Pages pages_;
  const FleetOverlay* overlay_ = nullptr;
};

/// "What if": a few nodes in another state, without copying the fleet.
/// Cost: O(depth) a change, one hash look-up a query more.
class FleetOverlay {
 public:
  explicit FleetOverlay(FleetView base) : base_(base) {}
  FleetOverlay(const FleetOverlay&) = delete;
  FleetOverlay& operator=(const FleetOverlay&) = delete;

  /// Supposes a node in this state. Precondition: no free device beyond the node's.
  void set_node(NodeId id, NodeState state);

  /// The base with the supposed changes; valid as long as this overlay and its base.
  [[nodiscard]] FleetView view() const { return FleetView(base_, *this); }

 private:
  friend class FleetView;

  struct Delta {
    std::int32_t devices = 0;
    std::int32_t nodes = 0;
  };

  FleetView base_;
  std::unordered_map<NodeId, NodeState> nodes_;
  std::unordered_map<std::uint32_t, Delta> counts_;  ///< by count slot
};

/// A node and its states before and after.
struct NodeChange {
  NodeId id;
  NodeState from;
  NodeState to;
};

/// Calls change(count slot, difference of devices, difference of whole nodes) for every domain
/// whose counts move when a node goes from one state to another. O(levels x types).
template <class Change>
void for_each_count_change(const Topology& topology, NodeChange of, Change&& change) {
  const auto& [id, from, to] = of;
  const NodeGroup& group = topology.group(id);
  const auto before = static_cast<std::int32_t>(from.available());
  const auto after = static_cast<std::int32_t>(to.available());
  if (before == after) return;
  const std::int32_t all = group.devices;
  const std::int32_t whole = (after == all ? 1 : 0) - (before == all ? 1 : 0);
  for (DomainId at = topology.place(id).rack; at.valid(); at = topology.domain(at).parent) {
    const Domain& domain = topology.domain(at);
    std::uint32_t slot = domain.first_count;
    if (domain.types > 1) {
      const auto types = topology.types_of(at);
      while (types[slot - domain.first_count] != group.type) ++slot;
    }
    change(slot, after - before, whole);
  }
}

}  // namespace orrery
