#include "control/nodes/node_condition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace orrery {

void NodeCondition::on(const FenceNode& command) {
  if (!recorder_.has_node(command.node)) return recorder_.refuse("no such node");
  const NodeRecord& record = state_.node(command.node);
  if (record.health != NodeHealth::kLost && !record.is_away()) {
    return recorder_.refuse("only a lost node is fenced");
  }
  ranks_gone_on(command.node);
}

void NodeCondition::on(const NodeJoined& seen) {
  if (!recorder_.has_node(seen.node)) return recorder_.refuse("no such node");
  const NodeRecord& record = state_.node(seen.node);
  if (record.boot != seen.boot) {
    const bool first = record.boot == 0;
    if (!first) ranks_gone_on(seen.node);
    recorder_.emit(NodeBooted{seen.node, seen.boot});
  }
  // Its agent may be of a hold that lends the node next: that is not dismissed.
  if (state_.node(seen.node).is_away()) return;
  const NodeHealth health = state_.node(seen.node).health;
  const bool away = health == NodeHealth::kLost || health == NodeHealth::kSuspect ||
                    health == NodeHealth::kJoining;
  if (away) parts_.service.come_back(seen.node);
}

void NodeCondition::on(const NodeHeard& seen) {
  if (!recorder_.has_node(seen.node)) return recorder_.refuse("no such node");
  const NodeHealth health = state_.node(seen.node).health;
  if (seen.health == NodeHealth::kLost) {
    // A drained node may be off for its maintenance; a lent one has lost its agent.
    const NodeRecord& record = state_.node(seen.node);
    const bool drained = health == NodeHealth::kDrained && !record.loan.hold.empty();
    const bool there = health == NodeHealth::kReady || health == NodeHealth::kSuspect ||
                       health == NodeHealth::kDraining || drained;
    if (!there) return;
    parts_.emptying.remove(seen.node);
    // The agent of a lent node ends with its hold, which is no fault.
    const bool over = drained || record.loan.until <= recorder_.now();
    const Blame blame{over ? FaultLayer::kNone : FaultLayer::kHost, seen.node,
                      fmt::format("{} heartbeats missed", seen.missed)};
    recorder_.emit(NodeChanged{seen.node, NodeHealth::kLost, blame});
    if (drained) return;
    lose(seen.node, blame);
    return detect_lemon_node(seen.node);
  }
  const bool turns = (seen.health == NodeHealth::kSuspect && health == NodeHealth::kReady) ||
                     (seen.health == NodeHealth::kReady && health == NodeHealth::kSuspect);
  if (turns) recorder_.emit(NodeChanged{seen.node, seen.health, {}});
}

void NodeCondition::on(const NodeFault& seen) {
  if (!recorder_.has_node(seen.node)) return recorder_.refuse("no such node");
  if (seen.claimed_by.valid()) return hear_claim(seen);
  const NodeHealth health = state_.node(seen.node).health;
  const Blame blame{seen.layer, seen.node, seen.evidence};
  const bool working = health == NodeHealth::kReady || health == NodeHealth::kSuspect ||
                       health == NodeHealth::kDraining || health == NodeHealth::kDrained ||
                       health == NodeHealth::kLost;
  const bool mend = seen.repair && working;
  const bool window = health == NodeHealth::kDraining && !state_.node(seen.node).drain;
  recorder_.emit(
      NodeChanged{seen.node, mend ? NodeHealth::kQuarantined : health, blame, window, {}});
  if (mend) parts_.emptying.add(seen.node);
  detect_lemon_node(seen.node);
  if (seen.stops_jobs) lose(seen.node, blame);
  parts_.emptying.settle();
}

void NodeCondition::on(const NodeRepaired& seen) {
  if (!recorder_.has_node(seen.node)) return recorder_.refuse("no such node");
  const NodeHealth health = state_.node(seen.node).health;
  if (health != NodeHealth::kRepairing && health != NodeHealth::kQuarantined) return;
  parts_.service.let_go(seen.node);
}

// --- Nodes of resource managers -----------------------------------------------------------------

void NodeCondition::on(const NodeGranted& seen) {
  if (!recorder_.has_node(seen.node)) return recorder_.refuse("no such node");
  const NodeRecord& record = state_.node(seen.node);
  const bool managed = !seen.hold.empty();
  const NodeRecord::Loan& loan = record.loan;
  if (loan.managed == managed && loan.hold == seen.hold && loan.until == seen.until) return;
  // The end of this hold would prove nothing about the ranks of an earlier one: the node is lent
  // once its agent has shown that they are gone.
  if (managed && record.loan.hold != seen.hold && has_ranks(seen.node)) {
    return on(NodeAbsent{seen.node, false, "another hold lends it"});
  }
  const bool absent = record.health == NodeHealth::kAbsent;
  const bool comes = record.is_away();
  recorder_.emit(NodeLent{seen.node, managed, seen.hold, seen.until,
                          absent ? NodeHealth::kJoining : record.health, seen.job});
  parts_.service.lend_until(seen.node, seen.until);
  if (comes) recorder_.act(GreetNode{seen.node});
}

