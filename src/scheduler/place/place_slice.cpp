#include "scheduler/place/place_slice.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "fleet/network/torus_grid.hpp"

namespace orrery {
namespace {

Sides without_zeros(Sides sides) {
  for (std::uint32_t& side : sides) side = std::max(side, 1u);
  return sides;
}

/// The box that contains a cuboid: the torus, or a cube of it; only the cube is open on all sides.
CellBox box_of(const TorusGrid& grid) {
  CellBox box{.sides = grid.cube(), .block = grid.block()};
  if (!grid.has_cubes()) box.closed = grid.closed();
  return box;
}

/// The number of cubes that form a slice; 0: it is no multiple of them in any orientation.
std::uint32_t cubes_in(const Sides& slice, const TorusGrid& grid) {
  if (!grid.has_cubes()) return 0;
  const Sides& cube = grid.cube();
  for (const Sides& turned : orientations(slice)) {
    if (turned[0] % cube[0] == 0 && turned[1] % cube[1] == 0 && turned[2] % cube[2] == 0) {
      return volume(slice) / volume(cube);
    }
  }
  return 0;
}

bool fits_in(const Sides& slice, const Sides& box) {
  Sides small = slice;
  Sides large = box;
  std::sort(small.begin(), small.end());
  std::sort(large.begin(), large.end());
  return small[0] <= large[0] && small[1] <= large[1] && small[2] <= large[2];
}

std::uint64_t all_devices(const NodeGroup& group) {
  return group.devices >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << group.devices) - 1;
}

/// Nodes of one group, where they are of the type and form tori.
struct Kind {
  std::optional<TorusGrid> grid;
  NodeState empty;  ///< with nothing in use
  std::uint32_t devices = 0;
};

/// Looks for cuboids in boxes of one shape.
struct BoxSearch {
  explicit BoxSearch(const TorusGrid& grid) : box(box_of(grid)), search(box) {
    const std::uint32_t devices = volume(box.sides);
    cell_of.resize(devices);
    device_at.resize(devices);
    for (std::uint32_t i = 0; i < devices; ++i) {
      // The first box lies at the origin, and all are alike.
      cell_of[i] = box.index(grid.coordinates(i));
      device_at[cell_of[i]] = i;
    }
  }

  CellBox box;
  CuboidSearch search;
  std::vector<std::uint32_t> cell_of;    ///< by device of the box
  std::vector<std::uint32_t> device_at;  ///< by cell
  std::vector<std::uint8_t> free;        ///< by cell
};

/// What one box can provide.
struct BoxRoom {
  DeviceId first;
  NodeRun nodes;  ///< from the first to the last that has a device for the slice
  std::uint32_t free = 0;
};

/// One or more neighbouring boxes of a torus from which the slice may come.
struct Candidate {
  std::uint32_t first = 0;  ///< of the rooms
  std::uint32_t rooms = 1;
  std::uint32_t free = 0;  ///< devices, or those of whole cubes only
};

NodeRun common(const NodeRun& a, const NodeRun& b) {
  const std::uint32_t first = std::max(a.first.value(), b.first.value());
  const std::uint32_t end = std::min(a.first.value() + a.count, b.first.value() + b.count);
  return {NodeId(first), end > first ? end - first : 0};
}

/// A search for one slice in a fleet, or in the fleet with nothing in use.
class SliceFinder {
 public:
  struct Question {
    const PlaceTree& tree;
    const FleetView* view;  ///< null: everything is free and ready
    const GangRequest& request;
    const PlaceOptions& options;
  };

  explicit SliceFinder(const Question& question)
      : question_(question),
        topology_(question.tree.topology()),
        slice_(without_zeros(question.request.slice)),
        devices_(volume(slice_)) {
    ORRERY_ASSERT(devices_ == question.request.devices, "a slice has the devices of its gang");
    const GangRequest& request = question.request;
    plain_ = !request.host.any() && !request.exclusive && question.options.avoid.empty();
    for (const NodeGroup& group : topology_.groups()) {
      Kind kind{.devices = group.devices};
      if (group.type == request.type) kind.grid = TorusGrid::of(group);
      kind.empty.free_mask = all_devices(group);
      kinds_.push_back(kind);
    }
    searches_.resize(kinds_.size());
    find_candidates();
  }

  [[nodiscard]] std::vector<Allocation> find();
  [[nodiscard]] Refusal refusal() const {
    return {RejectionKind::kBusy, TopologyLevel::kScaleUp,
            devices_ > most_free_ ? devices_ - most_free_ : 1};
  }

