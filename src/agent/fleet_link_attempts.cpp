// Reports of nodes about attempts, and the inputs that control gets from them.
#include <algorithm>
#include <utility>

#include "agent/fleet_link.hpp"

namespace orrery {
namespace {

/// Whether the report is of an earlier epoch that was to leave the node: the present epoch, which
/// uses the node again, has not begun there.
bool left_before(const LinkedAttempt& attempt, const LinkedMember& member) {
  return member.wanted == Wanted::kRun && member.seen->stage >= RankStage::kEnding &&
         !member.seen->end && member.seen->token.epoch < attempt.epoch;
}

}  // namespace

void FleetLink::take_in(const NumberedReport& numbered, NodeId node, Instant now) {
  const AttemptReport& state = numbered.report;
  const AttemptId id = state.token.id;
  const bool gone = state.stage == RankStage::kGone;
  const auto at = attempts_.find(id);
  LinkedMember* member = at == attempts_.end() ? nullptr : at->second.member(node);
  if (member == nullptr) {
    if (!gone) end_stray(state, node, now);
  } else if (state.stage == RankStage::kUnknown) {
    if (!member->seen) member->seen = state;
  } else if (member->launched && state.applied >= *member->launched && !member->gone() &&
             (gone ? !member->seen || state.applied >= member->seen->applied
                   : numbered.number > member->number)) {
    member->number = numbered.number;
    const bool new_replica =
        state.replica && (!member->seen || member->seen->replica != state.replica);
    if (new_replica && !at->second.told_ended)
      tell(ReplicaSeen{id.job, id.attempt, *state.replica});
    member->seen = state;
    if (gone && left_before(at->second, *member)) {
      launch_anew(at->second, *member, now);
    } else {
      follow_up(at->second, *member, now);
      drop_if_done(id);
    }
  }
  // The acknowledgement comes after all inputs of the report. The end of a part that is done is
  // acknowledged with the last part; a report from before the newest launch never waits for that.
  const bool waits = member != nullptr && attempts_.contains(id) && !attempts_.at(id).told_ended &&
                     member->wanted == Wanted::kRun && state.end &&
                     state.end->kind == ExitKind::kDone && member->launched &&
                     state.applied >= *member->launched;
  if (numbered.number != 0 && !waits) order(node, Acknowledge{numbered.number});
}

/// Launches the present epoch again: the order never arrived, or met an earlier epoch.
void FleetLink::launch_anew(LinkedAttempt& attempt, LinkedMember& member, Instant now) {
  member.seen.reset();
  member.launched.reset();
  say(attempt, member, now);
}

/// Ends a leftover attempt that control does not know, or not on this node.
void FleetLink::end_stray(const AttemptReport& state, NodeId node, Instant now) {
  const AttemptId id = state.token.id;
  const auto [at, added] = attempts_.try_emplace(id);
  LinkedAttempt& attempt = at->second;
  if (added) {
    attempt.id = id;
    attempt.epoch = state.token.epoch;
    attempt.told_up = true;
    attempt.told_ended = true;
  }
  LinkedMember& member = add_member(attempt, {.node = node});
  member.wanted = Wanted::kKill;
  member.launched = OrderStamp{};
  member.seen = state;
  member.told = true;
  say(attempt, member, now);
}

/// Counts attempts that a Hello does not list as gone, unless an order beyond the bar started them
/// since.
void FleetLink::find_missing(const Hello& hello, NodeId node, const OrderStamp& bar, Instant now) {
  const std::vector<AttemptId> here = contact(node).attempts;
  for (const AttemptId& id : here) {
    const auto named =
        std::find_if(hello.attempts.begin(), hello.attempts.end(),
                     [&](const NumberedReport& listed) { return listed.report.token.id == id; });
    if (named != hello.attempts.end()) continue;
    LinkedAttempt& attempt = attempts_.at(id);
    LinkedMember& member = *attempt.member(node);
    if (member.gone() || !member.launched || member.ordered > bar) continue;
    const bool began = member.seen && !left_before(attempt, member);
    if (began || member.wanted != Wanted::kRun) {
      vanish(attempt, member, "its ranks are not there any more", now);
      drop_if_done(id);
    } else {
      launch_anew(attempt, member, now);
    }
  }
}

/// Forgets what was given to a node that rebooted: control receives NodeJoined and concludes itself
/// that nothing runs there, so that orders not sent yet must not be sent any more.
void FleetLink::all_gone_from(NodeId node) {
  const std::vector<AttemptId> here = contact(node).attempts;
  for (const AttemptId& id : here) {
    LinkedAttempt& attempt = attempts_.at(id);
    lose_silently(attempt, *attempt.member(node));
    drop_if_done(id);
  }
}

void FleetLink::lose_silently(LinkedAttempt& attempt, LinkedMember& member) {
  if (member.gone()) return;
  member.seen = AttemptReport{.token = attempt.token(), .stage = RankStage::kGone};
  member.told = true;
  member.counted = true;
  ++attempt.gone;
}

void FleetLink::vanish(LinkedAttempt& attempt, LinkedMember& member, std::string evidence,
                       Instant now) {
  AttemptReport state = member.seen.value_or(AttemptReport{.token = attempt.token()});
  state.stage = RankStage::kGone;
  if (!state.end && member.wanted == Wanted::kRun) {
    state.end =
        AttemptEnd{ExitKind::kInfra, {FaultLayer::kHost, member.ranks.node, std::move(evidence)}};
  }
  member.seen = std::move(state);
  follow_up(attempt, member, now);
}

/// Passes on what follows from a member's report: it is up, its ranks ended, it is gone.
void FleetLink::follow_up(LinkedAttempt& attempt, LinkedMember& member, Instant now) {
  if (member.gone() && !member.counted) {
    member.counted = true;
    ++attempt.gone;
  }
  if (attempt.progress.done < member.seen->progress.done) attempt.progress = member.seen->progress;
  const bool up = member.seen->up_epoch && *member.seen->up_epoch >= attempt.epoch;
  if (member.wanted == Wanted::kRun && !member.up && up) {
    member.up = true;
    if (++attempt.up == attempt.runners && !attempt.told_up && !attempt.told_ended) {
      attempt.told_up = true;
      tell(RanksUp{attempt.id.job, attempt.id.attempt, attempt.epoch});
    }
  }
  note_end(attempt, member, now);
  tell_gone(attempt, member);
  tell_shed(attempt, member);
}

void FleetLink::note_end(LinkedAttempt& attempt, LinkedMember& member, Instant now) {
  if (attempt.told_ended || !member.seen->end) return;
  switch (member.seen->end->kind) {
    case ExitKind::kDone:
      if (std::exchange(member.done, true)) return;
      if (member.wanted == Wanted::kRun) ++attempt.done;
      if (attempt.done == attempt.runners) tell_ended(attempt, member);
      return;
    case ExitKind::kInfra:
    case ExitKind::kClaim:
    case ExitKind::kProgram:
    case ExitKind::kRefused:
      tell_ended(attempt, member);
      want(attempt, Wanted::kEnd, now);
      return;
  }
}

void FleetLink::tell_ended(LinkedAttempt& attempt, const LinkedMember& member) {
  attempt.told_ended = true;
  RanksEnded ended{attempt.id.job, attempt.id.attempt};
  ended.kind = member.seen->end->kind;
  ended.blame = member.seen->end->blame;
  ended.exit = member.seen->end->exit;
  // An agent can blame only its own node, whichever node it names.
  const bool names_node = ended.blame.node.valid() || ended.kind != ExitKind::kProgram;
  if (names_node) ended.blame.node = member.ranks.node;
  ended.progress = attempt.progress;
  ended.gone = attempt.gone == attempt.members.size();
  const bool all = ended.gone;
  tell(std::move(ended));
  for (LinkedMember& other : attempt.members) {
    if (all) other.told = true;
    tell_gone(attempt, other);
  }
}

/// A part that ended well waits for the others: its devices are not free before the attempt ends.
void FleetLink::tell_gone(LinkedAttempt& attempt, LinkedMember& member) {
  if (member.told || !member.gone()) return;
  if (!attempt.told_ended && member.wanted == Wanted::kRun) return;
  member.told = true;
  RanksGone gone{attempt.id.job, attempt.id.attempt, {member.ranks.node}, {}};
  // A later epoch may use the node again, unless the whole attempt has to end.
  if (!attempt.ending && !attempt.told_ended) gone.epoch = attempt.epoch;
  // The other members may fall silent before they are gone.
  if (attempt.ending && attempt.progress.done > 0) gone.progress = attempt.progress;
  tell(std::move(gone));
}

void FleetLink::tell_shed(LinkedAttempt& attempt, LinkedMember& member) {
  if (!member.sheds || member.wanted != Wanted::kRun || member.gone()) return;
  if (member.seen->shed_epoch < attempt.epoch) return;
  member.sheds = false;
  tell(RanksGone{attempt.id.job, attempt.id.attempt, {member.ranks.node}, {}, attempt.epoch - 1});
}

void FleetLink::drop_if_done(const AttemptId& id) {
  const auto at = attempts_.find(id);
  if (at == attempts_.end() || at->second.gone < at->second.members.size()) return;
  const std::vector<LinkedMember>& members = at->second.members;
  if (!std::all_of(members.begin(), members.end(), [](const auto& m) { return m.told; })) return;
  for (const LinkedMember& member : members) {
    std::erase(contact(member.ranks.node).attempts, id);
  }
  attempts_.erase(at);
}

}  // namespace orrery
