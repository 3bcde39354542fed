// scheduler/place/place_slice.hpp - slices of a torus: cuboids of accelerators, which are not
// contiguous runs of nodes.
//
// A torus of cubes behind optical switches joins any free cubes into a slice whose sides are
// multiples of a cube's; a smaller slice is a cuboid inside one cube. A torus without cubes gives
// any cuboid, also across the end of a closed dimension (not of a twisted one, where that is no
// cuboid). A slice may be rotated. Pure; the scratch memory belongs to the call.
#pragma once

#include <vector>

#include "scheduler/place/cuboid_search.hpp"
#include "scheduler/place/placer.hpp"

namespace orrery {

/// Places a slice by best fit. Whole cubes come from the torus with the fewest free cubes, from as
/// few racks as possible, the last of these the tightest. A cuboid comes from the box (torus or
/// cube) with the least room that can hold it, at the position of CuboidSearch::tightest. Ties go
/// by ascending id. A refusal has the level scale-up and counts what is missing in the box (for
/// whole cubes: the torus) with the most room. The ranks are in the order of device ids, which is
/// that of coordinates (fleet/network/torus_grid.hpp). Preconditions: the request asks for a slice
/// and request.devices is its volume; the view is of the tree's topology. O(nodes of the tori +
/// devices of the boxes searched).
[[nodiscard]] AllocationOrRefusal place_slice(const PlaceTree& tree, const FleetView& view,
                                              const GangRequest& request,
                                              const PlaceOptions& options);

/// Returns between one and `options.most` different slices, each in another torus or cube, the one
/// of place_slice() first.
[[nodiscard]] tl::expected<std::vector<Allocation>, Refusal> slice_offers(
    const PlaceTree& tree, const FleetView& view, const GangRequest& request,
    const PlaceOptions& options);

/// Whether the slice would fit if nothing ran and every node was ready. Preconditions as for
/// place_slice().
[[nodiscard]] bool slice_fits_empty(const PlaceTree& tree, const GangRequest& request);

/// The cuboids of so many devices that a torus of the group can give, the most cubic (least
/// surface) first; sides ascend, those of length 1 come last. Empty if there are none or the group
/// has no torus.
[[nodiscard]] std::vector<Sides> usual_slices(const NodeGroup& group, std::uint32_t devices);

}  // namespace orrery
