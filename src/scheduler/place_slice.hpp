// scheduler/place_slice.hpp - slices of a torus: cuboids of accelerators, which are no run of
// nodes.
//
// A torus of cubes behind optical switches strings any free cubes into a slice whose sides are
// multiples of a cube's; a smaller slice is a cuboid inside one cube. A torus without cubes gives
// any cuboid, also round the end of a closed dimension (not of a twisted one, where that is no
// cuboid). A slice may be turned. Pure; the scratch memory is of the call.
#pragma once

#include <vector>

#include "scheduler/cuboid_search.hpp"
#include "scheduler/placer.hpp"

namespace orrery {

/// Best fit. Whole cubes: those of the torus with fewest of them free, of as few racks as can be,
/// the last of these the tightest. A cuboid: the box (torus or cube) with least room that has one,
/// in it CuboidSearch::tightest. Ties by ascending id. A refusal is of level scale-up and
/// counts what is missing in the box (whole cubes: the torus) with most room. The ranks
/// stand in the order of device ids, which is that of coordinates (fleet/torus_grid.hpp).
/// Preconditions: a slice is asked, request.devices is its volume; the view is of the tree's
/// topology. O(nodes of the tori + devices of the boxes searched).
[[nodiscard]] AllocationOrRefusal place_slice(const PlaceTree& tree, const FleetView& view,
                                              const GangRequest& request,
                                              const PlaceOptions& options);

/// Up to `options.most` different ones, at least one, each of another torus or cube, the one of
/// place_slice() first.
[[nodiscard]] tl::expected<std::vector<Allocation>, Refusal> slice_offers(
    const PlaceTree& tree, const FleetView& view, const GangRequest& request,
    const PlaceOptions& options);

/// Whether the slice would fit if nothing ran and every node was ready. Same preconditions.
[[nodiscard]] bool slice_fits_empty(const PlaceTree& tree, const GangRequest& request);

/// The cuboids of so many devices that a torus of the group can give, the most cubic (least
/// surface) first; sides ascend, those of 1 last. Empty: none, or the group has no torus.
[[nodiscard]] std::vector<Sides> usual_slices(const NodeGroup& group, std::uint32_t devices);

}  // namespace orrery
