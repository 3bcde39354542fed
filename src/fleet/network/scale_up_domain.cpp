#include "fleet/network/scale_up_domain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace orrery {
namespace {

TorusShape torus_shape(const std::vector<int>& sides) {
  TorusShape shape;
  for (std::size_t i = 0; i < sides.size() && i < shape.dims.size(); ++i) shape.dims[i] = sides[i];
  return shape;
}

Result<std::optional<ScaleUpShape>> spec_torus(const TorusSpec& spec) {
  TorusShape shape = torus_shape(spec.shape);
  if (spec.twisted) shape.twist = TorusShape::Twist::kLongByHalf;
  if (!spec.cube.empty()) shape.cube = torus_shape(spec.cube).dims;
  if (Status built = check(shape); !built) return input_error(spec.where, built.error().message);
  return std::optional<ScaleUpShape>(shape);
}

// Returns 4 and 4 for "torus2d-4x4"; empty if there is no size.
std::vector<int> sides_in_name(std::string_view topology) {
  std::vector<int> sides;
  const std::size_t dash = topology.find('-');
  if (dash == topology.npos) return sides;
  int side = 0;
  for (const char c : topology.substr(dash + 1)) {
    if (c >= '0' && c <= '9' && side < 10'000) {
      side = side * 10 + (c - '0');
    } else if (c == 'x') {
      sides.push_back(side);
      side = 0;
    } else {
      return {};
    }
  }
  sides.push_back(side);
  return sides;
}

std::optional<ScaleUpShape> catalog_shape(const ScaleUpLink& link, const Accelerator& accelerator,
                                          int devices) {
  const std::string& topology = accelerator.scale_up.topology;
  const BytesPerSecond all =
      accelerator.scale_up.bandwidth_per_direction.value_or(link.accelerator_bandwidth);
  const int links = static_cast<int>(std::lround(all / link.link_bandwidth));
  if (topology == "nvswitch" || topology == "switched") {
    return SwitchedShape{devices, links, link.switch_ports.value_or(devices)};
  }
  if (topology == "full-mesh" || topology == "mesh" || topology == "hybrid-cube-mesh") {
    return FullMeshShape{devices, links};
  }
  if (topology == "ring") return RingShape{devices, links};
  if (topology == "bridge" || topology == "nvl2") return BridgeShape{devices, links};
  if (topology.starts_with("torus")) {
    const TorusShape shape = torus_shape(sides_in_name(topology));
    if (shape.dims[0] * shape.dims[1] * shape.dims[2] == devices) return shape;
  }
  return std::nullopt;
}

}  // namespace

Result<std::optional<ScaleUpShape>> scale_up_shape(const Catalog& catalog,
                                                   const Accelerator& accelerator, int devices,
                                                   const std::optional<TorusSpec>& torus) {
  if (torus) return spec_torus(*torus);
  if (devices <= 1 || !accelerator.scale_up.technology) return std::optional<ScaleUpShape>();
  const ScaleUpLink* link = catalog.find<ScaleUpLink>(*accelerator.scale_up.technology);
  if (link == nullptr) return std::optional<ScaleUpShape>();
  std::optional<ScaleUpShape> shape = catalog_shape(*link, accelerator, devices);
  if (shape && !check(*shape)) shape.reset();
  return shape;
}

std::optional<BytesPerSecond> scale_up_bisection(const Catalog& catalog,
                                                 const Accelerator& accelerator,
                                                 const ScaleUpShape& shape) {
  if (!accelerator.scale_up.technology) return std::nullopt;
  const ScaleUpLink* link = catalog.find<ScaleUpLink>(*accelerator.scale_up.technology);
  if (link == nullptr) return std::nullopt;
  const BytesPerSecond even = link->link_bandwidth * bisection_links(shape);
  const auto* torus = std::get_if<TorusShape>(&shape);
  constexpr int kThird = TorusShape::kDimensions - 1;
  if (torus == nullptr || !link->inter_node_link_bandwidth || torus->dims[kThird] < 2) return even;
  return std::min(even, *link->inter_node_link_bandwidth * cut_links(*torus, kThird));
}

}  // namespace orrery
