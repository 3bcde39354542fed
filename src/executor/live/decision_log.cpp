#include "executor/live/decision_log.hpp"

#include <fmt/format.h>

#include <span>

#include "base/format/field_writer.hpp"

namespace orrery {
namespace {

constexpr Duration kBurst = Duration::seconds(1);
constexpr std::uint64_t kBurstLines = 50;
constexpr std::uint64_t kBurstWarnings = 500;
constexpr std::size_t kNodesNamed = 8;

std::string node_name(const State& state, NodeId node) {
  return std::string(state.setup().topology->node_name(node));
}

}  // namespace

DecisionLog::~DecisionLog() {
  if (burst_) env_.timers.cancel(*burst_);
}

void DecisionLog::note(const Event& event) {
  std::visit([this](const auto& what) { on(what); }, event);
}

bool DecisionLog::may_write(std::uint64_t lines_max) {
  if (!burst_) burst_ = env_.timers.call_after(kBurst, [this] { end_burst(); });
  if (++lines_ <= lines_max) return true;
  ++left_out_;
  return false;
}

void DecisionLog::info(std::string_view message, LogFields fields) {
  if (may_write(kBurstLines)) log_.info(env_.clock.now_wall(), message, fields);
}

void DecisionLog::warning(std::string_view message, LogFields fields) {
  if (may_write(kBurstWarnings)) log_.warning(env_.clock.now_wall(), message, fields);
}

void DecisionLog::end_burst() {
  burst_.reset();
  lines_ = 0;
  const std::uint64_t left_out = std::exchange(left_out_, 0);
  if (left_out == 0) return;
  log_.info(env_.clock.now_wall(), "more happened in this second; `orrery events` has all of it",
            {{"lines_left_out", left_out}});
}

std::string DecisionLog::name(JobId job) const {
  return job.valid() && state_.has(job) ? state_.job(job).name : std::string("-");
}

void DecisionLog::on(const JobStarted& event) {
  std::string nodes;
  std::size_t count = 0;
  for (const PlacedGang& gang : event.gangs) {
    for (const NodeDevices& at : gang.allocation.ranks) {
      if (++count > kNodesNamed) continue;
      nodes += (nodes.empty() ? "" : ",") + node_name(state_, at.node);
    }
  }
  if (count > kNodesNamed) nodes += fmt::format(" and {} more", count - kNodesNamed);
  info("job starts", {{"job", event.job.value()},
                      {"name", name(event.job)},
                      {"attempt", event.attempt},
                      {"nodes", nodes}});
}

void DecisionLog::on(const JobResized& event) {
  info("job goes on with other accelerators",
       {{"job", event.job.value()}, {"name", name(event.job)}, {"epoch", event.epoch}});
}

void DecisionLog::on(const JobStopping& event) {
  const std::string reason(word_of(event.reason));
  const std::string node =
      event.blame.node.valid() ? node_name(state_, event.blame.node) : std::string("-");
  if (event.reason == StopReason::kInfra) {
    warning("job lost its attempt", {{"job", event.job.value()},
                                     {"name", name(event.job)},
                                     {"node", node},
                                     {"why", event.blame.evidence}});
  } else if (event.in_favour_of.valid()) {
    info("job stops", {{"job", event.job.value()},
                       {"name", name(event.job)},
                       {"reason", reason},
                       {"in_favour_of", event.in_favour_of.value()}});
  } else {
    info("job stops", {{"job", event.job.value()},
                       {"name", name(event.job)},
                       {"reason", reason},
                       {"why", event.blame.evidence}});
  }
}

void DecisionLog::on(const JobEnded& event) {
  info("job ended", {{"job", event.job.value()},
                     {"name", name(event.job)},
                     {"phase", std::string(word_of(event.phase))},
                     {"why", event.blame.evidence}});
}

void DecisionLog::on(const JobHoldSet& event) {
  const bool held = event.hold != JobHold::kNone;
  info(held ? "job is held" : "job is released", {{"job", event.job.value()},
                                                  {"name", name(event.job)},
                                                  {"by", std::string(word_of(event.hold))}});
}

void DecisionLog::on(const JobChanged& event) {
  const auto text = [](const std::optional<Duration>& time) {
    return time ? time->text() : std::string("none");
  };
  info("job is changed", {{"job", event.job.value()},
                          {"name", name(event.job)},
                          {"priority", event.priority},
                          {"time_limit", text(event.time_limit)},
                          {"estimate", text(event.estimate)}});
}

void DecisionLog::on(const NodeChanged& event) {
  const NodeRecord& record = state_.node(event.node);
  const std::string health(word_of(event.health));
  const bool bad = event.health == NodeHealth::kSuspect || event.health == NodeHealth::kLost ||
                   event.health == NodeHealth::kQuarantined ||
                   event.blame.layer != FaultLayer::kNone;
  if (bad) {
    const std::string& why = event.blame.evidence.empty() ? record.out_why : event.blame.evidence;
    warning("node fault",
            {{"node", node_name(state_, event.node)}, {"state", health}, {"why", why}});
  } else {
    const std::string& why = event.blame.evidence.empty() ? record.drain_why : event.blame.evidence;
    info("node changed",
         {{"node", node_name(state_, event.node)}, {"state", health}, {"why", why}});
  }
}

void DecisionLog::on(const NodeAccused& event) {
  warning("a job says that its node is at fault", {{"job", event.job.value()},
                                                   {"node", node_name(state_, event.node)},
                                                   {"verdict", std::string(word_of(event.verdict))},
                                                   {"why", event.evidence}});
}

void DecisionLog::on(const LemonFound& event) {
  warning("node fails more often than its like",
          {{"node", node_name(state_, event.node)}, {"faults", event.faults}});
}

void DecisionLog::on(const SpareSet& event) {
  info(event.spare ? "node is a spare" : "node is no spare any more",
       {{"node", node_name(state_, event.node)}});
}

void DecisionLog::on(const PowerLimitSet& event) {
  const std::string what = event.what == PowerLimitSet::What::kCap ? "cap" : "supply";
  const double watts = event.limit.value_or(Watts()).value();
  info(event.limit ? "power limit" : "power limit lifted",
       {{"domain", state_.setup().topology->power_name(event.domain)},
        {"of", what},
        {"watts", watts}});
}

void DecisionLog::on(const NodeLent& event) {
  if (event.hold.empty()) {
    return info(
        event.managed ? "node is not lent" : "node is the cluster's own",
        {{"node", node_name(state_, event.node)}, {"state", std::string(word_of(event.health))}});
  }
  const bool limited = event.until != Instant::max();
  info("node is lent", {{"node", node_name(state_, event.node)},
                        {"hold", event.hold},
                        {"until", limited ? event.until.text() : std::string("no end")}});
}

void DecisionLog::on(const ForeignSet& event) {
  if (event.claim == ForeignClaim::kNone) {
    return info("nobody else uses the node", {{"node", node_name(state_, event.node)}});
  }
  const bool limited = event.until != Instant::max();
  info("others use the node", {{"node", node_name(state_, event.node)},
                               {"who", event.who},
                               {"until", limited ? event.until.text() : std::string("no end")}});
}

void DecisionLog::on(const HoldBilled& event) {
  info("hold is billed", {{"hold", event.hold},
                          {"nodes", event.nodes},
                          {"seconds", (event.to - event.from).count_seconds()}});
}

void DecisionLog::on(const ReplicaChanged& event) {
  info("replica", {{"job", event.job.value()},
                   {"name", name(event.job)},
                   {"phase", std::string(word_of(event.report.phase))},
                   {"endpoint", event.report.endpoint}});
}

void DecisionLog::on(const ServiceUpdating& event) {
  info(event.back.empty() ? "service is updated" : "service goes back",
       {{"service", event.service.value()},
        {"name", event.replica.request.name.substr(0, event.replica.request.name.rfind('['))},
        {"revision", event.revision},
        {"replicas", event.replicas},
        {"why", event.back}});
}

void DecisionLog::on(const ServiceUpdated& event) {
  const std::string_view what = event.outcome.empty() ? "update done" : "update given up";
  info(what, {{"service", event.service.value()}, {"why", event.outcome}});
}

void DecisionLog::on(const ServiceScaled& event) {
  info("service is scaled", {{"service", event.service.value()},
                             {"from", event.before},
                             {"to", event.replicas},
                             {"why", event.why}});
}

void DecisionLog::on(const MaintenanceSet& event) {
  info(event.nodes.empty() ? "maintenance over" : "maintenance", {{"window", event.window},
                                                                  {"nodes", event.nodes.size()},
                                                                  {"from", event.from.text()},
                                                                  {"to", event.to.text()},
                                                                  {"why", event.why}});
}

}  // namespace orrery