void NodeCondition::on(const NodeAbsent& seen) {
  if (!recorder_.has_node(seen.node)) return recorder_.refuse("no such node");
  const NodeHealth health = state_.node(seen.node).health;
  const bool out = health == NodeHealth::kQuarantined || health == NodeHealth::kRepairing;
  const bool lost = health == NodeHealth::kLost;
  const bool gone = seen.gone && !state_.node(seen.node).is_away();
  if (has_ranks(seen.node)) {
    take_back(seen.node, out ? health : NodeHealth::kLost);
    if (gone) {
      ranks_gone_on(seen.node);
    } else if (!lost) {
      lose(seen.node, {FaultLayer::kNone, seen.node, seen.why});
    }
  }
  if (!has_ranks(seen.node)) take_back(seen.node, out ? health : NodeHealth::kAbsent);
}

void NodeCondition::on(const HoldRecorded& seen) {
  if (state_.bills().has(seen.hold, seen.to)) return;
  if (seen.to < seen.from) return recorder_.refuse("a hold ends after it began");
  recorder_.emit(HoldBilled{seen.hold, seen.nodes, seen.from, seen.to});
}

void NodeCondition::take_back(NodeId node, NodeHealth health) {
  const NodeRecord& record = state_.node(node);
  if (record.is_away() && record.health == health) return;
  parts_.emptying.remove(node);
  recorder_.emit(NodeLent{node, true, {}, Instant::max(), health, {}});
}

/// Whether a rank of some attempt may run on the node.
bool NodeCondition::has_ranks(NodeId node) const {
  const std::span<const Ghost> ghosts = state_.ghosts();
  return !state_.jobs_on(node).empty() ||
         std::any_of(ghosts.begin(), ghosts.end(),
                     [node](const Ghost& ghost) { return ghost.at.node == node; });
}

// --- What follows -------------------------------------------------------------------------------

void NodeCondition::hear_claim(const NodeFault& seen) {
  if (std::string why = contradiction(state_, seen.claimed_by, seen.attempt); !why.empty()) {
    return recorder_.refuse(why);
  }
  const JobId id = seen.claimed_by;
  const ClaimVerdict verdict =
      parts_.claims.judge({id, seen.attempt, seen.node, ClaimVerdict::kSuspected, seen.evidence});
  if (verdict == ClaimVerdict::kRefused) clear_suspicions(id);
  if (verdict != ClaimVerdict::kSuspected) return;
  const std::vector<JobId> here = state_.jobs_on(seen.node);
  if (std::find(here.begin(), here.end(), id) != here.end()) {
    parts_.jobs.lose_part(id, seen.node, {seen.layer, seen.node, seen.evidence});
  }
  parts_.emptying.settle();
}

// Returns nodes to service that are out of service only because of a job's claim.
void NodeCondition::clear_suspicions(JobId id) {
  for (const NodeId node : parts_.claims.suspected_by(id)) parts_.service.let_go(node);
}

void NodeCondition::lose(NodeId node, const Blame& blame) {
  for (const JobId id : state_.jobs_on(node)) parts_.jobs.lose_part(id, node, blame);
}

// No rank of any attempt runs on the node any more: it rebooted, or an operator guarantees it.
void NodeCondition::ranks_gone_on(NodeId node) {
  std::vector<std::pair<JobId, std::uint32_t>> ghosts;
  for (const Ghost& ghost : state_.ghosts()) {
    if (ghost.at.node == node) ghosts.emplace_back(ghost.job, ghost.attempt);
  }
  for (const auto& [job, attempt] : ghosts) parts_.jobs.free_devices({job, attempt, {node}});
  for (const auto& [job, attempt] : ghosts) {
    if (attempt == state_.job(job).attempt) parts_.jobs.finish_if_gone(job);
  }
  for (const JobId id : state_.jobs_on(node)) {
    if (state_.job(id).phase != JobPhase::kStopping) {
      parts_.jobs.lose_part(id, node, {FaultLayer::kHost, node, "the node started anew"});
    }
    if (state_.job(id).phase != JobPhase::kStopping) continue;
    parts_.jobs.free_devices({id, state_.job(id).attempt, {node}});
    parts_.jobs.finish_if_gone(id);
  }
}

// A lemon has more faults within the window than three standard deviations above the number
// expected by chance.
void NodeCondition::detect_lemon_node(NodeId node) {
  const ControlTiming& timing = state_.setup().timing;
  const NodeRecord& record = state_.node(node);
  const double chance =
      state_.setup().failures_per_node_second * timing.lemon_window.count_seconds();
  const auto faults = static_cast<std::uint32_t>(record.faults.size());
  const bool many = faults >= timing.lemon_faults && faults > chance + 3 * std::sqrt(chance);
  if (many) recorder_.emit(LemonFound{node, faults});
}

}  // namespace orrery
