// scheduler/request/gang_shape.hpp - the gangs a role may have on one type of accelerator: its spec
// in the fleet's own terms, by size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/place/place_tree.hpp"
#include "scheduler/plans/plan_work.hpp"
#include "workload/job_spec.hpp"

namespace orrery {

class GangShape {
 public:
  /// `sites` as in GangRequest. The arguments must outlive the shape.
  GangShape(const RoleSpec& role, const PlaceTree& tree, FleetTypeId type, std::uint64_t sites);

  /// The fewest and the most devices a gang may have: from one to all of the type if the role names
  /// neither size nor slice.
  [[nodiscard]] CountRange range() const;

  /// Sizes worth offering in the range, ascending: its ends; powers of two below a node; powers of
  /// two of whole nodes (of segments where the role wants these).
  [[nodiscard]] std::vector<std::uint32_t> usual_sizes() const;

  /// Why the gang cannot have so many devices: they are not whole segments, or not a slice of a
  /// torus although the type has one and they exceed a node. "": it can.
  [[nodiscard]] std::string refusal(std::uint32_t devices) const;

  /// A gang of that size. Host needs are rounded up to the units of NodeState, a share to
  /// thousandths; levels are those of level_here(). On a torus a gang larger than a node gets its
  /// most cubic slice.
  [[nodiscard]] GangRequest gang(std::uint32_t devices) const;

  /// What a level means for the type: a scale-up domain that spans no nodes lies inside one.
  [[nodiscard]] TopologyLevel level_here(TopologyLevel level) const;

 private:
  [[nodiscard]] std::uint32_t unit(std::uint32_t devices) const;
  [[nodiscard]] std::string segment_refusal(std::uint32_t devices) const;
  [[nodiscard]] const NodeGroup* torus() const;

  const RoleSpec& role_;
  const PlaceTree& tree_;
  FleetTypeId type_;
  std::uint64_t sites_;
  std::uint32_t node_devices_;
  bool scale_up_spans_nodes_ = false;
};

}  // namespace orrery
