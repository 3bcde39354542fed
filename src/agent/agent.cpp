#include "agent/agent.hpp"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

/// Whether an order changes what runs here: a late one is dropped, and the controller resends it.
bool ordered(const OrderKind& what) {
  return !std::holds_alternative<Reconcile>(what) && !std::holds_alternative<Acknowledge>(what) &&
         !std::holds_alternative<RenewLease>(what);
}

/// Returns the attempt that an order concerns; none: it concerns the node.
const FenceToken* token_of(const OrderKind& what) {
  if (const auto* launch = std::get_if<LaunchRanks>(&what)) return &launch->token;
  if (const auto* end = std::get_if<EndRanks>(&what)) return &end->token;
  if (const auto* kill = std::get_if<KillRanks>(&what)) return &kill->token;
  return nullptr;
}

}  // namespace

Agent::Agent(const AgentSetup& setup, std::span<const AttemptId> found, Instant now)
    : setup_(setup), next_beat_(now) {
  for (const AttemptId& id : found) {
    keepers_[id].state.token.id = id;
    effects_.push_back(TellKeeper{id, {{}, AdoptKeeper{}}});
  }
}

std::optional<RefusalReason> Agent::refusal(const Order& order) const {
  if (order.cluster != setup_.cluster) return RefusalReason::kOtherCluster;
  if (order.stamp.term < newest_.term) return RefusalReason::kOlderTerm;
  if (order.to.node != setup_.identity.node) return RefusalReason::kOtherAgent;
  // Any agent on this node may answer the question which agent is on it.
  if (std::holds_alternative<Reconcile>(order.what)) return std::nullopt;
  if (order.to != setup_.identity) return RefusalReason::kOtherAgent;
  if (ordered(order.what) && order.stamp < newest_) return RefusalReason::kOlderOrder;
  return std::nullopt;
}

void Agent::refuse(const OrderStamp& stamp, RefusalReason why) {
  effects_.push_back(Report{setup_.identity, 0, Refused{stamp, why, newest_.term}});
}

void Agent::on_order(const Order& order, Instant now) {
  if (const std::optional<RefusalReason> why = refusal(order)) {
    refuse(order.stamp, *why);
    return;
  }
  if (ordered(order.what)) {
    const bool again = order.stamp == newest_;
    newest_ = order.stamp;
    if (again) {
      if (const FenceToken* token = token_of(order.what)) answer(order, *token, now);
      return;
    }
  }
  std::visit([&](const auto& what) { obey(order, what, now); }, order.what);
}

/// Reports the state of an attempt. If it is not here, the report says that it is gone, because no
/// older order can start it any more.
void Agent::answer(const Order& order, const FenceToken& token, Instant now) {
  const auto at = keepers_.find(token.id);
  if (at != keepers_.end()) {
    if (at->second.number != 0) publish(at->second, now);
    return;
  }
  AttemptReport gone{.token = token, .stage = RankStage::kGone, .applied = order.stamp};
  effects_.push_back(Report{setup_.identity, 0, std::move(gone)});
}

template <class What>
void Agent::forward(const Order& order, const What& what) {
  AttemptId id;
  if constexpr (requires { what.token; }) {
    id = what.token.id;
  } else {
    id = what.id;
  }
  effects_.push_back(TellKeeper{id, {order.stamp, what}});
}

bool Agent::other_attempt_here(const Order& order, const LaunchRanks& launch) {
  const AttemptId& id = launch.token.id;
  for (auto at = keepers_.lower_bound({id.job, 0}); at != keepers_.end(); ++at) {
    if (at->first.job != id.job) break;
    if (at->first == id || at->second.state.stage == RankStage::kGone) continue;
    if (at->first > id) {
      refuse(order.stamp, RefusalReason::kOlderAttempt);
      return true;
    }
    FenceToken token = at->second.state.token;
    token.epoch = ~std::uint32_t{0};  // matches whatever epoch it has reached
    forward(order, KillRanks{token});
    refuse(order.stamp, RefusalReason::kNotGone);
    return true;
  }
  return false;
}

void Agent::obey(const Order& order, const LaunchRanks& launch, Instant now) {
  const AttemptId& id = launch.token.id;
  if (other_attempt_here(order, launch)) return;
  const auto at = keepers_.find(id);
  if (at != keepers_.end()) {
    if (at->second.state.stage == RankStage::kGone) {
      answer(order, launch.token, now);
    } else {
      forward(order, launch);
    }
    return;
  }
  if (now >= launch.heard + launch.lease.patience()) {
    refuse(order.stamp, RefusalReason::kLeaseOver);
    return;
  }
  KeeperRecord& record = keepers_[id];
  record.state.token = launch.token;
  record.state.stage = RankStage::kPreparing;
  record.state.applied = order.stamp;
  effects_.push_back(StartKeeper{id, order.stamp, launch});
}