 private:
  void find_candidates();
  [[nodiscard]] NodeRun part_around(NodeId node) const;
  void add_part(const NodeRun& part, const TorusGrid& grid);
  void add_candidates(std::uint32_t first_room, const TorusGrid& grid);
  [[nodiscard]] std::uint64_t usable(NodeId node);
  [[nodiscard]] const NodeState& state_of(NodeId node) const;
  [[nodiscard]] bool may_be_exclusive(NodeId node);

  [[nodiscard]] std::optional<Allocation> take(const Candidate& candidate);
  [[nodiscard]] Allocation take_cubes(std::vector<BoxRoom> whole, std::uint32_t cubes);
  [[nodiscard]] std::optional<Allocation> take_cuboid(const BoxRoom& room);

  Question question_;
  const Topology& topology_;
  Sides slice_;
  std::uint32_t devices_;
  std::uint32_t most_free_ = 0;
  bool plain_ = false;       ///< a device is usable when it is free and its node ready
  std::vector<Kind> kinds_;  ///< by node group
  std::vector<std::optional<BoxSearch>> searches_;  ///< by node group, made when first needed
  std::vector<BoxRoom> rooms_;
  std::vector<Candidate> candidates_;
  PlaceId exclusive_place_;  ///< the last one may_be_exclusive() looked at
  bool exclusive_free_ = false;
};

void SliceFinder::find_candidates() {
  const NodeRun& within = question_.tree[question_.options.within].nodes;
  const std::uint32_t end = within.first.value() + within.count;
  for (NodeId node = within.first; node.value() < end;) {
    const std::optional<TorusGrid>& grid = kinds_[topology_.place(node).group].grid;
    const std::uint8_t site = question_.tree[question_.tree.around(node)].site;
    const bool allowed = site == Place::kAboveSites || (question_.request.sites >> site & 1) != 0;
    if (!grid || !allowed) {
      node = NodeId(node.value() + 1);
      continue;
    }
    const NodeRun part = common(part_around(node), {node, end - node.value()});
    add_part(part, *grid);
    node = NodeId(node.value() + part.count);
  }
}

// The torus, or the part of it that lies in one place of the required level.
NodeRun SliceFinder::part_around(NodeId node) const {
  const TopologyLevel level = question_.tree.level_here(question_.request.required);
  if (level == TopologyLevel::kNode) return {node, 1};
  const NodeRun torus{topology_.place(node).scale_up_first,
                      std::max(1u, topology_.group(node).scale_up_nodes)};
  return common(torus, question_.tree[question_.tree.around(node, level)].nodes);
}

void SliceFinder::add_part(const NodeRun& part, const TorusGrid& grid) {
  const std::uint32_t box_devices = volume(grid.cube());
  const NodeId torus = topology_.place(part.first).scale_up_first;
  const std::uint32_t base = topology_.place(torus).first_device.value();
  const auto first_room = static_cast<std::uint32_t>(rooms_.size());
  std::uint32_t box_end = 0;
  for (std::uint32_t i = 0; i < part.count; ++i) {
    const NodeId node(part.first.value() + i);
    const std::uint64_t devices = usable(node);
    if (devices == 0) continue;
    const NodePlace& place = topology_.place(node);
    if (place.first_device.value() >= box_end) {
      const std::uint32_t box = (place.first_device.value() - base) / box_devices;
      box_end = base + (box + 1) * box_devices;
      rooms_.push_back({DeviceId(box_end - box_devices), {node, 0}, 0});
    }
    const Kind& kind = kinds_[place.group];
    const bool all = devices == kind.empty.free_mask;
    BoxRoom& room = rooms_.back();
    room.nodes.count = node.value() - room.nodes.first.value() + 1;
    room.free += all ? kind.devices : static_cast<std::uint32_t>(std::popcount(devices));
  }
  add_candidates(first_room, grid);
}

void SliceFinder::add_candidates(std::uint32_t first_room, const TorusGrid& grid) {
  const auto rooms = static_cast<std::uint32_t>(rooms_.size()) - first_room;
  if (cubes_in(slice_, grid) > 0) {
    std::uint32_t free = 0;
    for (std::uint32_t i = first_room; i < first_room + rooms; ++i) {
      if (rooms_[i].free == volume(grid.cube())) free += rooms_[i].free;
    }
    most_free_ = std::max(most_free_, free);
    if (free >= devices_) candidates_.push_back({first_room, rooms, free});
    return;
  }
  if (!fits_in(slice_, grid.cube())) return;
  for (std::uint32_t i = first_room; i < first_room + rooms; ++i) {
    most_free_ = std::max(most_free_, rooms_[i].free);
    if (rooms_[i].free >= devices_) candidates_.push_back({i, 1, rooms_[i].free});
  }
}

const NodeState& SliceFinder::state_of(NodeId node) const {
  if (question_.view != nullptr) return question_.view->node(node);
  return kinds_[topology_.place(node).group].empty;
}

// Devices of a node that the slice may use.
std::uint64_t SliceFinder::usable(NodeId node) {
  const NodeState& state = state_of(node);
  if (state.health != NodeHealth::kReady || state.free_mask == 0) return 0;
  if (!kinds_[topology_.place(node).group].grid) return 0;
  if (plain_) return state.free_mask;
  const NodeGroup& group = topology_.group(node);
  const std::uint32_t available = state.available();
  const std::uint32_t ranks = std::min(available, devices_);
  if (host_ranks(group.host, state, question_.request.host) < ranks) return 0;
  for (const NodeRun& range : question_.options.avoid) {
    if (range.contains(node)) return 0;
  }
  if (question_.request.exclusive && !may_be_exclusive(node)) return 0;
  return state.free_mask;
}

// Whether nothing runs in the place around the node that the gang would use exclusively.
bool SliceFinder::may_be_exclusive(NodeId node) {
  const auto idle = [&](NodeId at) {
    const NodeState& state = state_of(at);
    return state.available() == topology_.group(at).devices && state.used_cpu == 0;
  };
  const TopologyLevel level = question_.tree.level_here(*question_.request.exclusive);
  if (level == TopologyLevel::kNode) return idle(node);
  const PlaceId place = question_.tree.around(node, level);
  if (place != exclusive_place_) {
    exclusive_place_ = place;
    exclusive_free_ = true;
    const NodeRun& nodes = question_.tree[place].nodes;
    for (std::uint32_t i = 0; i < nodes.count && exclusive_free_; ++i) {
      exclusive_free_ = idle(NodeId(nodes.first.value() + i));
    }
  }
  return exclusive_free_;
}

std::vector<Allocation> SliceFinder::find() {
  if (question_.options.fit == NodeFit::kBest) {
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.free < b.free; });
  }
  std::vector<Allocation> found;
  for (const Candidate& candidate : candidates_) {
    std::optional<Allocation> allocation = take(candidate);
    if (!allocation) continue;
    found.push_back(*std::move(allocation));
    if (found.size() >= question_.options.most) break;
  }
  return found;
}

