// fleet/view.hpp - a readable view of a fleet: live, as a snapshot, or under a hypothesis.
//
// FleetView is a small value of pointers, cheap to copy and pass; what it shows must outlive it:
// the Fleet (then it shows every later edit), a FleetSnapshot, or a FleetOverlay on another view.
// In all three cases a read is two loads.
#pragma once

#include <cstdint>
#include <span>

#include "fleet/state.hpp"
#include "fleet/topology.hpp"

namespace orrery {

class FleetView {
 public:
  /// The pages to read; see CowArray::directory.
  struct Pages {
    const NodeStates::Page* const* nodes;
    const FreeCounts::Page* const* counts;
    const LinkStates::Page* const* links;
    const DeviceShares::Page* const* shares;
    const std::uint32_t* shared;  ///< number of shared devices
  };

  FleetView(const Topology& topology, Pages pages) : topology_(&topology), pages_(pages) {}

  [[nodiscard]] const Topology& topology() const { return *topology_; }
  [[nodiscard]] const Pages& pages() const { return pages_; }
  [[nodiscard]] const NodeState& node(NodeId id) const {
    return NodeStates::item(pages_.nodes, id.value());
  }
  [[nodiscard]] const LinkState& link(LinkId id) const {
    return LinkStates::item(pages_.links, id.value());
  }
  /// Thousandths of a device in use by jobs that share it; see DeviceShares.
  [[nodiscard]] std::uint16_t shared(DeviceId id) const {
    return DeviceShares::item(pages_.shares, id.value());
  }
  /// Whether one of these devices is free, or shared.
  [[nodiscard]] bool has_room(const NodeDevices& at) const;
  /// Whether any device of the fleet is shared.
  [[nodiscard]] bool any_shared() const { return *pages_.shared > 0; }
  /// Free counts of a type in a domain; zero if the domain has none. O(types of the domain).
  [[nodiscard]] FreeCount free(DomainId domain, FleetTypeId type) const;
  /// Returns at index k how many nodes of a type in a domain have exactly k available devices, for
  /// k from 0 to Topology::node_devices_max; a node that is not ready has none. Empty if the domain
  /// has no node of the type. Valid until the next edit of the shown fleet. O(types of the domain).
  [[nodiscard]] std::span<const std::uint32_t> nodes_by_available(DomainId domain,
                                                                  FleetTypeId type) const;
  /// Returns nodes_by_available(domain, type)[k]; 0 if there is no such k.
  [[nodiscard]] std::uint32_t nodes_with(DomainId domain, FleetTypeId type, std::uint32_t k) const;
  /// Returns how many units of `unit` available devices within one node a domain has. Precondition:
  /// unit >= 1. O(types of the domain + devices per node); a unit of 1 costs as much as free().
  [[nodiscard]] std::uint32_t units(DomainId domain, FleetTypeId type, std::uint32_t unit) const;

 private:
  const Topology* topology_;
  Pages pages_;
};

/// Available devices of a node before and after an edit.
struct AvailableChange {
  NodeId id;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

/// A hypothesis ("what if"): some nodes and links in another state. It shares every page of its
/// base, and copies a page before it changes something in it. Made by the code that needs it,
/// edited by one thread. The base (a fleet, a snapshot, another overlay) must outlive it and stay
/// unedited between reset and the last read. Cost: 8 bytes per page to make or reset, 2 to 4 KiB
/// per changed page; a reused object keeps its pages, so that a pass allocates nothing.
class FleetOverlay {
 public:
  explicit FleetOverlay(FleetView base);
  FleetOverlay(const FleetOverlay&) = delete;
  FleetOverlay& operator=(const FleetOverlay&) = delete;

  /// Drops all hypothetical changes and starts from `base`. Precondition: not a view of this
  /// overlay.
  void reset(FleetView base);

  /// Edits like those of Fleet (fleet/fleet.hpp), with equal preconditions.
  void set_node(NodeId id, const NodeState& state);
  void set_link(LinkId id, LinkState state);
  void set_shared(DeviceId id, std::uint16_t thousandths);
  /// Takes those of these devices that are free, and the unused shares of those that are shared:
  /// they show kShareMax, so sharers may still be returned. Nothing else of their nodes changes.
  /// Faster than a set_node() for each if neighbours follow each other.
  void hide(std::span<const NodeDevices> devices);
  /// Frees these devices, as fast as hide(); nothing else of their nodes changes. Precondition:
  /// none is free.
  void reveal(std::span<const NodeDevices> devices);

  /// A view of the base with the hypothetical changes, including later ones; valid until reset, and
  /// as long as this overlay and its base.
  [[nodiscard]] FleetView view() const {
    return {*topology_,
            {nodes_.directory(), counts_.directory(), links_.directory(), shares_.directory(),
             &shared_}};
  }

 private:
  template <class Edit>
  void edit_free(std::span<const NodeDevices> devices, const Edit& edit);
  void fill_shared(const NodeDevices& at);

  const Topology* topology_;
  CowOverlay<NodeStates> nodes_;
  CowOverlay<FreeCounts> counts_;
  CowOverlay<LinkStates> links_;
  CowOverlay<DeviceShares> shares_;
  std::uint32_t shared_ = 0;  ///< number of shared devices
};

/// Returns the first cell of the row of counts of a node's type in a domain above it. O(types).
inline std::uint32_t count_row_of(const Topology& topology, DomainId domain, NodeId node) {
  const bool only = topology.domain(domain).types == 1;
  return only ? topology.first_count_row(domain)
              : *topology.count_row(domain, topology.group(node).type);
}

/// Calls visit(first cell of the row) for the row of counts of a node's type in each domain over
/// the node, rack first. O(levels x types).
template <class Visit>
void for_each_count_row(const Topology& topology, NodeId node, Visit&& visit) {
  for (DomainId at = topology.place(node).rack; at.valid(); at = topology.domain(at).parent) {
    visit(count_row_of(topology, at, node));
  }
}

/// Updates a domain's row of counts for `nodes` nodes of `devices` devices each that all change by
/// `change`. O(1).
inline void move_counts(std::uint32_t* row, std::uint32_t devices, AvailableChange change,
                        std::uint32_t nodes) {
  row[CountRow::kDevices] += (change.to - change.from) * nodes;
  row[CountRow::kWholeNodes] +=
      ((change.to == devices ? 1U : 0U) - (change.from == devices ? 1U : 0U)) * nodes;
  row[CountRow::kNodesWith + change.from] -= nodes;
  row[CountRow::kNodesWith + change.to] += nodes;
}

/// Updates the counts of every domain above a node that changed. `edit(cell)` returns the first
/// cell of a row to write to. O(levels x types).
template <class Edit>
void move_counts(const Topology& topology, AvailableChange change, Edit&& edit) {
  if (change.from == change.to) return;
  for_each_count_row(topology, change.id, [&](std::uint32_t cell) {
    move_counts(&edit(cell), topology.group(change.id).devices, change, 1);
  });
}

/// Asserts the preconditions of an edit.
void check_state(const Topology& topology, NodeId id, const NodeState& state);
void check_state(LinkState state);
void check_shared(std::uint16_t thousandths);

}  // namespace orrery
