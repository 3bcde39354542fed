#include "executor/holds/hold_use.hpp"

#include <algorithm>
#include <span>

#include "executor/managers/lent_service.hpp"

namespace orrery {
namespace {

/// Whether jobs may start on a node of the hold, now or once its agent has joined.
bool takes_jobs(const Hold& hold, NodeId node, const HoldView& view) {
  const NodeHealth health = view.state.node(node).health;
  if (health == NodeHealth::kJoining) return view.now - hold.since < view.timing.join;
  return health == NodeHealth::kReady || health == NodeHealth::kSuspect;
}

}  // namespace

HoldUse& HoldUse::operator+=(const HoldUse& other) {
  held += other.held;
  drained += other.drained;
  able += other.able;
  useful += other.useful;
  busy += other.busy;
  used = used || other.used;
  return *this;
}

bool has_ranks(const State& state, NodeId node) {
  const std::span<const Ghost> ghosts = state.ghosts();
  return !state.jobs_on(node).empty() ||
         std::any_of(ghosts.begin(), ghosts.end(),
                     [node](const Ghost& ghost) { return ghost.at.node == node; });
}

bool speaks(const State& state, const Hold& hold) {
  return std::any_of(hold.nodes.begin(), hold.nodes.end(), [&](NodeId node) {
    const NodeHealth health = state.node(node).health;
    return health == NodeHealth::kReady || health == NodeHealth::kSuspect ||
           health == NodeHealth::kDraining || health == NodeHealth::kDrained;
  });
}

bool is_mute(const State& state, const Hold& hold) {
  return std::all_of(hold.nodes.begin(), hold.nodes.end(), [&](NodeId node) {
    const NodeHealth health = state.node(node).health;
    return health == NodeHealth::kJoining || health == NodeHealth::kLost;
  });
}

// The first agent may join before a list shows all nodes.
HoldUse use_of(const Hold& hold, const HoldView& view) {
  const auto known = static_cast<std::uint32_t>(hold.nodes.size());
  HoldUse use{.held = std::max(hold.asked, known)};
  use.able = use.useful = use.held - known;
  const bool lasts = !hold.ends || *hold.ends - view.timing.margin >= view.now + view.longest;
  for (const NodeId node : hold.nodes) {
    const bool busy = has_ranks(view.state, node);
    const bool drained = is_drained(view.state, node, view.now);
    use.used = use.used || busy;
    if (drained) ++use.drained;
    if (drained || !takes_jobs(hold, node, view)) continue;
    ++use.able;
    if (busy || lasts) ++use.useful;
    if (busy) ++use.busy;
  }
  return use;
}

}  // namespace orrery