void Agent::obey(const Order& order, const EndRanks& end, Instant now) {
  const auto at = keepers_.find(end.token.id);
  if (at == keepers_.end() || at->second.state.stage == RankStage::kGone) {
    answer(order, end.token, now);
  } else {
    forward(order, end);
  }
}

void Agent::obey(const Order& order, const KillRanks& kill, Instant now) {
  const auto at = keepers_.find(kill.token.id);
  if (at == keepers_.end() || at->second.state.stage == RankStage::kGone) {
    answer(order, kill.token, now);
  } else {
    forward(order, kill);
  }
}

void Agent::obey(const Order& order, const RenewLease& renewal, Instant /*now*/) {
  if (keepers_.contains(renewal.id)) forward(order, renewal);
}

void Agent::obey(const Order& /*order*/, const MendNode& mend, Instant /*now*/) {
  if (mending_) return;
  mending_ = true;
  effects_.push_back(BeginMending{mend.layer});
}

void Agent::obey(const Order& order, const Reconcile& /*question*/, Instant now) {
  newest_ = std::max(newest_, order.stamp);
  Hello hello{order.stamp, now, {}};
  hello.attempts.reserve(keepers_.size());
  for (const auto& [id, record] : keepers_) {
    hello.attempts.push_back({record.number, record.state});
  }
  effects_.push_back(Report{setup_.identity, 0, std::move(hello)});
}

void Agent::obey(const Order& order, const Acknowledge& ack, Instant /*now*/) {
  const auto at = outbox_.find(ack.number);
  if (at == outbox_.end()) return;
  const auto* report = std::get_if<AttemptReport>(&at->second.what);
  if (report != nullptr && report->stage == RankStage::kGone) {
    // An older order that is still on its way must not restart the attempt that is forgotten now.
    newest_ = std::max(newest_, order.stamp);
    settle(report->token.id);
  }
  outbox_.erase(at);
}

/// The controller knows how the attempt ended: its keeper may exit.
void Agent::settle(const AttemptId& id) {
  const auto at = keepers_.find(id);
  if (at == keepers_.end()) return;
  if (at->second.exited) {
    keepers_.erase(at);
    return;
  }
  at->second.released = true;
  effects_.push_back(TellKeeper{id, {{}, ReleaseKeeper{}}});
}

void Agent::on_keeper_report(const AttemptReport& report, Instant now) {
  KeeperRecord& record = keepers_[report.token.id];
  if (record.released || record.exited) return;
  record.state = report;
  // An earlier agent of this node may have seen a newer controller.
  if (report.applied.term > newest_.term) newest_ = {report.applied.term, 0};
  publish(record, now);
}

void Agent::on_keeper_exit(const AttemptId& id, Instant now) {
  const auto at = keepers_.find(id);
  if (at == keepers_.end()) return;
  KeeperRecord& record = at->second;
  if (record.released) {
    keepers_.erase(at);
    return;
  }
  record.exited = true;
  if (record.state.stage == RankStage::kGone) return;
  if (record.state.stage < RankStage::kEnding) {
    record.state.end = AttemptEnd{ExitKind::kInfra,
                                  {.layer = FaultLayer::kHost,
                                   .node = setup_.identity.node,
                                   .evidence = "the keeper of its ranks died"}};
  }
  record.state.stage = RankStage::kGone;
  record.state.applied = std::max(record.state.applied, newest_);
  publish(record, now);
}

void Agent::on_fault(const HealthFault& fault, Instant now) {
  for (auto at = outbox_.begin(); at != outbox_.end();) {
    const auto* earlier = std::get_if<HealthFault>(&at->second.what);
    const bool replaced = earlier != nullptr && earlier->layer == fault.layer &&
                          earlier->claimed_by == fault.claimed_by;
    at = replaced ? outbox_.erase(at) : std::next(at);
  }
  send(fault, now);
}

void Agent::on_mended(Instant now) {
  mending_ = false;
  send(Mended{}, now);
}

void Agent::publish(KeeperRecord& record, Instant now) {
  outbox_.erase(record.number);
  record.number = send(record.state, now);
}

std::uint64_t Agent::send(ReportKind what, Instant now) {
  const std::uint64_t number = ++numbers_;
  effects_.push_back(Report{setup_.identity, number, what});
  outbox_.emplace(number, Unacknowledged{now, std::move(what)});
  return number;
}

void Agent::on_timer(Instant now) {
  if (now < next_beat_) return;
  next_beat_ = now + setup_.beat;
  effects_.push_back(Report{setup_.identity, 0, Heartbeat{++beats_, now, signals_}});
  for (auto& [number, waiting] : outbox_) {
    if (waiting.sent + setup_.repeat > now) continue;
    waiting.sent = now;
    effects_.push_back(Report{setup_.identity, number, waiting.what});
  }
}

bool Agent::attempts_acknowledged() const {
  return std::ranges::none_of(outbox_, [](const auto& each) {
    return std::holds_alternative<AttemptReport>(each.second.what);
  });
}

std::vector<AgentEffect> Agent::take() { return std::exchange(effects_, {}); }

}  // namespace orrery