std::optional<Allocation> SliceFinder::take(const Candidate& candidate) {
  const std::span<const BoxRoom> rooms =
      std::span(rooms_).subspan(candidate.first, candidate.rooms);
  const TorusGrid& grid = *kinds_[topology_.place(rooms.front().nodes.first).group].grid;
  const std::uint32_t cubes = cubes_in(slice_, grid);
  if (cubes == 0) return take_cuboid(rooms.front());
  std::vector<BoxRoom> whole;
  for (const BoxRoom& room : rooms) {
    if (room.free == volume(grid.cube())) whole.push_back(room);
  }
  return take_cubes(std::move(whole), cubes);
}

// Chooses as few racks as possible: those with most cubes first, then the tightest one that holds
// the rest.
Allocation SliceFinder::take_cubes(std::vector<BoxRoom> whole, std::uint32_t cubes) {
  struct Rack {
    std::size_t first;
    std::uint32_t cubes;
  };
  std::vector<Rack> racks;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const bool same = i > 0 && topology_.place(whole[i].nodes.first).rack ==
                                   topology_.place(whole[i - 1].nodes.first).rack;
    if (!same) racks.push_back({i, 0});
    ++racks.back().cubes;
  }
  if (question_.options.fit == NodeFit::kBest) {
    std::stable_sort(racks.begin(), racks.end(),
                     [](const Rack& a, const Rack& b) { return a.cubes > b.cubes; });
  }
  std::vector<NodeRun> taken;
  for (auto rack = racks.begin(); cubes > 0; ++rack) {
    auto from = rack;
    if (question_.options.fit == NodeFit::kBest) {
      for (auto next = rack; next != racks.end() && next->cubes >= cubes; ++next) {
        if (next->cubes < from->cubes) from = next;
      }
    }
    const std::uint32_t count = std::min(cubes, from->cubes);
    for (std::uint32_t i = 0; i < count; ++i) taken.push_back(whole[from->first + i].nodes);
    cubes -= count;
  }
  std::sort(taken.begin(), taken.end(),
            [](const NodeRun& a, const NodeRun& b) { return a.first < b.first; });
  Allocation out;
  for (const NodeRun& cube : taken) {
    for (std::uint32_t i = 0; i < cube.count; ++i) {
      const NodeId node(cube.first.value() + i);
      if (const std::uint64_t devices = usable(node); devices != 0) {
        out.ranks.push_back({node, devices});
      }
    }
  }
  return out;
}

