// executor/stragglers.hpp - which ranks of a job compute longer in a step than the others do.
//
// A function of what the ranks say of themselves, as the agents of all their nodes report it: a
// node knows its own ranks alone, so it is the controller that compares.
#pragma once

#include <cstdint>
#include <vector>

#include "fleet/ids.hpp"
#include "node/keeper_wire.hpp"

namespace orrery {

/// Ranks of one node.
struct NodePaces {
  NodeId node;
  std::vector<RankPace> paces;
};

struct Straggler {
  NodeId node;
  RankPace pace;
  double usual = 0;  ///< seconds: the median of all ranks
};

/// Those beyond 1.2 times the median of all ranks' paces and, so that a job whose ranks differ
/// anyhow is left alone, more than three median absolute deviations above it; slowest first.
/// Three ranks at least have to be there: of two nobody can say which one is slow. O(n log n).
[[nodiscard]] std::vector<Straggler> find_stragglers(const std::vector<NodePaces>& nodes);

}  // namespace orrery
