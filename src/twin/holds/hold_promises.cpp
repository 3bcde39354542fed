#include "twin/holds/hold_promises.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/format/field_writer.hpp"

namespace orrery {
namespace {

bool is_left(HoldPhase phase) {
  return phase == HoldPhase::kWaiting || phase == HoldPhase::kRunning ||
         phase == HoldPhase::kEnding;
}

bool is_same(const ManagerJob::Record& a, const ManagerJob::Record& b) {
  return a.started == b.started && a.ended == b.ended && a.nodes == b.nodes;
}

bool has(const Hold& hold, NodeId node) {
  return std::find(hold.nodes.begin(), hold.nodes.end(), node) != hold.nodes.end();
}

}  // namespace

bool HoldPromises::may_be_used(const State& state, NodeId node) {
  return !state.jobs_on(node).empty() ||
         std::ranges::any_of(state.ghosts(),
                             [node](const Ghost& ghost) { return ghost.at.node == node; });
}

std::string HoldPromises::broken(const State& state, const HoldLink& link) {
  for (std::size_t n = 0; n < parts_.nodes.size(); ++n) {
    const std::string broken = broken_node(NodeId::at(n), state, link);
    if (!broken.empty()) return broken;
  }
  std::string broken = broken_jobs(state);
  if (broken.empty()) broken = broken_keys(state, link);
  if (broken.empty()) broken = broken_ends(link);
  before_.clear();
  for (const Hold& hold : link.holds()) {
    if (hold.state != HoldState::kGranted) continue;
    const bool wanted =
        std::ranges::any_of(hold.nodes, [&](NodeId node) { return has_wanted_rank(node, state); });
    before_.push_back({hold.key, hold.id, wanted});
  }
  return broken;
}

std::string HoldPromises::broken_node(NodeId node, const State& state, const HoldLink& link) const {
  const NodeRecord& record = state.node(node);
  if (!parts_.manager.lends(node)) {
    const bool own = record.loan.hold.empty() && record.health != NodeHealth::kAbsent;
    return own ? "" : fmt::format("node {} is the cluster's own, but lent", node.value());
  }
  const auto lenders =
      std::ranges::count_if(link.holds(), [node](const Hold& hold) { return has(hold, node); });
  if (lenders > 1) return fmt::format("{} holds lend node {}", lenders, node.value());
  const auto lender =
      std::ranges::find_if(link.holds(), [node](const Hold& hold) { return has(hold, node); });
  const bool lent = lender != link.holds().end() && !record.is_away();
  if (lent &&
      record.loan.hold != fmt::format("{}/{}:{}", parts_.pool, text_of(lender->key), lender->id)) {
    return fmt::format("node {} is lent by {}, but control says: {}", node.value(),
                       text_of(lender->key), record.loan.hold);
  }
  if (lent) return {};
  switch (record.health) {
    case NodeHealth::kAbsent:
    case NodeHealth::kQuarantined:
    case NodeHealth::kRepairing:
      return {};
    case NodeHealth::kJoining:
      // Before the first list of all.
      if (record.boot == 0) return {};
      break;
    case NodeHealth::kLost:
      return {};
    case NodeHealth::kReady:
    case NodeHealth::kSuspect:
    case NodeHealth::kDraining:
    case NodeHealth::kDrained:
      break;
  }
  return fmt::format("node {} is {}, but no hold lends it", node.value(), word_of(record.health));
}

std::string HoldPromises::broken_jobs(const State& state) const {
  for (const RunningJob& run : state.running()) {
    const Job& job = state.job(run.id);
    if (job.phase == JobPhase::kStopping) continue;
    for (const PlacedGang& gang : run.gangs) {
      for (const NodeDevices& part : gang.allocation.ranks) {
        const NodeRecord::Loan& loan = state.node(part.node).loan;
        if (loan.job.valid() && loan.job != run.id) {
          return fmt::format("job {} runs on node {}, which is lent for job {}", run.id.value(),
                             part.node.value(), loan.job.value());
        }
        if (!parts_.manager.lends(part.node) || !loan.hold.empty()) continue;
        return fmt::format("job {} runs on node {}, which no hold lends", run.id.value(),
                           part.node.value());
      }
    }
  }
  return {};
}

std::string HoldPromises::broken_keys(const State& state, const HoldLink& link) const {
  for (const Hold& hold : link.holds()) {
    std::string id;
    for (const NodeId node : hold.nodes) {
      const std::optional<AgentHold>& of = parts_.agents.hold(node);
      if (!of || of->key != hold.key || !parts_.agents.reaches(node)) continue;
      if (state.node(node).health != NodeHealth::kReady) continue;
      if (!id.empty() && id != of->id) {
        return fmt::format("agents of {} and of {} serve {}", id, of->id, text_of(hold.key));
      }
      id = of->id;
    }
  }
  return {};
}

bool HoldPromises::has_wanted_rank(NodeId node, const State& state) const {
  for (const AttemptId& attempt : parts_.nodes.keepers_on(node)) {
    const KeeperAt keeper{node, attempt};
    if (!parts_.agents.is_of_step(keeper) || !parts_.nodes.ranks().has_any(keeper)) continue;
    if (!state.has(attempt.job)) continue;
    const Job& job = state.job(attempt.job);
    const bool wanted = job.attempt == attempt.attempt &&
                        (job.phase == JobPhase::kStarting || job.phase == JobPhase::kRunning);
    const std::vector<JobId> here = state.jobs_on(node);
    if (wanted && std::find(here.begin(), here.end(), attempt.job) != here.end()) return true;
  }
  return false;
}

/// Looks at the holds that lent nodes when it looked last.
std::string HoldPromises::broken_ends(const HoldLink& link) const {
  for (const Granted& before : before_) {
    const auto now = std::ranges::find_if(link.holds(),
                                          [&](const Hold& hold) { return hold.key == before.key; });
    if (now == link.holds().end()) {
      if (!is_live(before.key, before.id)) continue;
      return fmt::format("{} is given up, but its manager has it", text_of(before.key));
    }
    // A hold that others end keeps its nodes.
    const bool released = now->state == HoldState::kReleasing && now->nodes.empty();
    if (before.wanted && released) {
      return fmt::format("{} is released, but ranks are on its nodes", text_of(before.key));
    }
  }
  return {};
}

void HoldPromises::note_ends() {
  for (const ManagerJob& job : parts_.manager.jobs()) {
    const bool goes_on = job.phase == HoldPhase::kWaiting || job.phase == HoldPhase::kRunning;
    if (job.key && !goes_on) ended_.emplace(*job.key, job.id);
    const bool over = job.phase == HoldPhase::kEnded || job.phase == HoldPhase::kEndedDirty;
    if (!job.key || !over || !job.record) continue;
    std::vector<ManagerJob::Record>& records =
        records_[fmt::format("{}/{}:{}", parts_.pool, text_of(*job.key), job.id)];
    if (records.empty() || !is_same(records.back(), *job.record)) records.push_back(*job.record);
  }
}

std::string HoldPromises::broken_by(const HoldBilled& bill) const {
  if (bill.nodes == 0) return {};
  const auto records = records_.find(bill.hold);
  const bool is_recorded =
      records != records_.end() && std::ranges::any_of(records->second, [&](const auto& record) {
        return record.started == bill.from && record.ended == bill.to &&
               record.nodes.size() == bill.nodes;
      });
  return is_recorded ? "" : "the manager has no such record: a bill of " + bill.hold;
}

bool HoldPromises::is_live(const HoldKey& key, const std::string& id) const {
  return std::ranges::any_of(parts_.manager.jobs(), [&](const ManagerJob& job) {
    return job.key == key && !ended_.contains({key, job.id}) &&
           (id.empty() || id == std::to_string(job.id)) &&
           (job.phase == HoldPhase::kRunning || job.phase == HoldPhase::kWaiting);
  });
}

std::string HoldPromises::broken_by(const ManagerOrder& order, const HoldLink& link) {
  if (const auto* release = std::get_if<ReleaseHold>(&order.what)) {
    const bool named = release->key != HoldKey{} && !release->id.empty();
    return named ? "" : "a hold is released by its key or its id alone";
  }
  const auto* hold = std::get_if<EnsureHold>(&order.what);
  if (hold == nullptr) return {};
  if (link.manager(0).lists.count == 0) {
    return "a hold is asked for before a list has shown which there are";
  }
  const bool again = std::ranges::find(asked_, hold->key) != asked_.end();
  if (again && is_live(hold->key, {})) {
    return fmt::format("{} is asked for again, but its manager has it", text_of(hold->key));
  }
  asked_.push_back(hold->key);
  return {};
}

bool HoldPromises::is_second(const AgentHold& agent, const HoldLink& link) {
  return std::ranges::any_of(link.holds(), [&](const Hold& hold) {
    return hold.key == agent.key && hold.state == HoldState::kGranted && !hold.nodes.empty() &&
           hold.id != agent.id;
  });
}

std::string HoldPromises::broken_times(Instant now) const {
  for (const ManagerJob& job : parts_.manager.jobs()) {
    if (!job.key || job.phase != HoldPhase::kRunning || now < job.due) continue;
    for (const NodeId node : job.nodes) {
      for (const AttemptId& attempt : parts_.nodes.keepers_on(node)) {
        const KeeperAt keeper{node, attempt};
        if (!parts_.agents.is_of_step(keeper) || !parts_.nodes.ranks().has_any(keeper)) continue;
        return fmt::format("the time of {} is over, but ranks are on node {}", text_of(*job.key),
                           node.value());
      }
    }
  }
  return {};
}

std::string HoldPromises::unsettled(const State& state, const HoldLink& link,
                                    std::uint32_t keep) const {
  std::uint32_t nodes = 0;
  for (const ManagerJob& job : parts_.manager.jobs()) {
    if (!job.key || !is_left(job.phase)) continue;
    const bool known = std::ranges::any_of(link.holds(), [&](const Hold& hold) {
      return hold.key == *job.key && hold.id == std::to_string(job.id);
    });
    if (!known) return fmt::format("the link does not know {} of {}", job.id, text_of(*job.key));
    nodes += job.wish.nodes;
  }
  if (keep == 0 && nodes > 0) return fmt::format("{} nodes are held for nothing", nodes);
  if (keep == 0 && !link.holds().empty()) {
    return fmt::format("the link knows {} holds", link.holds().size());
  }
  for (std::size_t n = 0; n < parts_.nodes.size(); ++n) {
    const NodeId node = NodeId::at(n);
    if (!parts_.manager.lends(node)) continue;
    const bool used = may_be_used(state, node);
    const NodeHealth health = state.node(node).health;
    const bool away = health == NodeHealth::kAbsent || !state.node(node).loan.hold.empty() ||
                      health == NodeHealth::kQuarantined || health == NodeHealth::kRepairing;
    if (used || !away) {
      return fmt::format("node {} is {}{}", n, word_of(health), used ? " and used" : "");
    }
  }
  return {};
}

}  // namespace orrery
