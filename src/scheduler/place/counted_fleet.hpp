// scheduler/place/counted_fleet.hpp - a fleet as numbers of free devices by node: quick to fill, to
// empty and to copy, for forecasts that simulate many futures.
//
// A real placement also checks what is left out here: which devices of a node, host resources,
// segments, rails, exclusive places and the shape of slices. A gang stays inside its required
// level; a shared device is so many thousandths of its node. A value; one thread. Invariant: a node
// is in the list of its type and of its number of whole free devices.
#pragma once

#include <memory>
#include <vector>

#include "fleet/view.hpp"
#include "scheduler/place/place_tree.hpp"
#include "scheduler/request/gang.hpp"
#include "scheduler/request/placed_gang.hpp"

namespace orrery {

/// What is taken from or given back to one node.
struct CountedPiece {
  NodeId node;
  std::int32_t thousandths = 0;
  std::int32_t devices = 0;  ///< devices that count for the tenant; 0 for those that an exclusive
                             ///< gang leaves idle
};

class CountedFleet {
 public:
  /// The tree must outlive it. O(nodes).
  CountedFleet(const FleetView& view, const PlaceTree& tree);

  /// Devices that are free as a whole.
  [[nodiscard]] std::int64_t free(FleetTypeId type) const { return free_[type.value()]; }
  [[nodiscard]] FleetTypeId type_of(NodeId node) const { return nodes_[node.value()].type; }

  /// Takes a gang's devices and appends the pieces; returns false and takes nothing if they do not
  /// fit. O(devices of a node) for a gang of one node; inside a level O(its places + nodes of one).
  [[nodiscard]] bool take(const GangRequest& gang, std::vector<CountedPiece>& pieces);
  /// Gives a piece back; devices of a node that is not ready do not become free.
  void give_back(const CountedPiece& piece);

  /// Appends the pieces that a running gang gives back.
  static void append(const PlacedGang& gang, std::vector<CountedPiece>& pieces);

 private:
  struct Node {
    std::int32_t free = 0;  ///< thousandths of a device
    std::uint32_t at = 0;   ///< position in its list
    FleetTypeId type;
    bool ready = false;
  };
  using LevelPlaces = std::vector<std::vector<PlaceId>>;  ///< by level

  [[nodiscard]] std::int32_t& free_in(FleetTypeId type, PlaceId place) {
    return free_in_[type.value() * tree_->places().size() + place.value()];
  }

  [[nodiscard]] std::vector<NodeId>& list_of(NodeId node, std::int32_t free);
  void change(NodeId node, std::int32_t by);
  /// The node inside a place that fits tightest.
  [[nodiscard]] NodeId tightest(const GangRequest& gang, std::int32_t wanted, PlaceId inside);
  /// The place where a gang of several nodes may fit: that of its level with the fewest free
  /// devices that are enough. Invalid: there is none.
  [[nodiscard]] PlaceId place_for(const GangRequest& gang, TopologyLevel level);
  /// Takes whole units of a gang from nodes inside a place; returns how many devices are still
  /// missing.
  std::int32_t take_units(const GangRequest& gang, PlaceId inside,
                          std::vector<CountedPiece>& pieces);
  void add(const CountedPiece& piece, std::vector<CountedPiece>& pieces);

  const PlaceTree* tree_;
  std::vector<Node> nodes_;
  std::vector<std::vector<std::vector<NodeId>>> lists_;  ///< by type, then whole free devices
  std::vector<std::int64_t> free_;                       ///< by type
  std::vector<std::int32_t> free_in_;                    ///< by type, then place
  std::shared_ptr<const LevelPlaces> places_;            ///< shared by all copies
};

}  // namespace orrery
