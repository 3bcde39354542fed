// executor/stragglers.hpp - finds ranks of a job that compute longer in a step than the others.
//
// A function of the paces that ranks report through the agents of all their nodes: a node knows
// only its own ranks, so the controller compares.
#pragma once

#include <cstdint>
#include <vector>

#include "fleet/ids.hpp"
#include "node/keeper/keeper_wire.hpp"

namespace orrery {

/// The paces of the ranks of one node.
struct NodePaces {
  NodeId node;
  std::vector<RankPace> paces;
};

struct Straggler {
  NodeId node;
  RankPace pace;
  double usual = 0;  ///< seconds: the median of all ranks
};

/// Returns ranks slower than 1.2 times the median of all ranks' paces that are also more than three
/// median absolute deviations above it, so that jobs with naturally uneven ranks are left alone;
/// slowest first. At least three ranks are needed: of two, either could be the slow one. O(n log
/// n).
[[nodiscard]] std::vector<Straggler> find_stragglers(const std::vector<NodePaces>& nodes);

}  // namespace orrery
