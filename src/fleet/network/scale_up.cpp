// fleet/network/scale_up.cpp - closed-form results for scale-up domains, and the torus neighbour
// rule.
#include "fleet/network/scale_up.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/assert.hpp"

namespace orrery {
namespace {

using Coordinates = TorusShape::Coordinates;
using Wrap = TorusShape::Wrap;
using Twist = TorusShape::Twist;
using Direction = TorusStep::Direction;

constexpr int kAcceleratorsMax = 1 << 20;
constexpr int kLinksMax = 1 << 10;
constexpr int kBridgeMax = 4;
constexpr int kDimensions = TorusShape::kDimensions;

std::size_t at(int dimension) { return static_cast<std::size_t>(dimension); }

int volume(const Coordinates& dims) { return dims[0] * dims[1] * dims[2]; }

std::string text(const Coordinates& dims) {
  return fmt::format("{}x{}x{}", dims[0], dims[1], dims[2]);
}

int length(const TorusShape& shape, int dimension) { return shape.dims[at(dimension)]; }

bool closed(const TorusShape& shape, int dimension) {
  return shape.wrap[at(dimension)] == Wrap::kClosed;
}

/// Whether a dimension is longer than the shortest, which means twice as long.
bool is_long(const TorusShape& shape, int dimension) {
  return length(shape, dimension) > *std::ranges::min_element(shape.dims);
}

Status check_counts(int accelerators, int links) {
  if (accelerators < 1 || accelerators > kAcceleratorsMax) {
    return input_error({}, fmt::format("a scale-up domain has 1 to {} accelerators, not {}",
                                       kAcceleratorsMax, accelerators));
  }
  if (links < 1 || links > kLinksMax) {
    return input_error(
        {}, fmt::format("an accelerator has 1 to {} scale-up links, not {}", kLinksMax, links));
  }
  return {};
}

Status check_twist(const TorusShape& shape) {
  Coordinates sorted = shape.dims;
  std::ranges::sort(sorted);
  const auto [low, middle, high] = sorted;
  const bool suits = low >= 2 && high == 2 * low && (middle == low || middle == high);
  if (!suits || std::ranges::count(shape.wrap, Wrap::kOpen) > 0) {
    return input_error({},
                       fmt::format("a twisted torus is n x n x 2n or n x 2n x 2n with n of 2 or "
                                   "more and closed in every dimension; {} is not",
                                   text(shape.dims)));
  }
  return {};
}

Status check_cube(const TorusShape& shape, const Coordinates& cube) {
  for (std::size_t d = 0; d < cube.size(); ++d) {
    if (cube[d] < 1 || shape.dims[d] % cube[d] != 0) {
      return input_error({}, fmt::format("a torus of {} does not consist of cubes of {}",
                                         text(shape.dims), text(cube)));
    }
  }
  return {};
}

Status check_shape(const SwitchedShape& s) {
  if (Status status = check_counts(s.accelerators, s.links_per_accelerator); !status) return status;
  if (s.switch_ports >= s.accelerators) return {};
  return input_error({}, fmt::format("a scale-up switch of {} ports does not reach {} accelerators",
                                     s.switch_ports, s.accelerators));
}

Status check_shape(const FullMeshShape& s) {
  return check_counts(s.accelerators, s.links_per_accelerator);
}

Status check_shape(const RingShape& s) {
  if (Status status = check_counts(s.accelerators, s.links_per_accelerator); !status) return status;
  if (s.links_per_accelerator % 2 == 0) return {};
  return input_error({}, fmt::format("a ring needs an even number of links per accelerator, not {}",
                                     s.links_per_accelerator));
}

Status check_shape(const BridgeShape& s) {
  if (Status status = check_counts(s.accelerators, s.links_per_accelerator); !status) return status;
  if (s.accelerators <= kBridgeMax) return {};
  return input_error({}, fmt::format("a bridge joins at most {} accelerators, not {}", kBridgeMax,
                                     s.accelerators));
}

Status check_shape(const TorusShape& s) {
  std::int64_t accelerators = 1;
  for (const int side : s.dims) {
    const bool sensible = side >= 1 && side <= kAcceleratorsMax;
    accelerators = sensible ? accelerators * side : kAcceleratorsMax + 1;
    if (accelerators > kAcceleratorsMax) {
      return input_error({}, fmt::format("a torus has 1 to {} accelerators; {} has not",
                                         kAcceleratorsMax, text(s.dims)));
    }
  }
  if (s.cube) {
    if (Status status = check_cube(s, *s.cube); !status) return status;
  }
  return s.twist == Twist::kNone ? Status{} : check_twist(s);
}

FullMeshShape mesh_of(const BridgeShape& s) { return {s.accelerators, s.links_per_accelerator}; }

int count(const TorusShape& s) { return volume(s.dims); }
template <class Shape>
int count(const Shape& s) {
  return s.accelerators;
}

double links(const SwitchedShape& s) {
  return static_cast<double>(s.accelerators) * s.links_per_accelerator;
}
double links(const FullMeshShape& s) {
  return s.accelerators < 2 ? 0 : s.accelerators / 2.0 * s.links_per_accelerator;
}
double links(const RingShape& s) {
  return s.accelerators < 2 ? 0 : s.accelerators / 2.0 * s.links_per_accelerator;
}
double links(const BridgeShape& s) { return links(mesh_of(s)); }
double links(const TorusShape& s) {
  double total = 0;
  for (int d = 0; d < kDimensions; ++d) total += links_along(s, d);
  return total;
}

double narrowest(const SwitchedShape& s) { return s.accelerators < 2 ? 0 : links(s) / 2; }
double narrowest(const FullMeshShape& s) {
  const double half = s.accelerators / 2;
  return half * (s.accelerators - half) * links_per_pair(s);
}
double narrowest(const RingShape& s) { return s.accelerators < 2 ? 0 : s.links_per_accelerator; }
double narrowest(const BridgeShape& s) { return narrowest(mesh_of(s)); }
double narrowest(const TorusShape& s) {
  std::optional<int> least;
  for (int d = 0; d < kDimensions; ++d) {
    if (length(s, d) < 2) continue;
    const int cut = cut_links(s, d);
    least = least ? std::min(*least, cut) : cut;
  }
  return least.value_or(0);
}

/// Returns the most steps from one accelerator to any other; all accelerators of a twisted torus
/// have the same.
int search_depth(const TorusShape& shape) {
  const auto index = [&shape](const Coordinates& c) {
    return at((c[0] * shape.dims[1] + c[1]) * shape.dims[2] + c[2]);
  };
  std::vector<int> depth(at(volume(shape.dims)), -1);
  std::vector<Coordinates> queue{{0, 0, 0}};
  depth[0] = 0;
  int deepest = 0;
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const Coordinates from = queue[head];
    deepest = depth[index(from)];
    for (int d = 0; d < kDimensions; ++d) {
      for (const Direction direction : {Direction::kUp, Direction::kDown}) {
        const std::optional<Coordinates> next = neighbour(shape, from, {d, direction});
        if (!next || depth[index(*next)] >= 0) continue;
        depth[index(*next)] = deepest + 1;
        queue.push_back(*next);
      }
    }
  }
  return deepest;
}

int farthest(const SwitchedShape& s) { return s.accelerators < 2 ? 0 : 2; }
int farthest(const FullMeshShape& s) { return s.accelerators < 2 ? 0 : 1; }
int farthest(const RingShape& s) { return s.accelerators / 2; }
int farthest(const BridgeShape& s) { return farthest(mesh_of(s)); }
int farthest(const TorusShape& s) {
  if (s.twist == Twist::kLongByHalf) return search_depth(s);
  int total = 0;
  for (int d = 0; d < kDimensions; ++d) {
    total += closed(s, d) ? length(s, d) / 2 : length(s, d) - 1;
  }
  return total;
}

}  // namespace

