#include "scheduler/pass/closures.hpp"

#include <algorithm>

namespace orrery {
namespace {

bool is_on(std::span<const PlacedGang> gangs, NodeId node) {
  return std::any_of(gangs.begin(), gangs.end(), [node](const PlacedGang& gang) {
    return std::any_of(gang.allocation.ranks.begin(), gang.allocation.ranks.end(),
                       [node](const NodeDevices& at) { return at.node == node; });
  });
}

/// Whether a closure that is not over yet begins before `end`.
bool is_met(const Closure& closure, const Situation& situation, Instant end) {
  if (closure.loan && end == Instant::max()) return false;
  return closure.from < end && closure.to > situation.now;
}

/// Calls visit(NodeDevices) for each node that closes before `end`.
template <class Visit>
void for_each_closed(const Situation& situation, Instant end, const Visit& visit) {
  for (const Closure& closure : situation.closures) {
    if (!is_met(closure, situation, end)) continue;
    for (const NodeDevices& at : closure.nodes) visit(at);
  }
}

}  // namespace

void hide_closed(FleetOverlay& fleet, const Situation& situation, const RunningJob& job,
                 Instant end) {
  for_each_closed(situation, end, [&](const NodeDevices& at) {
    if (!is_on(job.gangs, at.node)) fleet.hide({&at, 1});
  });
}

void hide_closed(FleetOverlay& fleet, const Situation& situation, Instant end) {
  for (const Closure& closure : situation.closures) {
    if (is_met(closure, situation, end)) fleet.hide(closure.nodes);
  }
}

bool moves_to_closed(const PlacedGang& there, const Situation& situation, const RunningJob& job,
                     Instant end) {
  bool moves = false;
  for_each_closed(situation, end, [&](const NodeDevices& at) {
    moves = moves || (is_on({&there, 1}, at.node) && !is_on(job.gangs, at.node));
  });
  return moves;
}

bool is_closed(std::span<const PlacedGang> gangs, const Situation& situation, Instant end) {
  bool closed = false;
  for_each_closed(situation, end,
                  [&](const NodeDevices& at) { closed = closed || is_on(gangs, at.node); });
  return closed;
}

}  // namespace orrery
