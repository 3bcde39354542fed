// The controller's side of its agents: sessions, orders with their programs, changes of the fleet.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "base/format/field_writer.hpp"
#include "control/state/snapshot.hpp"
#include "executor/controller.hpp"
#include "node/keeper/keeper_launch.hpp"

namespace orrery {
namespace {

/// Returns the jobs that may have ranks on a node, ascending.
std::vector<JobId> jobs_left_on(const State& state, NodeId node) {
  const std::vector<JobId> holders = state.jobs_on(node);
  std::set<JobId> jobs(holders.begin(), holders.end());
  for (const Ghost& ghost : state.ghosts()) {
    if (ghost.at.node == node) jobs.insert(ghost.job);
  }
  return {jobs.begin(), jobs.end()};
}

}  // namespace

// --- Sessions -----------------------------------------------------------------------------------

void Controller::open_session(const AgentOpening& opening, AgentSession& session) {
  if (!opening.key.hash.empty() && agents_->node_named(opening.node)) {
    if (Status held = agent_keys_->admit(opening.node, opening.key); !held) {
      return refuse_agent(opening, held.error(), session);
    }
  }
  const Result<NodeId> node = agents_->open(opening, session, now());
  launches_.forget();
  if (!node) {
    log_refused(opening, node.error());
    const bool for_good = node.error().kind == ErrorKind::kInput;
    return for_good ? session.replace(node.error()) : session.close(node.error());
  }
  commands_->lose(*node, opening.node);  // commands of an earlier stream of the node
  log_.info(wall(), "agent connected",
            {{"node", opening.node},
             {"address", opening.address},
             {"version", opening.version},
             {"boot", fmt::format("{:016x}", opening.boot)}});
  session.send(AgentWelcome{.cluster = cluster_, .node = NodeId(state().node(*node).number)});
}

void Controller::compare_fleet(const Topology& file) {
  const Topology& own = *state().setup().topology;
  fleet_difference_ = {};
  std::set<std::string> named;
  for (std::uint32_t n = 0; n < file.node_count(); ++n) {
    const std::string& name = *named.insert(file.node_name(NodeId(n))).first;
    if (!agents_->node_named(name)) fleet_difference_.unknown.push_back(name);
  }
  for (std::uint32_t n = 0; n < own.node_count(); ++n) {
    const std::string& name = own.node_name(NodeId(n));
    if (!named.contains(name)) fleet_difference_.missing.push_back(name);
  }
  const auto& [unknown, missing] = fleet_difference_;
  if (unknown.empty() && missing.empty()) return;
  log_.warning(wall(), "fleet.yaml names other nodes than the cluster was begun with",
               {{"not_in_the_cluster", fmt::format("{}", fmt::join(unknown, ","))},
                {"not_in_the_file", fmt::format("{}", fmt::join(missing, ","))}});
}

void Controller::note_file_change(std::string change) {
  if (file_changes_.size() < kFileChangesMax) file_changes_.push_back(std::move(change));
}

void Controller::note_operator(std::string_view what, const std::string& by, LogField of) {
  decisions_->info(what, {{"by", by}, of});
}

/// Refuses an agent; one whose certificate no longer holds the node is told not to reconnect.
void Controller::refuse_agent(const AgentOpening& opening, const Error& why,
                              AgentSession& session) {
  if (why.kind != ErrorKind::kInput) {
    log_refused(opening, why);
    return session.close(why);
  }
  agents_->refuse(opening, {opening.address, why.message, now(), now(), 1, true});
  log_refused(opening, why);
  session.replace(why);
}

/// Logs a refused agent once while it keeps retrying, and once when it is told not to reconnect.
void Controller::log_refused(const AgentOpening& opening, const Error& why) {
  const std::optional<NodeId> node = agents_->node_named(opening.node);
  const RefusedAgent* refused = nullptr;
  if (node && agents_->of(*node).refused) refused = &*agents_->of(*node).refused;
  const bool again = refused != nullptr && refused->why == why.message && refused->times > 1;
  if (again && !refused->final) return;
  log_.warning(wall(), "agent refused",
               {{"node", opening.node}, {"address", opening.address}, {"why", why.message}});
}

Status Controller::burn_in(NodeId node) {
  const std::string& name = state().setup().topology->node_name(node);
  const NodeHealth health = state().node(node).health;
  if (health != NodeHealth::kDrained && health != NodeHealth::kRepairing) {
    return infeasible(fmt::format("{} is {}: only a machine that is drained and empty is tried out",
                                  name, word_of(health)));
  }
  AgentSession* session = agents_->of(node).session;
  if (session == nullptr) return infeasible(fmt::format("{} is not connected", name));
  session->send(BurnIn{});
  return {};
}

void Controller::close_session(const AgentSession& session) {
  if (const std::optional<NodeId> node = agents_->close(session)) {
    const std::string& name = state().setup().topology->node_name(*node);
    log_.warning(wall(), "agent disconnected", {{"node", name}});
    commands_->lose(*node, name);
  }
}

void Controller::receive(NodeId number, const AgentMessage& message) {
  const auto found = numbered_.find(number.value());
  if (found == numbered_.end()) return;  // the node was retired
  const NodeId node = found->second;
  agents_->note(node, now());
  if (const auto* report = std::get_if<Report>(&message)) {
    if (report->from.node == number) take_in(node, *report);
  } else if (const auto* part = std::get_if<AttemptLogPart>(&message)) {
    if (const auto foreign = logs_->take(node, *part)) note_foreign(node, *foreign);
  } else if (const auto* kept = std::get_if<KeptLog>(&message)) {
    if (!logs_->keep(node, *kept)) note_foreign(node, kept->attempt);
  } else if (const auto* notes = std::get_if<AttemptNotes>(&message)) {
    if (!logs_->had_part(node, notes->attempt)) return note_foreign(node, notes->attempt);
    agents_->note(node, *notes);
  } else if (const auto* reading = std::get_if<NodeReading>(&message)) {
    agents_->note(node, {*reading, env_.clock.now_wall()});
  } else if (const auto* output = std::get_if<ExecOutput>(&message)) {
    commands_->hear(node, *output);
  } else if (const auto* end = std::get_if<ExecEnd>(&message)) {
    commands_->hear(node, *end);
  }
}

/// Takes in a report, in which the agent names its node by its number.
void Controller::take_in(NodeId node, const Report& report) {
  const bool halted = !host_->halted_by().empty();
  Report own = report;
  own.from.node = node;
  const auto name_node = [&](AttemptReport& attempt) {
    if (attempt.end && attempt.end->blame.node.valid()) attempt.end->blame.node = node;
  };
  if (auto* one = std::get_if<AttemptReport>(&own.what)) name_node(*one);
  if (auto* hello = std::get_if<Hello>(&own.what)) {
    for (NumberedReport& each : hello->attempts) name_node(each.report);
  }
  if (options_.lost_jobs == ControlHost::LostJobs::kEnd) end_unknown(own);
  host_->deliver(own, now());
  if (!halted && !host_->halted_by().empty()) {
    log_.error(env_.clock.now_wall(), "halted", {{"why", this->halted()}});
  }
  schedule();
}

/// Counts a report on ranks that the agent's node does not have. Logs the 1st, 2nd, 4th.. of a
/// node, so that a lying agent cannot fill the log.
void Controller::note_foreign(NodeId node, const AttemptId& attempt) {
  const std::uint64_t times = ++counts_.foreign_reports[node];
  if (!std::has_single_bit(times)) return;
  log_.warning(wall(), "an agent spoke of ranks that its node does not have; it is not believed",
               {{"node", state().setup().topology->node_name(node)},
                {"job", attempt.job.value()},
                {"attempt", attempt.attempt},
                {"times", times}});
}

/// Makes sure that numbers of unknown jobs are not given out before their ranks are ended.
void Controller::end_unknown(const Report& report) {
  for (const UnknownRanks& each : host_->unknown_in(report)) {
    if (std::find(ended_unknown_.begin(), ended_unknown_.end(), each) != ended_unknown_.end()) {
      continue;
    }
    ended_unknown_.push_back(each);
    const std::uint64_t job = each.attempt.job.value();
    log_.warning(env_.clock.now_wall(), "ranks of a lost job are ended",
                 {{"job", job},
                  {"attempt", each.attempt.attempt},
                  {"node", state().setup().topology->node_name(each.node)}});
    const std::uint64_t next = setup_->control().next_job(state().jobs());
    // A lost part of a log gave out fewer numbers; larger numbers are taken for an agent's
    // invention.
    constexpr std::uint64_t kLostMax = 1'000'000;
    if (job < next || job - next > kLostMax) continue;
    const StoreTexts added = setup_->lose_jobs({next, job + 1});
    commits_->put_texts(added);
    if (record_ != nullptr) look_at_record(record_->put_texts(added));
  }
}

// --- Orders -------------------------------------------------------------------------------------

/// Sends an order. A launch leaves only if the state is still in its epoch, because its program
/// holds the present places of the gangs. A newer launch is on its way, and lost orders are resent.
void Controller::send(const Order& order) {
  AgentSession* session = agents_->of(order.to.node).session;
  if (session == nullptr) return;
  Order sent = order;
  sent.to.node = NodeId(state().node(order.to.node).number);
  const auto* launch = std::get_if<LaunchRanks>(&order.what);
  if (launch == nullptr) return session->send(NodeOrder{std::move(sent), {}});
  const AttemptId id = launch->token.id;
  const Job& job = state().job(id.job);
  const bool present =
      holds_devices(job.phase) && job.attempt == id.attempt && job.epoch == launch->token.epoch;
  if (!present) return;
  const JobSpec* spec = logs_->spec_of(id.job);
  if (spec == nullptr) return;
  std::optional<NodeProgram> program =
      launches_.part(state(), *spec, {id.job, order.to.node}, [this](NodeId node) {
        const std::optional<AgentOpening>& opening = agents_->of(node).opening;
        return opening ? opening->address : std::string();
      });
  if (!program) return;
  logs_->note_launch(*launch, *program, order.to.node);
  session->send(NodeOrder{std::move(sent), *std::move(program)});
}

// --- Changes of the fleet -----------------------------------------------------------------------

const std::string& Controller::fleet_text() const {
  const std::string& changed = state().setup().fleets.text;
  return changed.empty() ? begun_with().fleet : changed;
}

/// Returns what would change. Errors: the new fleet does not fit the present one, whatever jobs
/// run.
Result<FleetChange> Controller::fleet_change(const std::string& yaml) const {
  const ControlSetup& setup = state().setup();
  const Result<const ControlSetup*> next = setup.fleets.source(yaml);
  if (!next) return tl::unexpected(next.error());
  const Result<FleetMap> map = fleet_map(*setup.topology, *(*next)->topology);
  if (!map) return tl::unexpected(map.error());
  FleetChange change;
  for (const NodeId node : map->added()) {
    change.added.push_back((*next)->topology->node_name(node));
  }
  for (const NodeId node : map->retired()) {
    change.retired.push_back(setup.topology->node_name(node));
    std::vector<JobId> jobs = jobs_left_on(state(), node);
    if (!jobs.empty()) change.busy.push_back({change.retired.back(), std::move(jobs)});
  }
  return change;
}

void Controller::apply_fleet(const std::string& yaml, FleetApply how, const std::string& request_id,
                             Answered<FleetChange> answered) {
  if (std::string why = halted(); !why.empty()) {
    return answered(tl::unexpected(Error{ErrorKind::kEnvironment, std::move(why), {}}));
  }
  Result<FleetChange> change = fleet_change(yaml);
  bool fits = change && change->busy.empty();
  if (fits) {
    Status checked = check_change(state(), **state().setup().fleets.source(yaml));
    fits = checked.has_value();
    if (!fits) change = forward_error(checked);
  }
  if (!fits || how == FleetApply::kDryRun) return answered(std::move(change));
  change->applied = true;
  if (yaml == fleet_text()) {
    return after_durable(
        [change = *std::move(change), answered = std::move(answered)] { answered(change); });
  }
  const Topology& before = *state().setup().topology;
  const FleetMap map = *fleet_map(before, *(*state().setup().fleets.source(yaml))->topology);
  for (const NodeId node : map.retired()) commands_->lose(node, before.node_name(node));
  host_->drop_orders();
  handle(SetFleet{yaml}, request_id,
         [change = *std::move(change), answered = std::move(answered)](const Answer& answer) {
           if (!answer.status) return answered(tl::unexpected(answer.status.error()));
           answered(change);
         });
  if (fleet_text() == yaml) {
    use_fleet(map);
    setup_->renewal().add_waiting(state());
  }
  schedule();
}

/// Makes everything beside the state that has ids of the fleet follow a change.
void Controller::use_fleet(const FleetMap& map) {
  ++fleets_;
  launches_.forget();
  setup_->use(state(), fleets_);
  const ControlSetup& setup = state().setup();
  const Error retired{ErrorKind::kInput, "the node was retired from the fleet", {}};
  for (AgentSession* session : agents_->use(*setup.topology, map)) session->replace(retired);
  commands_->use(map);
  number_nodes();
  host_->renew_link(now());
  beside_.run([this, tree = setup.tree] { passes_.emplace(*tree); });
  // Behind the searches and passes on the fleet of before, which need its facts.
  searches_.run([this, change = fleets_] {
    beside_.run([this, change] { env_.post([this, change] { setup_->forget_left(change); }); });
  });
  logs_->use(map);
  std::map<NodeId, std::uint64_t> foreign;
  for (const auto& [node, times] : counts_.foreign_reports) {
    if (map.nodes[node.value()].valid()) foreign.emplace(map.nodes[node.value()], times);
  }
  counts_.foreign_reports = std::move(foreign);
  fleet_difference_ = {};
  log_.info(wall(), "fleet changed",
            {{"added", map.added().size()}, {"retired", map.retired().size()}});
}

void Controller::number_nodes() {
  numbered_.clear();
  for (std::uint32_t n = 0; n < state().setup().topology->node_count(); ++n) {
    numbered_.emplace(state().node(NodeId(n)).number, NodeId(n));
  }
}

}  // namespace orrery
