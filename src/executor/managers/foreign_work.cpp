#include "executor/managers/foreign_work.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace orrery {
namespace {

/// The work of others on a node.
struct OnNode {
  std::vector<std::string> who;  ///< "USER (ID)"
  Instant until;
};

/// The end of work is told in whole seconds of a time that passes.
bool about_the_same(Instant a, Instant b) {
  constexpr Duration kRounding = Duration::seconds(5);
  if (a == Instant::max() || b == Instant::max()) return a == b;
  return a - b < kRounding && b - a < kRounding;
}

std::map<std::string, OnNode, std::less<>> by_node(const ForeignList& list) {
  std::map<std::string, OnNode, std::less<>> nodes;
  for (const ForeignWork& work : list.work) {
    // Work whose time is over may go on.
    const bool ends = work.left && *work.left > Duration();
    const Instant until = ends ? list.asked + *work.left : Instant::max();
    for (const std::string& name : work.nodes) {
      OnNode& here = nodes[name];
      here.who.push_back(fmt::format("{} ({})", work.user, work.id));
      here.until = std::max(here.until, until);
    }
  }
  return nodes;
}

std::string text_of(const HoldPool& pool, const OnNode& here) {
  constexpr std::size_t kNamed = 3;
  const std::size_t named = std::min(kNamed, here.who.size());
  const std::string more =
      here.who.size() > named ? fmt::format(" and {} more", here.who.size() - named) : "";
  return fmt::format(
      "{} of {}{}",
      fmt::join(here.who.begin(), here.who.begin() + static_cast<std::ptrdiff_t>(named), ", "),
      pool.manager, more);
}

}  // namespace

std::vector<InputKind> follow_foreign(const HoldPool& pool, const ForeignList& list,
                                      const State& state) {
  const auto nodes = by_node(list);
  std::vector<InputKind> inputs;
  for (const NodeId node : pool.nodes) {
    const NodeRecord::Foreign& known = state.node(node).foreign;
    const auto here = nodes.find(state.setup().topology->node_name(node));
    if (here == nodes.end()) {
      if (known.claim != ForeignClaim::kNone) inputs.emplace_back(ForeignUse{.node = node});
      continue;
    }
    ForeignUse use{
        .node = node,
        .claim = pool.use == PoolUse::kShared ? ForeignClaim::kTaken : ForeignClaim::kNoted,
        .until = here->second.until,
        .who = text_of(pool, here->second)};
    if (about_the_same(known.until, use.until)) use.until = known.until;
    const bool same = known.claim == use.claim && known.until == use.until && known.who == use.who;
    if (same) continue;
    if (pool.use == PoolUse::kOwned && known.claim == ForeignClaim::kNone) {
      inputs.emplace_back(NodeFault{.node = node,
                                    .layer = FaultLayer::kHost,
                                    .evidence = "foreign work: " + use.who,
                                    .stops_jobs = false});
    }
    inputs.emplace_back(std::move(use));
  }
  return inputs;
}

std::vector<InputKind> follow_silence(const HoldPool& pool, const State& state) {
  std::vector<InputKind> inputs;
  if (pool.use != PoolUse::kShared) return inputs;
  for (const NodeId node : pool.nodes) {
    if (state.node(node).foreign.claim != ForeignClaim::kNone) continue;
    inputs.emplace_back(ForeignUse{.node = node, .claim = ForeignClaim::kTaken, .who = {}});
  }
  return inputs;
}

ForeignNodes foreign_nodes(const HoldPool& pool, const State& state) {
  ForeignNodes found;
  for (const NodeId node : pool.nodes) {
    const NodeRecord::Foreign& foreign = state.node(node).foreign;
    if (foreign.claim == ForeignClaim::kNone || foreign.who.empty()) continue;
    ++found.count;
    found.first_free = std::min(found.first_free, foreign.until);
  }
  return found;
}

}  // namespace orrery
