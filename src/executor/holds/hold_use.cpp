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

/// Whether jobs that wait can use a node of the hold, by its type; it serves its own job anyway.
bool is_fit(const Hold& hold, NodeId node, const HoldView& view) {
  return hold.key.job || is_useful(view.state.setup().topology->group(node).type, view.types);
}

/// Whether the hold lasts longer than the jobs that wait.
bool lasts(const Hold& hold, const HoldView& view) {
  return !hold.ends || *hold.ends - view.timing.margin >= view.now + view.longest;
}

}  // namespace

bool is_useful(FleetTypeId type, std::span<const FleetTypeId> types) {
  return types.empty() || std::find(types.begin(), types.end(), type) != types.end();
}

std::uint32_t held_nodes(std::span<const Hold> holds, std::uint32_t manager) {
  std::uint32_t held = 0;
  for (const Hold& hold : holds) {
    if (hold.manager != manager) continue;
    held += std::max(hold.asked, static_cast<std::uint32_t>(hold.nodes.size()));
  }
  return held;
}

HoldUse& HoldUse::operator+=(const HoldUse& other) {
  held += other.held;
  drained += other.drained;
  fit += other.fit;
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

bool may_fit(const Hold& hold, std::span<const FleetTypeId> types) {
  const std::vector<FleetTypeId>& own = hold.orders.types;
  return types.empty() || own.empty() || std::any_of(own.begin(), own.end(), [&](FleetTypeId type) {
           return is_useful(type, types);
         });
}

std::uint32_t free_nodes(const Hold& hold, const HoldView& view) {
  if (hold.state != HoldState::kGranted || hold.key.job || !lasts(hold, view)) return 0;
  return static_cast<std::uint32_t>(
      std::count_if(hold.nodes.begin(), hold.nodes.end(), [&](NodeId node) {
        return view.state.node(node).health == NodeHealth::kReady && !has_ranks(view.state, node) &&
               !is_drained(view.state, node, view.now) && is_fit(hold, node, view);
      }));
}

// The first agent may join before a list shows all nodes.
HoldUse use_of(const Hold& hold, const HoldView& view) {
  const auto known = static_cast<std::uint32_t>(hold.nodes.size());
  HoldUse use{.held = std::max(hold.asked, known)};
  use.able = use.held - known;
  use.fit = use.useful = may_fit(hold, view.types) ? use.able : 0;
  const bool long_enough = lasts(hold, view);
  for (const NodeId node : hold.nodes) {
    const bool busy = has_ranks(view.state, node);
    const bool drained = is_drained(view.state, node, view.now);
    use.used = use.used || busy;
    const bool fit = is_fit(hold, node, view);
    if (drained) ++use.drained;
    if (!drained && fit) ++use.fit;
    if (drained || !takes_jobs(hold, node, view)) continue;
    ++use.able;
    if (busy || (long_enough && fit)) ++use.useful;
    if (busy) ++use.busy;
  }
  return use;
}

}  // namespace orrery
