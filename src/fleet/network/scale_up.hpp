// fleet/network/scale_up.hpp - the geometry of one scale-up domain: switch, mesh, ring, bridge or
// torus.
//
// Pure values and functions: number of links, neighbours, distances, width of the narrowest cut.
// Links are counted, not rated: multiply a cut by a link's bandwidth per direction.
//
// Torus: accelerators have coordinates 0 <= c[d] < dims[d]. In a closed dimension of length 2 or
// more each has a link up and a link down, so a length of 2 has two parallel links between the two;
// a length of 1 has none. In an open dimension the last has no link up.
//
// Twisted torus (J. M. Camara et al., "Twisted torus topologies for enhanced interconnection
// networks", IEEE TPDS 21(12), 2010; used by TPU v4 slices): n x n x 2n or n x 2n x 2n in any
// order, n >= 2, all closed. The wrap-around link of a short dimension also moves every long one by
// half its length, n.
#pragma once

#include <array>
#include <optional>
#include <variant>

#include "base/error.hpp"
#include "base/quantity.hpp"

namespace orrery {

/// Every accelerator spreads its links evenly over switches, each of which reaches all of them.
struct SwitchedShape {
  int accelerators = 0;
  int links_per_accelerator = 0;
  int switch_ports = 0;
};

/// Every accelerator divides its links evenly among all others.
struct FullMeshShape {
  int accelerators = 0;
  int links_per_accelerator = 0;
};

/// Every accelerator has half its links to the next and half to the one before.
struct RingShape {
  int accelerators = 0;
  int links_per_accelerator = 0;
};

/// Two to four cards joined by bridge connectors: a full mesh of them.
struct BridgeShape {
  int accelerators = 0;
  int links_per_accelerator = 0;
};

struct TorusShape {
  static constexpr int kDimensions = 3;
  using Coordinates = std::array<int, kDimensions>;
  enum class Wrap { kClosed, kOpen };
  enum class Twist { kNone, kLongByHalf };

  Coordinates dims{1, 1, 1};  ///< 1 for an absent dimension
  std::array<Wrap, kDimensions> wrap{Wrap::kClosed, Wrap::kClosed, Wrap::kClosed};
  Twist twist = Twist::kNone;
  /// The block wired with copper; links across its faces run through optical circuit switches.
  std::optional<Coordinates> cube = std::nullopt;
};

using ScaleUpShape = std::variant<SwitchedShape, FullMeshShape, RingShape, BridgeShape, TorusShape>;

/// Whether such a domain can be built. Errors (no position): kInput for counts below 1, a switch
/// with fewer ports than accelerators, a bridge of more than four, an odd number of links in a
/// ring, a twist or cube that does not suit the dimensions. The functions below require an OK.
[[nodiscard]] Status check(const ScaleUpShape& shape);

[[nodiscard]] int accelerator_count(const ScaleUpShape& shape);

/// Cables: to switches, or between accelerators. All links of a mesh count, even if they do not
/// divide evenly by its peers.
[[nodiscard]] double link_count(const ScaleUpShape& shape);

/// Links across the narrowest cut into halves (one larger by 1 where the number is odd; in a torus,
/// slabs across one dimension). Times the bandwidth of a link it is the bisection per direction.
/// Switched: half of all links, the switches being non-blocking. A mesh: floor(n/2) * ceil(n/2)
/// pairs. A ring: twice the links of a side. A torus: the least cut_links. A domain of one: 0.
[[nodiscard]] double bisection_links(const ScaleUpShape& shape);

/// The most links between two accelerators; 2 through a switch. O(1), for a twisted torus O(N).
[[nodiscard]] int diameter(const ScaleUpShape& shape);

/// Links between any two accelerators; a fraction if they do not divide evenly.
[[nodiscard]] double links_per_pair(const FullMeshShape& shape);

struct TorusStep {
  int dimension = 0;
  enum class Direction { kUp, kDown } direction = Direction::kUp;
};

/// Returns the accelerator one link away; none beyond an open edge and in a dimension of length 1.
[[nodiscard]] std::optional<TorusShape::Coordinates> neighbour(const TorusShape& shape,
                                                               TorusShape::Coordinates from,
                                                               TorusStep step);

/// Links of one dimension: N where it is closed, N * (L - 1) / L where open.
[[nodiscard]] int links_along(const TorusShape& shape, int dimension);

/// Links between the halves of a torus cut across one dimension of length L >= 2: 2 N / L closed,
/// N / L open. Twisted, across a long dimension, every wrap-around link of the s short dimensions
/// (length n) joins the halves as well: 2 N / L + s N / n.
[[nodiscard]] int cut_links(const TorusShape& shape, int dimension);

}  // namespace orrery
