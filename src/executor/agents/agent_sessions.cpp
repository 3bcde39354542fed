#include "executor/agents/agent_sessions.hpp"

#include <fmt/format.h>

#include <bit>
#include <map>
#include <utility>

#include "base/format/field_writer.hpp"

namespace orrery {
namespace {

/// Puts the address of its node into the endpoint of a replica, of which a program may choose the
/// port alone: requests of others must not be led elsewhere.
void place_at(std::string& endpoint, const std::string& address) {
  if (endpoint.empty()) return;
  const std::string port = endpoint.substr(endpoint.rfind(':') + 1);
  const bool bare = address.find(':') != address.npos && !address.starts_with('[');
  endpoint = bare ? fmt::format("[{}]:{}", address, port) : fmt::format("{}:{}", address, port);
}

/// Returns a report as one of its node: with the node's id in place of its number, and the address
/// by which its agent is reached.
Report as_of_node(const Report& report, NodeId node, const std::string& address) {
  Report own = report;
  own.from.node = node;
  const auto name_node = [&](AttemptReport& attempt) {
    if (attempt.end && attempt.end->blame.node.valid()) attempt.end->blame.node = node;
    if (!attempt.replica) return;
    place_at(attempt.replica->endpoint, address);
    place_at(attempt.replica->kv_events, address);
  };
  if (auto* one = std::get_if<AttemptReport>(&own.what)) name_node(*one);
  if (auto* hello = std::get_if<Hello>(&own.what)) {
    for (NumberedReport& each : hello->attempts) name_node(each.report);
  }
  return own;
}

}  // namespace

AgentSessions::AgentSessions(const Env& env, const Log& log, Options options)
    : log_(log),
      state_(options.state),
      clock_(options.clock),
      lent_(std::move(options.lent)),
      counts_(options.counts),
      cluster_(options.cluster),
      keys_(std::move(options.keys)),
      agents_(*state_.setup().topology),
      commands_(agents_, env.entropy),
      logs_(env, state_, agents_),
      launches_(std::move(options.step_key)) {
  number_nodes();
}

std::string AgentSessions::name_of(NodeId node) const {
  return state_.setup().topology->node_name(node);
}

void AgentSessions::open(const AgentOpening& opening, AgentSession& session) {
  if (!opening.key.hash.empty() && agents_.node_named(opening.node)) {
    if (Status held = keys_.admit(opening.node, opening.key); !held) {
      return refuse(opening, held.error(), session);
    }
  }
  const Result<NodeId> node = admit(opening, session);
  launches_.forget();
  if (!node) {
    log_refused(opening, node.error());
    const bool for_good = node.error().kind == ErrorKind::kInput;
    return for_good ? session.replace(node.error()) : session.close(node.error());
  }
  commands_.lose(*node, opening.node);  // commands of an earlier stream of the node
  log_.info(clock_.wall(), "agent connected",
            {{"node", opening.node},
             {"address", opening.address},
             {"version", opening.version},
             {"boot", fmt::format("{:016x}", opening.boot)}});
  session.send(AgentWelcome{.cluster = cluster_, .node = NodeId(state_.node(*node).number)});
}

Result<NodeId> AgentSessions::admit(const AgentOpening& opening, AgentSession& session) {
  if (const std::optional<NodeId> node = agents_.node_named(opening.node); node && lent_.admit) {
    if (Status admitted = lent_.admit(*node, opening); !admitted) return forward_error(admitted);
  }
  return agents_.open(opening, session, clock_.now());
}

void AgentSessions::note(const NodeLent& event) {
  AgentSession* session = agents_.of(event.node).session;
  const bool over = event.managed && event.hold.empty() && event.health == NodeHealth::kAbsent;
  if (session == nullptr || !over) return;
  session->replace({ErrorKind::kInput, std::string(kNodeNotLent), {}});
}

/// Refuses an agent; one whose certificate no longer holds the node is told not to reconnect.
void AgentSessions::refuse(const AgentOpening& opening, const Error& why, AgentSession& session) {
  if (why.kind != ErrorKind::kInput) {
    log_refused(opening, why);
    return session.close(why);
  }
  const Instant now = clock_.now();
  agents_.refuse(opening, {opening.address, why.message, now, now, 1, true});
  log_refused(opening, why);
  session.replace(why);
}

/// Logs a refused agent once while it keeps retrying, and once when it is told not to reconnect.
void AgentSessions::log_refused(const AgentOpening& opening, const Error& why) {
  const std::optional<NodeId> node = agents_.node_named(opening.node);
  const RefusedAgent* refused = nullptr;
  if (node && agents_.of(*node).refused) refused = &*agents_.of(*node).refused;
  const bool again = refused != nullptr && refused->why == why.message && refused->times > 1;
  if (again && !refused->final) return;
  log_.warning(clock_.wall(), "agent refused",
               {{"node", opening.node}, {"address", opening.address}, {"why", why.message}});
}

void AgentSessions::close(const AgentSession& session) {
  if (const std::optional<NodeId> node = agents_.close(session)) {
    const std::string name = name_of(*node);
    log_.warning(clock_.wall(), "agent disconnected", {{"node", name}});
    commands_.lose(*node, name);
  }
}

std::optional<Report> AgentSessions::receive(NodeId number, const AgentMessage& message) {
  const auto found = numbered_.find(number.value());
  if (found == numbered_.end()) return std::nullopt;  // the node was retired
  const NodeId node = found->second;
  agents_.note(node, clock_.now());
  if (const auto* report = std::get_if<Report>(&message)) {
    const std::optional<AgentOpening>& opening = agents_.of(node).opening;
    if (report->from.node == number) {
      return as_of_node(*report, node, opening ? opening->address : "");
    }
  } else if (const auto* part = std::get_if<AttemptLogPart>(&message)) {
    if (const auto foreign = logs_.take(node, *part)) note_foreign(node, *foreign);
  } else if (const auto* kept = std::get_if<KeptLog>(&message)) {
    if (!logs_.keep(node, *kept)) note_foreign(node, kept->attempt);
  } else if (const auto* notes = std::get_if<AttemptNotes>(&message)) {
    if (logs_.had_part(node, notes->attempt)) {
      agents_.note(node, *notes);
    } else {
      note_foreign(node, notes->attempt);
    }
  } else if (const auto* reading = std::get_if<NodeReading>(&message)) {
    agents_.note(node, {*reading, clock_.wall()});
  } else if (const auto* output = std::get_if<ExecOutput>(&message)) {
    commands_.hear(node, *output);
  } else if (const auto* end = std::get_if<ExecEnd>(&message)) {
    commands_.hear(node, *end);
  } else if (const auto* ending = std::get_if<HoldEnding>(&message); ending && lent_.ends) {
    lent_.ends(node, *ending);
  }
  return std::nullopt;
}

/// Counts a report on ranks that the agent's node does not have. Logs the 1st, 2nd, 4th.. of a
/// node, so that a lying agent cannot fill the log.
void AgentSessions::note_foreign(NodeId node, const AttemptId& attempt) {
  const std::uint64_t times = ++counts_.foreign_reports[node];
  if (!std::has_single_bit(times)) return;
  log_.warning(clock_.wall(),
               "an agent spoke of ranks that its node does not have; it is not believed",
               {{"node", name_of(node)},
                {"job", attempt.job.value()},
                {"attempt", attempt.attempt},
                {"times", times}});
}

/// A newer launch is on its way where this one is dropped, and lost orders are resent.
void AgentSessions::send(const Order& order) {
  AgentSession* session = agents_.of(order.to.node).session;
  if (session == nullptr) return;
  Order sent = order;
  sent.to.node = NodeId(state_.node(order.to.node).number);
  const auto* launch = std::get_if<LaunchRanks>(&order.what);
  if (launch == nullptr) return session->send(NodeOrder{std::move(sent), {}});
  std::optional<NodeProgram> program = program_of(*launch, order.to.node);
  if (!program) return;
  logs_.note_launch(*launch, *program, order.to.node);
  session->send(NodeOrder{std::move(sent), *std::move(program)});
}

/// Returns none where the launch is not of the present epoch, or must wait for addresses.
std::optional<NodeProgram> AgentSessions::program_of(const LaunchRanks& launch, NodeId node) {
  const AttemptId id = launch.token.id;
  const Job& job = state_.job(id.job);
  const bool present =
      holds_devices(job.phase) && job.attempt == id.attempt && job.epoch == launch.token.epoch;
  if (!present) return std::nullopt;
  const JobSpec* spec = logs_.spec_of(id.job);
  if (spec == nullptr) return std::nullopt;
  return launches_.part(state_, *spec, {id.job, node}, [this](NodeId other) {
    const std::optional<AgentOpening>& opening = agents_.of(other).opening;
    return opening ? opening->address : std::string();
  });
}

Status AgentSessions::burn_in(NodeId node) {
  const std::string name = name_of(node);
  const NodeHealth health = state_.node(node).health;
  if (health != NodeHealth::kDrained && health != NodeHealth::kRepairing) {
    return infeasible(fmt::format("{} is {}: a burn-in needs a node that is drained and empty",
                                  name, word_of(health)));
  }
  AgentSession* session = agents_.of(node).session;
  if (session == nullptr) return infeasible(fmt::format("{} is not connected", name));
  session->send(BurnIn{});
  return {};
}

void AgentSessions::lose_commands(NodeId node) { commands_.lose(node, name_of(node)); }

void AgentSessions::use(const FleetMap& map) {
  launches_.forget();
  const Error retired{ErrorKind::kInput, "the node was retired from the fleet", {}};
  for (AgentSession* session : agents_.use(*state_.setup().topology, map)) {
    session->replace(retired);
  }
  commands_.use(map);
  number_nodes();
  logs_.use(map);
  std::map<NodeId, std::uint64_t> foreign;
  for (const auto& [node, times] : counts_.foreign_reports) {
    if (map.nodes[node.value()].valid()) foreign.emplace(map.nodes[node.value()], times);
  }
  counts_.foreign_reports = std::move(foreign);
}

void AgentSessions::number_nodes() {
  numbered_.clear();
  for (std::uint32_t n = 0; n < state_.setup().topology->node_count(); ++n) {
    numbered_.emplace(state_.node(NodeId(n)).number, NodeId(n));
  }
}

}  // namespace orrery