Status check(const ScaleUpShape& shape) {
  return std::visit([](const auto& s) { return check_shape(s); }, shape);
}

int accelerator_count(const ScaleUpShape& shape) {
  return std::visit([](const auto& s) { return count(s); }, shape);
}

double link_count(const ScaleUpShape& shape) {
  return std::visit([](const auto& s) { return links(s); }, shape);
}

double bisection_links(const ScaleUpShape& shape) {
  return std::visit([](const auto& s) { return narrowest(s); }, shape);
}

int diameter(const ScaleUpShape& shape) {
  return std::visit([](const auto& s) { return farthest(s); }, shape);
}

double links_per_pair(const FullMeshShape& shape) {
  if (shape.accelerators < 2) return 0;
  return static_cast<double>(shape.links_per_accelerator) / (shape.accelerators - 1);
}

std::optional<Coordinates> neighbour(const TorusShape& shape, Coordinates from, TorusStep step) {
  for (int d = 0; d < kDimensions; ++d) {
    ORRERY_ASSERT(from[at(d)] >= 0 && from[at(d)] < length(shape, d), "inside the torus");
  }
  const int side = length(shape, step.dimension);
  if (side < 2) return std::nullopt;
  int& coordinate = from[at(step.dimension)];
  coordinate += step.direction == Direction::kUp ? 1 : -1;
  if (coordinate >= 0 && coordinate < side) return from;
  if (!closed(shape, step.dimension)) return std::nullopt;
  coordinate = (coordinate + side) % side;
  if (shape.twist == Twist::kNone || is_long(shape, step.dimension)) return from;
  for (int d = 0; d < kDimensions; ++d) {
    const int other = length(shape, d);
    if (is_long(shape, d)) from[at(d)] = (from[at(d)] + other / 2) % other;
  }
  return from;
}

int links_along(const TorusShape& shape, int dimension) {
  const int side = length(shape, dimension);
  if (side < 2) return 0;
  const int lines = volume(shape.dims) / side;
  return lines * (closed(shape, dimension) ? side : side - 1);
}

int cut_links(const TorusShape& shape, int dimension) {
  const int side = length(shape, dimension);
  ORRERY_ASSERT(side >= 2, "a dimension of length 1 cannot be cut");
  const int lines = volume(shape.dims) / side;
  int cut = closed(shape, dimension) ? 2 * lines : lines;
  if (shape.twist == Twist::kNone || !is_long(shape, dimension)) return cut;
  for (int d = 0; d < kDimensions; ++d) {
    if (!is_long(shape, d)) cut += volume(shape.dims) / length(shape, d);
  }
  return cut;
}

}  // namespace orrery
