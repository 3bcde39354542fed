#include "executor/holds/hold_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "executor/holds/lent_service.hpp"

namespace orrery {
namespace {

/// Orders of one look; more follow with the next.
constexpr std::uint32_t kAsksMost = 64;

/// Whether ranks may be on the node.
bool is_used(const State& state, NodeId node) {
  const std::span<const Ghost> ghosts = state.ghosts();
  return !state.jobs_on(node).empty() ||
         std::any_of(ghosts.begin(), ghosts.end(),
                     [node](const Ghost& ghost) { return ghost.at.node == node; });
}

/// Whether an agent of the hold has joined and is not silent. The silence of a node in repair is
/// not noticed, so that it says nothing.
bool speaks(const State& state, const Hold& hold) {
  return std::any_of(hold.nodes.begin(), hold.nodes.end(), [&](NodeId node) {
    const NodeHealth health = state.node(node).health;
    return health == NodeHealth::kReady || health == NodeHealth::kSuspect ||
           health == NodeHealth::kDraining || health == NodeHealth::kDrained;
  });
}

bool is_live(const HoldSeen& seen) {
  return seen.phase == HoldPhase::kWaiting || seen.phase == HoldPhase::kRunning;
}

std::uint32_t size_of(const Hold& hold) {
  return hold.state == HoldState::kGranted ? static_cast<std::uint32_t>(hold.nodes.size())
                                           : hold.asked;
}

Status refused(ErrorKind kind, std::string why) {
  return tl::unexpected(Error{kind, std::move(why), {}});
}

}  // namespace

// --- What agents say ----------------------------------------------------------------------------

Status HoldLink::admit(NodeId node, const AgentHold& agent, const State& state, Instant now) {
  const std::optional<std::uint32_t> manager = table_.manager_of(node);
  if (!manager) {
    return refused(ErrorKind::kInput, "no resource manager of this cluster lends the node");
  }
  const std::string& name = table_.pool(*manager).manager;
  const std::string key = text_of(agent.key);
  Hold* hold = table_.find(*manager, agent.key);
  if (hold == nullptr) {
    const bool later = table_.managers()[*manager].lists < 2;
    return refused(later ? ErrorKind::kEnvironment : ErrorKind::kInput,
                   fmt::format("{} of {} is not a hold of this cluster{}", key, name,
                               later ? " as far as is known yet" : ""));
  }
  const bool here = std::binary_search(hold->nodes.begin(), hold->nodes.end(), node);
  if (hold->state == HoldState::kReleasing) {
    // It is let in as long as its ranks may be there: they end in order.
    if (here && hold->id == agent.id) return {};
    return refused(ErrorKind::kInput, fmt::format("{} is being released", key));
  }
  if (!hold->id.empty() && hold->id != agent.id) {
    // The newer one counts if the manager has lost the other.
    const bool settled = hold->state == HoldState::kGranted && !hold->orders.missing;
    return refused(settled ? ErrorKind::kInput : ErrorKind::kEnvironment,
                   fmt::format("{} is {} of {}, not {}", key, hold->id, name, agent.id));
  }
  if (!here && table_.is_lent(node)) {
    return refused(ErrorKind::kEnvironment, "another hold lends the node");
  }
  if (!here && hold->nodes.size() >= hold->asked) {
    return refused(ErrorKind::kEnvironment,
                   fmt::format("{} has all its {} nodes", key, hold->asked));
  }
  hold->id = agent.id;
  if (!hold->ends) hold->ends = now + table_.pool(*manager).lent.time;
  table_.lend(*hold, node, state, now);
  return {};
}

void HoldLink::end(NodeId node, const std::string& why, Instant now) {
  for (Hold& hold : table_.holds()) {
    if (!std::binary_search(hold.nodes.begin(), hold.nodes.end(), node)) continue;
    return table_.expire(hold, why, now);
  }
}

// --- What managers say --------------------------------------------------------------------------

void HoldLink::deliver(const ManagerReport& report, const State& state, Instant now) {
  if (const auto* answer = std::get_if<HoldAnswer>(&report.what)) {
    hear(report.manager, *answer, now);
  } else {
    hear(report.manager, {std::get<ManagerListing>(report.what), state, now});
  }
}

void HoldLink::hear(std::uint32_t manager, const HoldAnswer& answer, Instant now) {
  Hold* hold = table_.find(manager, answer.key);
  if (hold == nullptr) {
    if (!answer.id.empty()) table_.order_release(manager, answer.key, answer.id);
    return;
  }
  if (answer.refused) {
    table_.refuse(manager, *answer.refused, answer.text, now);
    if (hold->state == HoldState::kAsked && hold->id.empty()) table_.forget(*hold);
    return;
  }
  if (hold->state == HoldState::kReleasing && hold->id.empty()) {
    hold->id = answer.id;
    return table_.order_release(*hold, now);
  }
  hold->reason = answer.text;
  if (hold->state != HoldState::kAsked || answer.id.empty()) return;
  const Instant asked_at = hold->since;
  hold->id = answer.id;
  table_.set_state(*hold, HoldState::kWaiting, now);
  hold->since = asked_at;
}

void HoldLink::hear(std::uint32_t manager, const Heard& heard) {
  const ManagerListing& listing = heard.listing;
  ManagerState& known = table_.managers()[manager];
  if (known.listing == listing.asked) {
    known.listing.reset();
    known.next_list = heard.now + table_.setup().timing.list;
  }
  if (!listing.complete) {
    if (known.trouble.empty()) known.trouble_since = heard.now;
    known.trouble = listing.trouble;
    return;
  }
  known.trouble.clear();
  ++known.lists;
  known.out_of_service = out_of_service(table_.pool(manager), listing.nodes, heard.state);
  table_.tell(follow_service(table_.pool(manager), listing.nodes, heard.state));
  for (const HoldSeen& seen : listing.holds) {
    if (table_.find(manager, seen.key) == nullptr) adopt(manager, seen, heard.now);
    if (Hold* hold = table_.find(manager, seen.key)) see(*hold, seen, heard);
  }
  const std::vector<Hold> before = table_.holds();
  for (const Hold& each : before) {
    const auto is_it = [&](const HoldSeen& seen) { return seen.key == each.key; };
    if (each.manager != manager || std::any_of(listing.holds.begin(), listing.holds.end(), is_it)) {
      continue;
    }
    if (Hold* hold = table_.find(manager, each.key)) miss(*hold, heard);
  }
  sweep(manager, heard.state);
}

/// Takes over a hold of an earlier controller. One of a later term is a sign that the log was
/// restored from a copy: it is left alone.
void HoldLink::adopt(std::uint32_t manager, const HoldSeen& seen, Instant now) {
  if (!is_live(seen)) return;
  const std::uint64_t term = table_.setup().term;
  if (seen.key.epoch > term) {
    table_.managers()[manager].newer = text_of(seen.key);
    return;
  }
  // It was given up in this term: its answer came late.
  if (seen.key.epoch == term) return table_.order_release(manager, seen.key, seen.id);
  const std::uint32_t nodes = seen.nodes.empty() ? table_.pool(manager).pilot_nodes
                                                 : static_cast<std::uint32_t>(seen.nodes.size());
  (void)table_.add({.key = seen.key, .manager = manager, .id = seen.id, .asked = nodes},
                   HoldState::kWaiting, now);
}

/// Whether a hold that is seen is the one of its key that counts; another one is released.
bool HoldLink::is_counted(Hold& hold, const HoldSeen& seen, const Heard& heard) {
  if (hold.id.empty() && is_live(seen)) hold.id = seen.id;
  if (seen.id == hold.id) return true;
  if (!is_live(seen)) return false;
  const std::vector<HoldSeen>& holds = heard.listing.holds;
  const bool lost =
      hold.nodes.empty() && std::none_of(holds.begin(), holds.end(), [&](const HoldSeen& other) {
        return other.key == hold.key && other.id == hold.id;
      });
  if (!lost) {
    table_.order_release(hold.manager, seen.key, seen.id);
    return false;
  }
  hold.id = seen.id;
  return true;
}

void HoldLink::see(Hold& hold, const HoldSeen& seen, const Heard& heard) {
  if (!is_counted(hold, seen, heard)) return;
  hold.orders.missing.reset();
  hold.reason = seen.reason;
  hold.starts_in = seen.starts_in;
  if (seen.left) hold.ends = heard.listing.asked + *seen.left;
  switch (seen.phase) {
    case HoldPhase::kWaiting:
      if (hold.state == HoldState::kAsked) hold.state = HoldState::kWaiting;
      if (hold.state == HoldState::kGranted) {
        table_.take_back(hold, Leftover::kPossible,
                         "its resource manager has put the hold back into its queue");
        table_.set_state(hold, HoldState::kWaiting, heard.now);
      }
      break;
    case HoldPhase::kRunning:
      if (hold.state != HoldState::kReleasing) return see_running(hold, seen, heard);
      break;
    case HoldPhase::kEnding:
      return table_.expire(hold, "its resource manager ends the hold", heard.now);
    case HoldPhase::kEnded:
    case HoldPhase::kEndedDirty:
      return see_ended(hold, seen, heard.now);
  }
  if (hold.state == HoldState::kReleasing) release_again(hold, heard.state, heard.now);
}

void HoldLink::see_ended(Hold& hold, const HoldSeen& seen, Instant now) {
  const bool proven = seen.phase == HoldPhase::kEnded;
  const bool unwanted = hold.state != HoldState::kReleasing;
  const bool brief = now - hold.since < table_.setup().timing.join;
  const std::string why = fmt::format("its resource manager ended the hold: {}", seen.reason);
  table_.take_back(hold, proven ? Leftover::kNone : Leftover::kPossible, why);
  if (unwanted && brief) table_.refuse(hold.manager, HoldRefusal::kBusy, why, now);
  table_.forget(hold);
}

/// Ranks on the nodes of a hold that others end have their time to leave in order.
void HoldLink::release_again(Hold& hold, const State& state, Instant now) {
  const HoldTiming& timing = table_.setup().timing;
  if (now - hold.orders.newest < timing.repeat) return;
  const bool used = std::any_of(hold.nodes.begin(), hold.nodes.end(),
                                [&](NodeId node) { return is_used(state, node); });
  if (used && now - hold.since < timing.margin) return;
  table_.order_release(hold, now);
}

void HoldLink::see_running(Hold& hold, const HoldSeen& seen, const Heard& heard) {
  const Topology& topology = *heard.state.setup().topology;
  std::vector<NodeId> nodes;
  for (const NodeId node : table_.pool(hold.manager).lent.nodes) {
    const std::string name = topology.node_name(node);
    if (std::find(seen.nodes.begin(), seen.nodes.end(), name) != seen.nodes.end()) {
      nodes.push_back(node);
    }
  }
  for (const NodeId node : std::vector<NodeId>(hold.nodes)) {
    if (std::binary_search(nodes.begin(), nodes.end(), node)) continue;
    table_.take_back(hold, node, "its resource manager took the node out of the hold");
  }
  for (const NodeId node : nodes) {
    const bool here = std::binary_search(hold.nodes.begin(), hold.nodes.end(), node);
    if (here || !table_.is_lent(node)) table_.lend(hold, node, heard.state, heard.now);
  }
  if (nodes.empty()) hold.reason = "none of its nodes is one of this cluster";
}

/// A complete list does not have the hold.
void HoldLink::miss(Hold& hold, const Heard& heard) {
  const Instant asked = heard.listing.asked;
  if (asked <= hold.orders.newest) return;  // the list may be older than the hold
  if (!hold.orders.missing) {
    hold.orders.missing = asked;
    return;
  }
  if (asked - *hold.orders.missing < table_.setup().timing.absent) return;
  if (hold.state == HoldState::kAsked || hold.state == HoldState::kWaiting) {
    hold.id.clear();
    hold.state = HoldState::kAsked;
    return table_.order_hold(hold, heard.now);
  }
  if (hold.state == HoldState::kGranted && speaks(heard.state, hold)) return;
  table_.take_back(hold, Leftover::kPossible, "its resource manager has forgotten the hold");
  table_.forget(hold);
}

/// Tells control of the manager's nodes that no hold lends.
void HoldLink::sweep(std::uint32_t manager, const State& state) {
  for (const NodeId node : table_.pool(manager).lent.nodes) {
    const NodeRecord& record = state.node(node);
    const bool away = record.health == NodeHealth::kAbsent ||
                      record.health == NodeHealth::kQuarantined ||
                      record.health == NodeHealth::kRepairing;
    if ((away && record.is_away()) || table_.is_lent(node)) continue;
    table_.leave_out(node);
  }
}

// --- What the jobs need -------------------------------------------------------------------------

Instant HoldLink::next_due() const {
  if (table_.managers().empty()) return Instant::max();
  Instant due = next_look_;
  for (const ManagerState& manager : table_.managers()) {
    due = std::min(
        due, manager.listing ? *manager.listing + table_.setup().timing.answer : manager.next_list);
  }
  return due;
}

void HoldLink::advance(const Core& core, Instant now) {
  std::vector<ManagerState>& managers = table_.managers();
  const HoldTiming& timing = table_.setup().timing;
  for (std::uint32_t manager = 0; manager < managers.size(); ++manager) {
    ManagerState& known = managers[manager];
    if (known.listing && now - *known.listing >= timing.answer) {
      if (known.trouble.empty()) known.trouble_since = now;
      known.trouble = "it does not answer";
      known.listing.reset();
      known.next_list = now;
    }
    if (!known.listing && now >= known.next_list) table_.order_list(manager, now);
  }
  if (now < next_look_) return;
  next_look_ = now + timing.look;
  for (std::uint32_t manager = 0; manager < managers.size(); ++manager) {
    if (managers[manager].lists > 0) look(manager, core, now);
  }
}

/// Counts a hold; one that is of no use is released.
HoldLink::Count HoldLink::count(Hold& hold, const State& state, Instant now) {
  Count count{.held = size_of(hold), .useful = size_of(hold)};
  if (hold.state == HoldState::kGranted) {
    count.useful = 0;
    bool used = false;
    for (const NodeId node : hold.nodes) {
      const NodeRecord& record = state.node(node);
      const bool has_ranks = is_used(state, node);
      used = used || has_ranks;
      if (record.drain) ++count.drained;
      if (!is_useful(record)) continue;
      ++count.useful;
      if (has_ranks) ++count.busy;
    }
    if (used) hold.busy = now;
    if (speaks(state, hold)) table_.managers()[hold.manager].refusals = 0;
    if (used) return count;
  }
  const std::string why = why_useless(hold, count, {state, now});
  if (why.empty()) return count;
  release(hold, why, now);
  return {};
}

/// Returns why a hold that no ranks use is given back; empty: it is kept.
std::string HoldLink::why_useless(const Hold& hold, const Count& count, const Looked& looked) {
  ManagerState& known = table_.managers()[hold.manager];
  if (hold.state != HoldState::kGranted) {
    const std::vector<std::string>& drained = known.drained;
    const bool resumed = std::any_of(
        hold.orders.avoid.begin(), hold.orders.avoid.end(), [&](const std::string& name) {
          return std::find(drained.begin(), drained.end(), name) == drained.end();
        });
    return resumed ? "a node that it avoids is in service again" : "";
  }
  if (hold.nodes.empty()) return "";
  if (count.drained == count.held) return "its nodes are drained";
  if (!speaks(looked.state, hold)) {
    if (looked.now - hold.since < table_.setup().timing.join) return "";
    constexpr const char* kWhy = "no agent of the hold has joined";
    table_.refuse(hold.manager, HoldRefusal::kBusy, kWhy, looked.now);
    return kWhy;
  }
  const bool idle = looked.now - hold.busy >= table_.pool(hold.manager).idle;
  return count.useful == 0 && idle ? "its nodes take no jobs" : "";
}

void HoldLink::look(std::uint32_t manager, const Core& core, Instant now) {
  const HoldPool& pool = table_.pool(manager);
  ManagerState& known = table_.managers()[manager];
  known.drained = drained_nodes(pool, core.state());
  Count all;
  for (Hold& hold : table_.holds()) {
    if (hold.manager != manager || hold.state == HoldState::kReleasing) continue;
    const Count one = count(hold, core.state(), now);
    all.held += one.held;
    all.useful += one.useful;
    all.busy += one.busy;
    all.drained += one.drained;
  }
  const Duration usable = pool.lent.time - table_.setup().timing.margin;
  const auto lendable = static_cast<std::uint32_t>(pool.lent.nodes.size() - known.drained.size());
  HoldNodes lent = pool.lent;
  lent.most = std::min(lent.most, lendable);
  const std::uint32_t needed = all.busy + nodes_needed(core, lent, usable);
  const std::uint32_t want = std::min(lent.most, std::max(pool.keep, needed));
  if (all.useful > want) return release_surplus(manager, all.useful - want, now);
  if (now < known.retry_at || !known.newer.empty() || !known.trouble.empty()) return;
  for (std::uint32_t asks = 0; all.useful < want && asks < kAsksMost; ++asks) {
    const std::uint32_t good = all.held - all.drained;
    if (all.held >= pool.lent.most || good >= lendable) return;
    const std::uint32_t nodes =
        std::min({pool.pilot_nodes, pool.lent.most - all.held, lendable - good});
    ask(manager, nodes, now);
    all.useful += nodes;
    all.held += nodes;
  }
}

void HoldLink::ask(std::uint32_t manager, std::uint32_t nodes, Instant now) {
  const HoldKey key{.id = ++asked_, .epoch = table_.setup().term};
  Hold& hold = table_.add({.key = key, .manager = manager, .asked = nodes}, HoldState::kAsked, now);
  table_.order_hold(hold, now);
}

/// Releases holds that were idle for long, the newest first, without falling below what is wanted.
void HoldLink::release_surplus(std::uint32_t manager, std::uint32_t surplus, Instant now) {
  std::vector<Hold>& holds = table_.holds();
  for (std::size_t at = holds.size(); at-- > 0;) {
    Hold& hold = holds[at];
    if (hold.manager != manager || hold.state == HoldState::kReleasing) continue;
    const std::uint32_t nodes = size_of(hold);
    if (nodes > surplus || now - hold.busy < table_.pool(manager).idle) continue;
    surplus -= nodes;
    release(hold, "the hold was idle", now);
  }
}

/// Precondition: no rank is on its nodes.
void HoldLink::release(Hold& hold, const std::string& why, Instant now) {
  table_.take_back(hold, Leftover::kPossible, why);
  hold.reason = why;
  table_.set_state(hold, HoldState::kReleasing, now);
  table_.order_release(hold, now);
}

}  // namespace orrery
