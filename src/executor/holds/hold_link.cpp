#include "executor/holds/hold_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "executor/managers/foreign_work.hpp"
#include "executor/managers/hold_records.hpp"
#include "executor/managers/lent_service.hpp"

namespace orrery {
namespace {

bool is_live(const HoldSeen& seen) {
  return seen.phase == HoldPhase::kWaiting || seen.phase == HoldPhase::kRunning;
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
    const bool later = table_.managers()[*manager].lists.count < 2;
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
  hold->orders.seen = now;
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
    // The list shows what was asked for before the fleet changed.
    const HoldSetup& setup = table_.setup();
    const bool before = answer.key.epoch == setup.term && answer.key.id <= setup.asked;
    if (!answer.id.empty() && !before) table_.order_release(manager, answer.key, answer.id);
    return;
  }
  if (answer.refused) {
    table_.refuse(manager, {*answer.refused, answer.text, answer.key.job}, now);
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
  ++hold->orders.unseen;
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
  known.lists.newest = heard.now;
  ++known.lists.count;
  known.avoid = drained_nodes(table_.pool(manager), heard.state, heard.now).avoid;
  known.out_of_service = out_of_service(table_.pool(manager), listing.nodes, heard.state);
  table_.tell(follow_service(table_.pool(manager), listing.nodes, heard.state));
  if (listing.foreign) {
    known.next_foreign = heard.now + table_.setup().timing.foreign;
    table_.tell(
        follow_foreign(table_.pool(manager), {*listing.foreign, listing.asked}, heard.state));
  }
  for (const HoldSeen& seen : listing.holds) {
    if (table_.find(manager, seen.key) == nullptr) adopt(manager, seen, heard);
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
  table_.tell(
      follow_bills(table_.pool(manager), {listing, table_.holds(), heard.now}, heard.state));
  sweep(manager, heard.state);
}

/// Takes over a hold of an earlier controller. One of a later term is a sign that the log was
/// restored from a copy: it is left alone.
void HoldLink::adopt(std::uint32_t manager, const HoldSeen& seen, const Heard& heard) {
  if (!is_live(seen)) return;
  const std::uint64_t term = table_.setup().term;
  if (seen.key.epoch > term) {
    table_.managers()[manager].newer = text_of(seen.key);
    return;
  }
  // It was given up in this term: its answer came late.
  const bool given_up = seen.key.epoch == term && seen.key.id > table_.setup().asked;
  const std::optional<std::uint64_t> outdated = table_.pool(manager).outdated;
  const bool other = outdated && (seen.key.epoch < term || seen.key.id <= *outdated);
  if (given_up || (other && seen.phase == HoldPhase::kWaiting)) {
    return table_.order_release(manager, seen.key, seen.id);
  }
  const std::uint32_t waiting = seen.asked > 0 ? seen.asked : table_.pool(manager).pilot_nodes;
  const std::uint32_t nodes =
      seen.nodes.empty() ? waiting : static_cast<std::uint32_t>(seen.nodes.size());
  // What it avoids is not known: a node that is drained now.
  Hold& hold = table_.add({.key = seen.key,
                           .manager = manager,
                           .id = seen.id,
                           .asked = nodes,
                           .orders = {.avoid = table_.managers()[manager].avoid}},
                          HoldState::kWaiting, heard.now);
  if (seen.nodes.empty()) keeper_.wish_for_job(hold, heard.state);
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
  hold.orders.unseen = 0;
  hold.reason = seen.reason;
  hold.start = {seen.starts_in, seen.started};
  if (seen.phase == HoldPhase::kRunning) hold.orders.seen = heard.listing.asked;
  if (seen.left) hold.ends = heard.listing.asked + *seen.left;
  switch (seen.phase) {
    case HoldPhase::kWaiting:
      if (hold.state == HoldState::kAsked) hold.state = HoldState::kWaiting;
      // A list that was asked for before an agent joined may be older than that.
      if (hold.state == HoldState::kGranted && heard.listing.asked > hold.since) {
        table_.take_back(hold, Leftover::kPossible,
                         "its resource manager has put the hold back into its queue");
        table_.set_state(hold, HoldState::kWaiting, heard.now);
      }
      if (seen.stuck && hold.state == HoldState::kWaiting) {
        return give_back(hold, seen.reason, heard.now);
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
  if (unwanted && brief) table_.refuse(hold.manager, {HoldRefusal::kBusy, why, hold.key.job}, now);
  table_.forget(hold);
}

/// Ranks on the nodes of a hold that others end have their time to leave in order.
void HoldLink::release_again(Hold& hold, const State& state, Instant now) {
  const HoldTiming& timing = table_.setup().timing;
  if (now - hold.orders.newest < timing.repeat) return;
  const bool used = std::any_of(hold.nodes.begin(), hold.nodes.end(),
                                [&](NodeId node) { return has_ranks(state, node); });
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
  if (!hold.nodes.empty()) hold.asked = static_cast<std::uint32_t>(hold.nodes.size());
  if (nodes.size() < seen.nodes.size()) leave_out_others(hold.manager, seen, heard);
  if (!nodes.empty() || seen.nodes.empty()) return;
  give_back(hold, "none of its nodes is one that the manager lends", heard.now);
}

/// A manager that lent a node outside `nodes` would choose it again: all such nodes are excluded
/// from now on, unless its list is long.
void HoldLink::leave_out_others(std::uint32_t manager, const HoldSeen& seen, const Heard& heard) {
  constexpr std::size_t kListMost = 4'096;
  std::set<std::string> own;
  for (const NodeId node : table_.pool(manager).lent.nodes) {
    own.insert(heard.state.setup().topology->node_name(node));
  }
  std::set<std::string>& outside = table_.managers()[manager].left_out.outside;
  for (const std::string& name : seen.nodes) {
    if (!own.contains(name)) outside.insert(name);
  }
  if (heard.listing.nodes.size() > kListMost) return;
  for (const ManagerNode& node : heard.listing.nodes) {
    if (!own.contains(node.name)) outside.insert(node.name);
  }
}

/// Gives back a hold that is of no use, which counts as a refusal.
void HoldLink::give_back(Hold& hold, const std::string& why, Instant now) {
  table_.refuse(hold.manager, {HoldRefusal::kBusy, why, hold.key.job}, now);
  keeper_.release(hold, why, now);
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
    return request_again(hold, heard);
  }
  if (hold.state == HoldState::kGranted && speaks(heard.state, hold)) return;
  table_.give_up(hold, heard.state);
  table_.forget(hold);
}

/// Requests a hold again that its manager does not list. A hold that the manager has accepted three
/// times, or once after a refusal, and has never listed counts as refused: it may exist under a
/// name that does not identify it as this cluster's.
void HoldLink::request_again(Hold& hold, const Heard& heard) {
  constexpr std::uint32_t kUnseenMost = 3;
  const ManagerState::Refused& refused = table_.managers()[hold.manager].refused;
  const bool was_refused =
      hold.key.job ? refused.jobs.contains(*hold.key.job) : refused.refusals > 0;
  if (hold.orders.unseen > 0) table_.order_release(hold, heard.now);
  if (hold.orders.unseen >= (was_refused ? 1 : kUnseenMost)) {
    // Several pilots that are missing in one list are one refusal.
    if (hold.key.job || heard.now >= refused.retry_at) {
      const std::string why = fmt::format(
          "{} accepted job {} but does not list it as {} of this cluster: does a job_submit plugin "
          "change names or comments, or does the job belong to another user?",
          table_.pool(hold.manager).manager, hold.id, text_of(hold.key));
      table_.refuse(hold.manager, {HoldRefusal::kBusy, why, hold.key.job}, heard.now);
    }
    return table_.forget(hold);
  }
  hold.id.clear();
  hold.state = HoldState::kAsked;
  keeper_.wish_for_job(hold, heard.state);
  table_.order_hold(hold, heard.now);
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
    if (now - managers[manager].lists.newest > timing.blind) {
      table_.tell(follow_silence(table_.pool(manager), core.state()));
    }
    if (managers[manager].lists.count > 0) keeper_.look(manager, core, now);
  }
}

}  // namespace orrery