std::optional<Allocation> SliceFinder::take_cuboid(const BoxRoom& room) {
  const std::uint32_t group = topology_.place(room.nodes.first).group;
  std::optional<BoxSearch>& made = searches_[group];
  if (!made) made.emplace(*kinds_[group].grid);
  auto& [box, search, cell_of, device_at, free] = *made;
  free.assign(cell_of.size(), 0);
  for (std::uint32_t i = 0; i < room.nodes.count; ++i) {
    const NodeId node(room.nodes.first.value() + i);
    const std::uint64_t devices = usable(node);
    const std::uint32_t at = topology_.place(node).first_device.value() - room.first.value();
    for (std::uint64_t left = devices; left != 0; left &= left - 1) {
      free[cell_of[at + static_cast<std::uint32_t>(std::countr_zero(left))]] = 1;
    }
  }
  search.look_at(free);
  const bool best = question_.options.fit == NodeFit::kBest;
  const std::optional<Cuboid> cuboid = best ? search.tightest(slice_) : search.first(slice_);
  if (!cuboid) return std::nullopt;
  std::vector<DeviceId> taken;
  for_each_cell(box, *cuboid, [&, &by_cell = device_at](std::uint32_t cell) {
    taken.push_back(DeviceId(room.first.value() + by_cell[cell]));
  });
  std::sort(taken.begin(), taken.end());
  Allocation out;
  out.ranks = nodes_of(taken, topology_);
  return out;
}

}  // namespace

tl::expected<std::vector<Allocation>, Refusal> slice_offers(const PlaceTree& tree,
                                                            const FleetView& view,
                                                            const GangRequest& request,
                                                            const PlaceOptions& options) {
  SliceFinder finder({tree, &view, request, options});
  std::vector<Allocation> found = finder.find();
  if (found.empty()) return tl::unexpected(finder.refusal());
  return found;
}

AllocationOrRefusal place_slice(const PlaceTree& tree, const FleetView& view,
                                const GangRequest& request, const PlaceOptions& options) {
  PlaceOptions one = options;
  one.most = 1;
  return slice_offers(tree, view, request, one).map([](std::vector<Allocation>&& found) {
    return std::move(found.front());
  });
}

bool slice_fits_empty(const PlaceTree& tree, const GangRequest& request) {
  const PlaceOptions anywhere;
  return !SliceFinder({tree, nullptr, request, anywhere}).find().empty();
}

std::vector<Sides> usual_slices(const NodeGroup& group, std::uint32_t devices) {
  const std::optional<TorusGrid> grid = TorusGrid::of(group);
  if (!grid || devices == 0) return {};
  std::vector<Sides> slices;
  for (std::uint32_t a = 1; a <= devices / a / a; ++a) {
    if (devices % a != 0) continue;
    for (std::uint32_t b = a; b <= devices / a / b; ++b) {
      if (devices / a % b != 0) continue;
      const Sides slice{a, b, devices / a / b};
      const std::uint32_t cubes = cubes_in(slice, *grid);
      const bool fits = cubes > 0 ? cubes <= grid->cubes() : fits_in(slice, grid->cube());
      if (fits) slices.push_back(slice);
    }
  }
  const auto half_surface = [](const Sides& s) {
    return std::uint64_t{s[0]} * s[1] + std::uint64_t{s[1]} * s[2] + std::uint64_t{s[0]} * s[2];
  };
  std::sort(slices.begin(), slices.end(), [&](const Sides& a, const Sides& b) {
    return std::pair(half_surface(a), a) < std::pair(half_surface(b), b);
  });
  for (Sides& slice : slices) {
    // [1, 4, 8] is written [4, 8, 1].
    std::rotate(slice.begin(),
                std::find_if(slice.begin(), slice.end(), [](auto s) { return s > 1; }),
                slice.end());
  }
  return slices;
}

}  // namespace orrery
