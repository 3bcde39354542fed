// scheduler/moves/moves_test.hpp - running gangs that may be moved, and moves carried out, for
// tests.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "scheduler/moves/defragment.hpp"
#include "scheduler/running_test.hpp"

namespace orrery {

/// Makes every gang of a fleet movable, with a request for as many devices as it has, at most
/// `node_devices` a node.
struct MovableFleet {
  MovableFleet(RunningFleet& of, std::uint32_t node_devices) : running(of) {
    for (std::size_t i = 0; i < of.held.size(); ++i) {
      const std::uint32_t devices = of.allocations[i].devices();
      requests.push_back(gang_of(devices, std::min(devices, node_devices)));
      requests.back().share = of.allocations[i].share;
      gangs.push_back({of.held[i], &requests.back(), of.costs[i]});
    }
  }

  /// Carries moves out one after the other: take() asserts that each target is free.
  void carry_out(std::span<const GangMove> moves) {
    for (const GangMove& move : moves) {
      Allocation& held = running.allocations[move.gang];
      EXPECT_EQ(held.devices(), move.to.devices());
      take(running.fleet, move.to, gangs[move.gang].held.host);
      give_back(running.fleet, held, gangs[move.gang].held.host);
      held = move.to;
    }
  }

  RunningFleet& running;
  std::deque<GangRequest> requests;
  std::vector<MovableGang> gangs;
};

/// Returns the sum of the moves' costs; expects that each gang moves at most once.
inline std::int64_t cost_of(std::span<const GangMove> moves, std::span<const MovableGang> gangs) {
  std::int64_t cost = 0;
  std::vector<bool> moved(gangs.size());
  for (const GangMove& move : moves) {
    EXPECT_FALSE(moved[move.gang]) << "gang " << move.gang << " moves twice";
    moved[move.gang] = true;
    cost += gangs[move.gang].cost;
  }
  return cost;
}

}  // namespace orrery
