#include "agent/fleet_link.hpp"

#include <algorithm>
#include <utility>

#include "agent/launch_plan.hpp"
#include "base/assert.hpp"
#include "control/state/state.hpp"

namespace orrery {
namespace {

constexpr std::size_t kFaultsRemembered = 32;
constexpr std::uint32_t kAnyEpoch = ~std::uint32_t{0};

/// Gives ten chances to renew a lease before it runs out.
Duration renewal_interval(const Lease& lease) {
  return Duration::nanoseconds(lease.length.count_ns() / 10);
}

bool loses_devices(const NodeRanks& from, const NodeRanks& to) {
  const auto kept = [&](const RankShare& share) {
    std::uint64_t left = share.devices;
    for (const RankShare& other : to.shares) {
      if (other.gang == share.gang) left &= ~other.devices;
    }
    return left == 0;
  };
  return !std::all_of(from.shares.begin(), from.shares.end(), kept);
}

}  // namespace

FleetLink::FleetLink(const LinkSetup& setup, std::span<const KnownAttempt> known, Instant now)
    : setup_(setup),
      sequence_(setup.sequence),
      watch_(setup.boots.size(), setup.heartbeats, now),
      contacts_(setup.boots.size()) {
  for (std::size_t at = 0; at < contacts_.size(); ++at) {
    contacts_[at].agent = {NodeId::at(at), setup.boots[at], 0};
  }
  for (const KnownAttempt& attempt : known) restore(attempt, now);
}

/// Assumes that nodes do what earlier terms ordered until they report; orders of a starting attempt
/// may not have reached them.
void FleetLink::restore(const KnownAttempt& known, Instant now) {
  LinkedAttempt& attempt = attempts_[known.id];
  attempt.id = known.id;
  attempt.epoch = known.epoch;
  attempt.told_up = known.phase != JobPhase::kStarting;
  attempt.told_ended = known.phase == JobPhase::kStopping;
  set_members(attempt, known.plan);
  for (LinkedMember& member : attempt.members) {
    member.launched = OrderStamp{};
    member.leased = now;
    member.sent = now - setup_.repeat;
    if (known.phase == JobPhase::kStopping) member.wanted = Wanted::kEnd;
    if (known.phase == JobPhase::kStarting) continue;
    member.seen = AttemptReport{.token = attempt.token(), .stage = RankStage::kRunning};
  }
  for (const NodeId node : known.leaving) restore_leaving(attempt, node, now);
}

/// Restores a node that an earlier epoch left wholly or in part, and that control does not know to
/// be empty.
void FleetLink::restore_leaving(LinkedAttempt& attempt, NodeId node, Instant now) {
  if (LinkedMember* member = attempt.member(node)) {
    member->sheds = true;
    return;
  }
  LinkedMember& member = add_member(attempt, {.node = node});
  member.wanted = Wanted::kEnd;
  member.launched = OrderStamp{};
  member.leased = now;
  member.sent = now - setup_.repeat;
  member.seen = AttemptReport{.token = attempt.token(), .stage = RankStage::kRunning};
}

// --- Actions ------------------------------------------------------------------------------------

void FleetLink::carry_out(const Action& action, const State& state, Instant now) {
  if (const auto* start = std::get_if<StartRanks>(&action)) {
    const Job& job = state.job(start->job);
    if (!holds_devices(job.phase) || job.attempt != start->attempt) return;
    this->start(*start, launch_plan(state, start->job), now);
  } else if (const auto* stop = std::get_if<StopRanks>(&action)) {
    this->stop(*stop, now);
  } else if (const auto* clock = std::get_if<ApplyClock>(&action)) {
    apply(*clock, now);
  } else if (const auto* repair = std::get_if<RepairNode>(&action)) {
    this->repair(*repair, now);
  } else if (const auto* greet = std::get_if<GreetNode>(&action)) {
    contact(greet->node).joins = true;
    ask(greet->node, now);
  }
}

void FleetLink::start(const StartRanks& action, const LaunchPlan& plan, Instant now) {
  const AttemptId id{action.job, action.attempt};
  end_older_attempts(id, now);
  const auto [at, added] = attempts_.try_emplace(id);
  LinkedAttempt& attempt = at->second;
  // A node reported this attempt before it was ever launched; that stray must end there first.
  const bool stray = !added && attempt.runners == 0 && action.epoch == 0;
  if (!added && !stray && action.epoch <= attempt.epoch) return;
  // Control will soon receive the end of the attempt and starts nothing of it any more.
  if (attempt.told_ended && !stray) return;
  attempt.told_ended = false;
  attempt.id = id;
  attempt.epoch = action.epoch;
  attempt.delay = action.delay;
  attempt.told_up = false;
  set_members(attempt, plan);
  drop_gone_members(attempt);
  for (LinkedMember& member : attempt.members) {
    const std::uint64_t boot = contact(member.ranks.node).agent.boot;
    const bool rebooted = member.ranks.boot != 0 && boot != 0 && member.ranks.boot != boot;
    if (rebooted) {
      lose_silently(attempt, member);
    } else {
      say(attempt, member, now);
    }
  }
}

void FleetLink::end_older_attempts(const AttemptId& id, Instant now) {
  std::vector<AttemptId> older;
  for (auto at = attempts_.lower_bound({id.job, 0}); at != attempts_.end(); ++at) {
    if (!(at->first < id)) break;
    older.push_back(at->first);
  }
  for (const AttemptId& one : older) {
    want(attempts_.at(one), Wanted::kKill, now);
    drop_if_done(one);
  }
}

LinkedMember& FleetLink::add_member(LinkedAttempt& attempt, const NodeRanks& ranks) {
  contact(ranks.node).attempts.push_back(attempt.id);
  const auto at = std::lower_bound(
      attempt.members.begin(), attempt.members.end(), ranks.node,
      [](const LinkedMember& member, NodeId key) { return member.ranks.node < key; });
  return *attempt.members.insert(at, LinkedMember{.ranks = ranks});
}

/// Gives an attempt the members of its present epoch; the other members have to end.
void FleetLink::set_members(LinkedAttempt& attempt, const LaunchPlan& plan) {
  attempt.grace = plan.grace;
  attempt.lease = plan.lease;
  attempt.runners = static_cast<std::uint32_t>(plan.nodes.size());
  attempt.up = 0;
  attempt.done = 0;
  attempt.members.reserve(attempt.members.size() + plan.nodes.size());
  for (LinkedMember& member : attempt.members) {
    member.up = false;
    member.done = false;
    const bool stays =
        std::binary_search(plan.nodes.begin(), plan.nodes.end(), member.ranks,
                           [](const NodeRanks& a, const NodeRanks& b) { return a.node < b.node; });
    if (!stays) member.wanted = std::max(member.wanted, Wanted::kEnd);
  }
  for (const NodeRanks& ranks : plan.nodes) {
    LinkedMember* member = attempt.member(ranks.node);
    if (member == nullptr) {
      add_member(attempt, ranks);
    } else if (member->wanted == Wanted::kRun && !member->gone()) {
      member->sheds = member->sheds || loses_devices(member->ranks, ranks);
      member->ranks = ranks;
    } else {
      // The node was to leave, or has left, and joins again: its earlier reports do not count.
      LinkedMember anew{.ranks = ranks, .number = member->number, .sheds = !member->told};
      if (member->counted) {
        --attempt.gone;
      } else {
        anew.launched = OrderStamp{setup_.term, sequence_ + 1};
      }
      *member = std::move(anew);
    }
  }
}

void FleetLink::drop_gone_members(LinkedAttempt& attempt) {
  std::erase_if(attempt.members, [&](LinkedMember& member) {
    if (!member.counted || member.wanted == Wanted::kRun) return false;
    tell_gone(attempt, member);
    std::erase(contact(member.ranks.node).attempts, attempt.id);
    --attempt.gone;
    return true;
  });
}

void FleetLink::stop(const StopRanks& action, Instant now) {
  const auto at = attempts_.find({action.job, action.attempt});
  if (at == attempts_.end()) return;
  at->second.grace = action.grace;
  want(at->second, Wanted::kEnd, now);
  drop_if_done(at->first);
}

void FleetLink::want(LinkedAttempt& attempt, Wanted wanted, Instant now) {
  attempt.ending = true;
  for (LinkedMember& member : attempt.members) {
    if (member.wanted >= wanted) continue;
    member.wanted = wanted;
    if (member.gone()) {
      tell_gone(attempt, member);
    } else if (member.launched) {
      say(attempt, member, now);
    } else {
      // Nothing was ever sent there, and nothing will be.
      member.seen = AttemptReport{.token = attempt.token(), .stage = RankStage::kGone};
      follow_up(attempt, member, now);
    }
  }
}

void FleetLink::apply(const ApplyClock& action, Instant now) {
  const auto at = attempts_.find({action.job, action.attempt});
  if (at == attempts_.end()) return;
  for (LinkedMember& member : at->second.members) {
    for (RankShare& share : member.ranks.shares) {
      if (share.gang != action.gang || share.clock == action.clock) continue;
      share.clock = action.clock;
      if (member.wanted == Wanted::kRun && !member.gone()) say(at->second, member, now);
    }
  }
}

void FleetLink::repair(const RepairNode& action, Instant now) {
  Contact& node = contact(action.node);
  node.mending = action.layer;
  if (node.met) send_mending(action.node, now);
}

// --- Orders -------------------------------------------------------------------------------------

OrderStamp FleetLink::order(NodeId node, OrderKind what) {
  const OrderStamp stamp{setup_.term, ++sequence_};
  effects_.emplace_back(Order{setup_.cluster, stamp, contact(node).agent, std::move(what)});
  return stamp;
}

/// Sends a node all orders of the attempt: any earlier order may be lost.
void FleetLink::say(LinkedAttempt& attempt, LinkedMember& member, Instant now) {
  Contact& node = contact(member.ranks.node);
  node.unsettled = true;
  if (!node.met) return;
  switch (member.wanted) {
    case Wanted::kRun:
      member.ordered = order(member.ranks.node, LaunchRanks{.token = attempt.token(),
                                                            .shares = member.ranks.shares,
                                                            .delay = attempt.delay,
                                                            .grace = attempt.grace,
                                                            .lease = attempt.lease,
                                                            .heard = node.clock});
      member.leased = now;
      node.renew_at = std::min(node.renew_at, now + renewal_interval(attempt.lease));
      break;
    case Wanted::kEnd:
      member.ordered = order(member.ranks.node, EndRanks{attempt.token(), attempt.grace});
      break;
    case Wanted::kKill:
      member.ordered = order(member.ranks.node, KillRanks{{attempt.id, kAnyEpoch}});
      break;
  }
  member.sent = now;
  if (!member.launched) member.launched = member.ordered;
}

void FleetLink::repeat(NodeId id, Instant now) {
  Contact& node = contact(id);
  node.unsettled = false;
  for (const AttemptId& attempt_id : node.attempts) {
    LinkedAttempt& attempt = attempts_.at(attempt_id);
    LinkedMember& member = *attempt.member(id);
    if (member.settled(attempt.epoch)) continue;
    node.unsettled = true;
    if (!member.launched || member.sent + setup_.repeat <= now) say(attempt, member, now);
  }
}

void FleetLink::renew(NodeId id, Instant now) {
  Contact& node = contact(id);
  node.renew_at = Instant::max();
  for (const AttemptId& attempt_id : node.attempts) {
    LinkedAttempt& attempt = attempts_.at(attempt_id);
    LinkedMember& member = *attempt.member(id);
    if (member.wanted != Wanted::kRun || member.gone() || !member.launched) continue;
    order(id, RenewLease{attempt_id, node.clock});
    member.leased = now;
    node.renew_at = std::min(node.renew_at, now + renewal_interval(attempt.lease));
  }
}

void FleetLink::send_mending(NodeId id, Instant now) {
  order(id, MendNode{*contact(id).mending});
  contact(id).mending_sent = now;
}

// --- Sessions -----------------------------------------------------------------------------------

void FleetLink::deliver(const Report& report, Instant now) {
  ORRERY_ASSERT(report.from.node.value() < contacts_.size(), "a report is of a node of the fleet");
  std::visit([&](const auto& what) { hear(report, what, now); }, report.what);
}

/// Whether the sender is the known agent of its node; if not, the link sends a Reconcile.
bool FleetLink::in_session(const Report& report, Instant now) {
  Contact& node = contact(report.from.node);
  if (node.met && report.from == node.agent) return true;
  if (node.question.awaiting == 0 || node.question.asked + setup_.repeat <= now)
    ask(report.from.node, now);
  return false;
}

void FleetLink::ask(NodeId node, Instant now) {
  contact(node).question.awaiting = order(node, Reconcile{}).sequence;
  contact(node).question.asked = now;
}

void FleetLink::note_alive(NodeId node, Instant now) {
  const NodeHealth before = watch_.heard(node, now);
  if (before == NodeHealth::kSuspect) tell(NodeHeard{node, NodeHealth::kReady, 0});
  if (before == NodeHealth::kLost) tell(NodeJoined{node, contact(node).agent.boot});
}

void FleetLink::acknowledge(const Report& report) {
  if (report.number != 0) order(report.from.node, Acknowledge{report.number});
}

void FleetLink::hear(const Report& report, const Heartbeat& beat, Instant now) {
  if (!in_session(report, now)) return;
  const NodeId id = report.from.node;
  Contact& node = contact(id);
  if (beat.sequence <= node.beat) return;
  node.beat = beat.sequence;
  node.clock = std::max(node.clock, beat.at);
  node.signals = beat.signals;
  note_alive(id, now);
  if (node.joins && node.question.asked + setup_.repeat <= now) ask(id, now);
  if (node.unsettled) repeat(id, now);
  if (now >= node.renew_at) renew(id, now);
  if (node.mending && node.mending_sent + setup_.repeat_mending <= now) send_mending(id, now);
}

void FleetLink::hear(const Report& report, const Hello& hello, Instant now) {
  const NodeId id = report.from.node;
  Contact& node = contact(id);
  // Only the answer to the last question counts, and once: a duplicate may come from an agent that
  // has died since.
  if (node.question.awaiting == 0 ||
      hello.answers != OrderStamp{setup_.term, node.question.awaiting})
    return;
  node.question.awaiting = 0;
  const bool fresh = !node.met || report.from != node.agent;
  const bool joins = std::exchange(node.joins, false) || fresh;
  const bool rebooted = node.agent.boot != 0 && node.agent.boot != report.from.boot;
  node.agent = report.from;
  node.met = true;
  if (fresh) {
    begin_session(id, now);
    node.clock = hello.at;
  }
  // No order up to the bar can take effect any more: it is older than the question, or went to an
  // agent that no longer exists.
  const OrderStamp bar{setup_.term, fresh ? sequence_ : hello.answers.sequence};
  for (const NumberedReport& listed : hello.attempts) {
    NumberedReport state = listed;
    if (state.report.stage == RankStage::kGone) {
      state.report.applied = std::max(state.report.applied, bar);
    }
    take_in(state, id, now);
  }
  if (rebooted) {
    all_gone_from(id);
  } else {
    find_missing(hello, id, bar, now);
  }
  if (joins) {
    tell(NodeJoined{id, report.from.boot});
    (void)watch_.heard(id, now);
  } else {
    note_alive(id, now);
  }
  repeat(id, now);
}

void FleetLink::begin_session(NodeId id, Instant now) {
  Contact& node = contact(id);
  node.beat = 0;
  node.faults_told.clear();
  node.renew_at = now;
  for (const AttemptId& attempt_id : node.attempts) {
    LinkedMember& member = *attempts_.at(attempt_id).member(id);
    member.number = 0;
    member.sent = now - setup_.repeat;
  }
}

void FleetLink::hear(const Report& report, const Refused& refused, Instant now) {
  if (refused.why == RefusalReason::kOlderTerm) {
    superseded_by_ = std::max(superseded_by_, refused.term);
  } else {
    (void)in_session(report, now);
  }
}

void FleetLink::hear(const Report& report, const HealthFault& fault, Instant now) {
  if (!in_session(report, now)) return;
  std::vector<std::uint64_t>& told = contact(report.from.node).faults_told;
  if (std::find(told.begin(), told.end(), report.number) == told.end()) {
    if (told.size() == kFaultsRemembered) told.erase(told.begin());
    told.push_back(report.number);
    tell(NodeFault{report.from.node, fault.layer, fault.evidence, fault.repair, fault.stops_jobs,
                   fault.claimed_by.job, fault.claimed_by.attempt});
  }
  acknowledge(report);
}

void FleetLink::hear(const Report& report, const Mended& /*mended*/, Instant now) {
  if (!in_session(report, now)) return;
  std::optional<FaultLayer>& mending = contact(report.from.node).mending;
  if (mending) tell(NodeRepaired{report.from.node});
  mending.reset();
  acknowledge(report);
}

void FleetLink::hear(const Report& report, const AttemptReport& state, Instant now) {
  if (in_session(report, now)) take_in({report.number, state}, report.from.node, now);
}

// --- Time ---------------------------------------------------------------------------------------

void FleetLink::advance(Instant now) {
  std::vector<HeartbeatWatch::Change> changes;
  watch_.advance(now, changes);
  for (const HeartbeatWatch::Change& change : changes) {
    tell(NodeHeard{change.node, change.health, change.missed});
    if (change.health == NodeHealth::kLost) check_leases(change.node, now);
  }
  while (!lease_checks_.empty() && lease_checks_.top().first <= now) {
    const NodeId node = lease_checks_.top().second;
    lease_checks_.pop();
    check_leases(node, now);
  }
}

/// Counts ranks with a binding lease as gone after its full length: a lost node's keepers have
/// killed them before.
void FleetLink::check_leases(NodeId node, Instant now) {
  if (watch_.health(node) != NodeHealth::kLost) return;
  const std::vector<AttemptId> here = contact(node).attempts;
  for (const AttemptId& id : here) {
    LinkedAttempt& attempt = attempts_.at(id);
    LinkedMember& member = *attempt.member(node);
    if (attempt.lease.kind != Lease::Kind::kBinding || member.gone() || !member.launched) continue;
    const Instant over = member.leased + attempt.lease.length;
    if (over > now) {
      lease_checks_.emplace(over, node);
      continue;
    }
    vanish(attempt, member, "its lease has run out", now);
    drop_if_done(id);
  }
}

Instant FleetLink::next_due() const {
  const Instant lease = lease_checks_.empty() ? Instant::max() : lease_checks_.top().first;
  return std::min(watch_.next_due(), lease);
}

std::vector<ExecutorEffect> FleetLink::take() { return std::exchange(effects_, {}); }

}  // namespace orrery
