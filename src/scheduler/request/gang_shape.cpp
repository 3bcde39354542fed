#include "scheduler/request/gang_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "scheduler/place/place_slice.hpp"

namespace orrery {
namespace {

std::uint32_t rounded_up(double amount) {
  constexpr double kMost = std::numeric_limits<std::uint32_t>::max();
  constexpr double kExact = 1 - 1e-12;  // 0.29 of a device is 290 thousandths, not a bit more
  return static_cast<std::uint32_t>(std::clamp(std::ceil(amount * kExact), 0.0, kMost));
}

HostNeeds needs_of(const HostSpec& host) {
  constexpr Bytes kMebibyte(1 << 20);
  constexpr Bytes kGibibyte(1 << 30);
  return {.cpu = rounded_up(host.cpu * 1000),
          .memory = rounded_up(host.memory / kMebibyte),
          .cxl = rounded_up(host.cxl / kGibibyte),
          .disk = rounded_up(host.disk / kGibibyte)};
}

std::uint32_t volume(const std::vector<std::uint32_t>& slice) {
  std::uint64_t product = 1;
  for (const std::uint32_t side : slice) {
    product = std::min<std::uint64_t>(product * side, std::numeric_limits<std::uint32_t>::max());
  }
  return static_cast<std::uint32_t>(product);
}

}  // namespace

GangShape::GangShape(const RoleSpec& role, const PlaceTree& tree, FleetTypeId type,
                     std::uint64_t sites)
    : role_(role),
      tree_(tree),
      type_(type),
      sites_(sites),
      node_devices_(role.node_accelerators.value_or(tree.topology().node_devices_max(type))) {
  for (const NodeGroup& group : tree.topology().groups()) {
    if (group.type == type && group.scale_up_nodes > 1) scale_up_spans_nodes_ = true;
  }
}

CountRange GangShape::range() const {
  if (role_.accelerators) return {*role_.accelerators, *role_.accelerators};
  if (role_.accelerators_min && role_.accelerators_max) {
    return {*role_.accelerators_min, *role_.accelerators_max};
  }
  if (!role_.topology.slice.empty()) {
    return {volume(role_.topology.slice), volume(role_.topology.slice)};
  }
  return {1, tree_.topology().device_count(Topology::root(), type_)};
}

std::uint32_t GangShape::unit(std::uint32_t devices) const {
  return std::min(node_devices_, devices);
}

std::vector<std::uint32_t> GangShape::usual_sizes() const {
  const CountRange range = this->range();
  const std::uint64_t step =
      std::uint64_t{node_devices_} * std::max(role_.topology.segment.value_or(1), 1u);
  std::vector<std::uint32_t> sizes = {range.min, range.max};
  const auto add_powers = [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t n = first; n <= last; n *= 2) {
      if (n >= range.min) sizes.push_back(static_cast<std::uint32_t>(n));
    }
  };
  add_powers(1, std::min<std::uint64_t>(node_devices_, range.max));
  add_powers(step, range.max);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

const NodeGroup* GangShape::torus() const {
  for (const NodeGroup& group : tree_.topology().groups()) {
    if (group.type == type_ && group.torus) return &group;
  }
  return nullptr;
}

std::string GangShape::segment_refusal(std::uint32_t devices) const {
  const std::uint64_t segment = role_.topology.segment.value_or(1);
  const std::string& id = tree_.topology().accelerator(type_).id;
  if (segment > 1 && !scale_up_spans_nodes_) {
    return fmt::format("topology.segment: no scale-up domain of {} spans nodes", id);
  }
  if (segment > 1 && devices % (segment * unit(devices)) != 0) {
    return fmt::format("topology.segment: {} of {} are not whole runs of {} nodes", devices, id,
                       segment);
  }
  return "";
}

std::string GangShape::refusal(std::uint32_t devices) const {
  if (std::string segment = segment_refusal(devices); !segment.empty()) return segment;
  const NodeGroup* group = torus();
  const bool sliced = !role_.topology.slice.empty() || role_.topology.segment;
  if (sliced || group == nullptr || devices <= group->devices) return "";
  if (!usual_slices(*group, devices).empty()) return "";
  return fmt::format("topology.slice: {} of {} are no cuboid of its torus", devices,
                     tree_.topology().accelerator(type_).id);
}

TopologyLevel GangShape::level_here(TopologyLevel level) const {
  if (level == TopologyLevel::kScaleUp && !scale_up_spans_nodes_) return TopologyLevel::kNode;
  return tree_.level_here(level);
}

GangRequest GangShape::gang(std::uint32_t devices) const {
  const TopologySpec& wish = role_.topology;
  GangRequest gang;
  gang.type = type_;
  gang.devices = devices;
  gang.node_devices = unit(devices);
  if (role_.share) {
    gang.share = static_cast<std::uint16_t>(
        std::clamp<std::uint32_t>(rounded_up(*role_.share * kWholeDevice), 1, kWholeDevice));
  }
  gang.host = needs_of(role_.host);
  if (wish.required) gang.required = level_here(*wish.required);
  gang.preferred = wish.preferred ? level_here(*wish.preferred) : gang.required;
  if (scale_up_spans_nodes_) gang.segment = wish.segment.value_or(0);
  if (wish.exclusive) gang.exclusive = level_here(*wish.exclusive);
  gang.rails_aligned = wish.rails_aligned;
  gang.sites = sites_;
  if (!wish.slice.empty()) {
    gang.slice = {1, 1, 1};
    std::copy(wish.slice.begin(), wish.slice.end(), gang.slice.begin());
  } else if (const NodeGroup* group = torus();
             group != nullptr && devices > group->devices && gang.segment == 0) {
    const std::vector<Sides> slices = usual_slices(*group, devices);
    if (!slices.empty()) gang.slice = slices.front();
  }
  return gang;
}

}  // namespace orrery
