// scheduler/place/place_tree.hpp - every part of a fleet that a gang may be confined to, as one
// tree.
//
// Merges the domains of the topology with scale-up domains, leaf units and network groups. All are
// Merges the domains of the topology with scale-up domains, leaf units and network groups. All are
// runs of nodes. Those that coincide become one place with several names; a run that would cross
// another (a leaf under parts of two racks) is left out, since nothing can be kept inside both.
// Built once for a topology, then immutable. Invariant: the children of a place cover its nodes in
// order and without overlap, or it has no children; parents come before children.
#pragma once

#include <span>
#include <vector>

#include "fleet/topology.hpp"
#include "scheduler/request/gang.hpp"

namespace orrery {

using PlaceId = Id<struct PlaceTag>;

struct Place {
  static constexpr std::uint8_t kAboveSites = 0xff;

  NodeRun nodes;
  DomainId domain;  ///< domain whose free counts are kept; none for a run that is no domain
  PlaceId parent;
  PlaceId first_child;  ///< children are contiguous
  std::uint32_t children = 0;
  std::uint16_t levels = 0;         ///< bit l is set: the place is a TopologyLevel l
  std::uint8_t site = kAboveSites;  ///< ordinal of its site

  [[nodiscard]] bool is(TopologyLevel level) const {
    return (levels >> static_cast<unsigned>(level) & 1) != 0;
  }
};

class PlaceTree {
 public:
  /// The topology must outlive the tree. O(nodes + places log places).
  explicit PlaceTree(const Topology& topology);

  [[nodiscard]] const Topology& topology() const { return *topology_; }
  [[nodiscard]] static PlaceId root() { return PlaceId(0); }
  [[nodiscard]] std::span<const Place> places() const { return places_; }
  [[nodiscard]] const Place& operator[](PlaceId id) const { return places_[id.value()]; }
  [[nodiscard]] std::span<const Place> children(const Place& place) const {
    return std::span(places_).subspan(place.children == 0 ? 0 : place.first_child.value(),
                                      place.children);
  }
  [[nodiscard]] PlaceId id_of(const Place& place) const {
    return PlaceId::at(static_cast<std::size_t>(&place - places_.data()));
  }
  /// The narrowest place around a node.
  [[nodiscard]] PlaceId around(NodeId node) const;
  /// The narrowest place of a level around a node; the root when there is none.
  [[nodiscard]] PlaceId around(NodeId node, TopologyLevel level) const;
  /// Whether the tree has a place of the level.
  [[nodiscard]] bool has(TopologyLevel level) const {
    return (levels_ >> static_cast<unsigned>(level) & 1) != 0;
  }
  /// The level that a request for `level` means in this fleet: the next wider one if no place has
  /// that level; a scale-up domain that is no run of nodes lies inside a node.
  [[nodiscard]] TopologyLevel level_here(TopologyLevel level) const;
  /// The narrowest level that the place has a name for: "rack".
  [[nodiscard]] static TopologyLevel level_of(const Place& place);
  /// "east/hall-1/su-2/rack-3", or the names of the run's first and last node.
  [[nodiscard]] std::string name(PlaceId id) const;

 private:
  const Topology* topology_;
  std::vector<Place> places_;
  std::vector<PlaceId> around_;  ///< by node
  std::uint16_t levels_ = 0;
};

}  // namespace orrery
