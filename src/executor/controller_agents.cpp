// The controller's side of its agents: sessions, orders with their programs, logs.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "base/document.hpp"
#include "base/field_writer.hpp"
#include "executor/controller.hpp"
#include "executor/node_program.hpp"
#include "node/keeper_launch.hpp"
#include "node/step_secret.hpp"

namespace orrery {
namespace {

constexpr std::size_t kRanOnMax = 100'000;  ///< most ranks whose node is remembered
constexpr std::size_t kKeptLogBytesMax = std::size_t{64} << 20;
constexpr Duration kLogPatience = Duration::seconds(5);

/// Whether a job has one process on each node, however many devices it has there.
bool has_one_a_node(const JobSpec* spec) {
  return spec != nullptr &&
         (spec->launch->per == LaunchUnit::kNode || spec->software.framework == "slurm");
}

/// Returns the node of a rank; ranks count the processes of a gang in order.
std::optional<NodeId> node_of_rank(const Job& job, const LogQuestion& of, const JobSpec* spec) {
  if (of.gang >= job.placed.size()) return std::nullopt;
  const bool one_a_node = has_one_a_node(spec);
  std::uint32_t first = 0;
  for (const NodeDevices& at : job.placed[of.gang]) {
    first += one_a_node ? 1 : static_cast<std::uint32_t>(std::popcount(at.devices));
    if (of.rank < first) return at.node;
  }
  return std::nullopt;
}

/// Returns the ranks of a share: one for each device, or one for the node if it has one process.
std::vector<std::uint32_t> ranks_of(const RankShare& share, const NodeProgram& program) {
  const bool one_a_node = program.per == LaunchUnit::kNode || program.framework == "slurm";
  if (!one_a_node) return share.ranks;
  return {layout_of(share.gang, program.gangs).here};
}

/// Returns the log from byte `from` on; if that part is gone, from the first byte that is left.
LogPart part_from(const LogPart& kept, std::uint64_t from) {
  const std::uint64_t end = kept.from + kept.bytes.size();
  if (from == kFromTail) from = kept.from;
  from = std::clamp(from, kept.from, end);
  return {from, kept.bytes.substr(static_cast<std::size_t>(from - kept.from))};
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
    const auto asked = log_waits_.find(part->id);
    if (asked == log_waits_.end()) return;  // the answer came too late
    if (asked->second.node != node) return note_foreign(node, asked->second.asked.attempt);
    answer_log({*part, LogSource::kNode});
  } else if (const auto* kept = std::get_if<KeptLog>(&message)) {
    if (!wrote_log(node, {kept->attempt, kept->gang, kept->rank})) {
      return note_foreign(node, kept->attempt);
    }
    keep_log(*kept);
  } else if (const auto* notes = std::get_if<AttemptNotes>(&message)) {
    if (!had_part(node, notes->attempt)) return note_foreign(node, notes->attempt);
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

/// Whether a rank of an attempt was placed on a node, now or by its last order.
bool Controller::wrote_log(NodeId node, const LogKey& rank) {
  if (node_of({.attempt = rank.attempt, .what = {rank.gang, rank.rank, 0}}) == node) return true;
  const auto found = ran_on_.find(rank);  // rank of an earlier epoch
  return found != ran_on_.end() && found->second == node;
}

/// Whether ranks of an attempt are on a node, or were before it was resized.
bool Controller::had_part(NodeId node, const AttemptId& attempt) const {
  const auto here = [node](const NodeDevices& at) { return at.node == node; };
  if (state().has(attempt.job) && state().job(attempt.job).attempt == attempt.attempt) {
    for (const std::vector<NodeDevices>& gang : state().job(attempt.job).placed) {
      if (std::any_of(gang.begin(), gang.end(), here)) return true;
    }
  }
  for (auto at = ran_on_.lower_bound({attempt, 0, 0});
       at != ran_on_.end() && at->first.attempt == attempt; ++at) {
    if (at->second == node) return true;
  }
  return false;
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

const JobSpec* Controller::spec_of(JobId job) {
  if (last_spec_ && last_spec_->first == job) return &last_spec_->second;
  const Result<Document> document = Document::parse(state().job(job).spec, "the job's spec");
  if (!document) return nullptr;
  Result<JobSpec> spec = read_job_spec(*document);
  if (!spec || !spec->launch) return nullptr;
  last_spec_.emplace(job, *std::move(spec));
  return &last_spec_->second;
}

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
  const JobSpec* spec = spec_of(id.job);
  if (spec == nullptr) return;
  std::optional<NodeProgram> program =
      node_program(state(), *spec, {id.job, order.to.node}, [this](NodeId node) {
        const std::optional<AgentOpening>& opening = agents_->of(node).opening;
        return opening ? opening->address : std::string();
      });
  if (!program) return;
  if (program->framework == "slurm") {
    program->environment.emplace_back(kStepSecretVariable, step_secret(step_key_, id));
  }
  for (const RankShare& share : launch->shares) {
    for (const std::uint32_t rank : ranks_of(share, *program)) {
      ran_on_.insert_or_assign(LogKey{id, share.gang, rank}, order.to.node);
    }
  }
  while (ran_on_.size() > kRanOnMax) ran_on_.erase(ran_on_.begin());
  session->send(NodeOrder{std::move(sent), *std::move(program)});
}

// --- Logs ---------------------------------------------------------------------------------------

void Controller::keep_log(KeptLog log) {
  const LogKey key{log.attempt, log.gang, log.rank};
  const auto [at, is_new] = kept_logs_.try_emplace(key);
  if (is_new) kept_order_.push_back(key);
  kept_bytes_ = kept_bytes_ - at->second.bytes.size() + log.part.bytes.size();
  at->second = std::move(log.part);
  while (kept_bytes_ > kKeptLogBytesMax) {
    const auto oldest = kept_logs_.find(kept_order_.front());
    kept_bytes_ -= oldest->second.bytes.size();
    kept_logs_.erase(oldest);
    kept_order_.pop_front();
  }
}

Controller::LogAnswer Controller::kept_log(const LogAsked& asked, LogSource otherwise) const {
  const auto found = kept_logs_.find({asked.attempt, asked.what.gang, asked.what.rank});
  if (found == kept_logs_.end()) return {{}, otherwise};
  const LogPart& kept = found->second;
  // If the node answered that it has no log, the rest is gone; otherwise it may come back.
  return {{0, true, kept.from + kept.bytes.size(), part_from(kept, asked.what.from)},
          otherwise == LogSource::kNode ? LogSource::kKept : otherwise};
}

std::optional<NodeId> Controller::node_of(const LogAsked& asked) {
  // The newest attempt's place is in the state, even after a start of the controller.
  const JobId id = asked.attempt.job;
  if (state().has(id) && state().job(id).attempt == asked.attempt.attempt) {
    const Job& job = state().job(id);
    // Rank 0 is on the first node in either case, and reading a spec is expensive.
    const bool needs_spec = asked.what.rank > 0 && !job.spec.empty();
    return node_of_rank(job, asked.what, needs_spec ? spec_of(id) : nullptr);
  }
  const auto found = ran_on_.find({asked.attempt, asked.what.gang, asked.what.rank});
  return found == ran_on_.end() ? std::nullopt : std::optional(found->second);
}

void Controller::ask_log(const LogAsked& asked, LogAnswered answered) {
  const std::optional<NodeId> node = node_of(asked);
  AgentSession* session = node ? agents_->of(*node).session : nullptr;
  if (session == nullptr) return answered(kept_log(asked, LogSource::kAbsent));
  const std::uint64_t number = ++log_numbers_;
  const TimerId timer = env_.timers.call_after(kLogPatience, [this, number] {
    answer_log({{.id = number, .found = false, .size = 0, .part = {}}, LogSource::kSilent});
  });
  log_waits_.emplace(number, LogWait{asked, *node, std::move(answered), timer});
  session->send(AttemptLogQuestion{number, asked.attempt, asked.what, asked.since});
}

void Controller::answer_log(const LogAnswer& answer) {
  const auto found = log_waits_.find(answer.part.id);
  if (found == log_waits_.end()) return;
  const LogWait wait = std::move(found->second);
  log_waits_.erase(found);
  env_.timers.cancel(wait.timer);
  wait.answered(answer.part.found ? answer : kept_log(wait.asked, answer.source));
}

std::vector<Controller::LogPlace> Controller::log_places(const AttemptId& attempt) {
  std::vector<LogPlace> places;
  if (!state().has(attempt.job)) return places;
  const Job& job = state().job(attempt.job);
  if (job.attempt != attempt.attempt) {
    for (auto at = ran_on_.lower_bound({attempt, 0, 0});
         at != ran_on_.end() && at->first.attempt == attempt; ++at) {
      places.push_back({at->first.gang, at->first.rank, at->second});
    }
    return places;
  }
  places = rank_places(attempt.job);
  // The other ranks of a script hold nodes for its steps, and have no output.
  const JobSpec* spec = job.spec.empty() ? nullptr : spec_of(attempt.job);
  const bool script = spec != nullptr && spec->software.framework == "slurm";
  if (script && places.size() > 1) places.resize(1);
  return places;
}

std::vector<Controller::LogPlace> Controller::rank_places(JobId id) {
  std::vector<LogPlace> places;
  const Job& job = state().job(id);
  const JobSpec* spec = job.spec.empty() ? nullptr : spec_of(id);
  const bool one_a_node = has_one_a_node(spec);
  for (std::uint32_t gang = 0; gang < job.placed.size(); ++gang) {
    std::uint32_t rank = 0;
    for (const NodeDevices& at : job.placed[gang]) {
      const auto devices = static_cast<std::uint32_t>(std::popcount(at.devices));
      const std::uint32_t here = one_a_node ? 1 : devices;
      for (std::uint32_t i = 0; i < here; ++i) places.push_back({gang, rank + i, at.node});
      rank += here;
    }
  }
  return places;
}

}  // namespace orrery
