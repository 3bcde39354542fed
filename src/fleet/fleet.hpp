// fleet/fleet.hpp - the live fleet: a topology and its state, edited in place by one thread.
//
// Made from a topology; every node starts ready with all devices free, every link healthy and idle.
// Free counts per domain and type follow each edit. Snapshots are for other threads and cost a page
// directory; hypotheses are overlays (fleet/view.hpp), never copies.
// Invariant: free counts equal what counting the nodes would give.
#pragma once

#include <memory>
#include <vector>

#include "fleet/state.hpp"
#include "fleet/topology.hpp"
#include "fleet/view.hpp"

namespace orrery {

/// A fleet at one instant; immutable, safe to read from any thread, also after the Fleet is gone.
class FleetSnapshot {
 public:
  [[nodiscard]] FleetView view() const {
    return {*topology_,
            {nodes_->data(), counts_->data(), links_->data(), shares_->data(), &shared_}};
  }
  /// Grows by one with every snapshot of a fleet.
  [[nodiscard]] std::uint64_t version() const { return *lease_; }

 private:
  friend class Fleet;
  std::shared_ptr<const Topology> topology_;
  std::shared_ptr<const FleetState> state_;  ///< keeps the pages alive
  Generations::Lease lease_;
  NodeStates::Directory nodes_;
  FreeCounts::Directory counts_;
  LinkStates::Directory links_;
  DeviceShares::Directory shares_;
  std::uint32_t shared_ = 0;
};

class Fleet {
 public:
  explicit Fleet(Topology topology);

  [[nodiscard]] const Topology& topology() const { return *topology_; }

  /// A view that also shows every later edit.
  [[nodiscard]] FleetView view() const {
    return {*topology_,
            {state_->nodes.directory(), state_->counts.directory(), state_->links.directory(),
             state_->shares.directory(), &state_->shared}};
  }

  /// Sets a node's state and updates the counts of its domains. Precondition: no free device beyond
  /// the node's. O(levels x types of a domain); after a publish also a page copy for each.
  void set_node(NodeId id, const NodeState& state);
  void set_health(NodeId id, NodeHealth health);
  void set_free(NodeId id, std::uint64_t free_mask);

  /// Precondition: health and load are finite, health in [0, 1], load at least 0.
  void set_link(LinkId id, LinkState state);

  /// Sets how much of a device is used by the jobs that share it. Precondition: at most kShareMax;
  /// a caller that gives a share also takes the device out of its node's free mask.
  void set_shared(DeviceId id, std::uint16_t thousandths);

  /// Returns a snapshot of the present state for other threads. O(pages), without copying a page.
  [[nodiscard]] std::shared_ptr<const FleetSnapshot> publish();

 private:
  std::shared_ptr<const Topology> topology_;
  std::shared_ptr<FleetState> state_;
  Generations generations_;
};

}  // namespace orrery
