#include "api/views.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>

#include "agent/launch_plan.hpp"
#include "api/agents/agent_messages.hpp"
#include "api/event_selection.hpp"
#include "api/hold_service.hpp"
#include "api/jobs/job_notes.hpp"
#include "base/format/field_writer.hpp"
#include "base/text/count_text.hpp"
#include "control/codec/codec.hpp"
#include "control/state/snapshot.hpp"
#include "scheduler/explain/explain.hpp"

namespace orrery {
namespace {

constexpr double kJoulesPerKwh = 3.6e6;
constexpr double kGramsPerKg = 1000;
constexpr std::int64_t kNanoseconds = 1'000'000'000;

v1::JobBill bill_view(const JobUsage& usage, const Topology& topology) {
  v1::JobBill bill;
  bill.set_waited_s(usage.waited.count_seconds());
  bill.set_accelerator_hours(device_hours(usage.devices.total()));
  for (const auto& [type, time] : usage.devices.entries) {
    v1::TypeHours& hours = *bill.add_accelerator_hours_by_type();
    hours.set_accelerator(type == kAllTypes ? "unknown" : topology.accelerator(type).id);
    hours.set_hours(device_hours(time));
  }
  bill.set_lost_accelerator_hours(device_hours(usage.lost));
  bill.set_idle_accelerator_hours(device_hours(usage.idle));
  bill.set_energy_kwh(usage.joules / kJoulesPerKwh);
  bill.set_cost_usd(usage.dollars);
  bill.set_electricity_usd(usage.electricity);
  bill.set_egress_usd(usage.egress);
  bill.set_co2_kg(usage.co2_grams / kGramsPerKg);
  bill.set_preemptions(usage.preemptions);
  bill.set_faults(usage.faults);
  bill.set_program_faults(usage.program_faults);
  return bill;
}

std::string blame_text(const Blame& blame, const Topology& topology) {
  if (blame.layer == FaultLayer::kNone) return blame.evidence;
  std::string text(word_of(blame.layer));
  if (blame.node.valid()) text += " of " + topology.node_name(blame.node);
  return blame.evidence.empty() ? text : text + ": " + blame.evidence;
}

/// Returns "waits for job 3 (prep) to finish and job 4 (load) to end".
std::string dependencies_text(const State& state, const Job& job) {
  constexpr std::size_t kNamed = 3;
  const Submission& asked = *job.submission;
  std::vector<std::string> named;
  const auto add = [&](const std::vector<JobId>& jobs, std::string_view end) {
    for (const JobId id : jobs) {
      if (named.size() == kNamed) return;
      if (!state.has(id) || state.dependency(asked, id) != Dependency::kOpen) continue;
      named.push_back(fmt::format("job {} ({}) to {}", id.value(), state.job(id).name, end));
    }
  };
  add(asked.after, "finish");
  add(asked.after_any, "end");
  add(asked.after_notok, "fail");
  const std::size_t left = job.waiting_for - std::min<std::size_t>(job.waiting_for, named.size());
  if (left > 0) named.push_back(fmt::format("{} more", left));
  return fmt::format("waits for {}", fmt::join(named, " and "));
}

std::string held_text(const State& state, const Job& job, Instant now) {
  if (job.hold == JobHold::kResting) return "rests until a request comes";
  if (job.hold != JobHold::kNone) {
    return fmt::format("is held by {}; `orrery release {}` releases it",
                       job.hold == JobHold::kOwner ? "its owner" : "an operator", job.id.value());
  }
  if (job.waiting_for > 0) return dependencies_text(state, job);
  if (job.not_before > now) {
    return fmt::format("restarts in {:.0f} s after a failure of its program",
                       (job.not_before - now).count_seconds());
  }
  return "waits for its turn in the array";
}

constexpr std::string_view kBeforeItsPass = "waits for the next pass";

std::string queued_text(const Controller& controller, JobId id) {
  for (const StillWaits& waits : controller.host().core().still_waiting()) {
    if (waits.job != id) continue;
    return controller.fleet().why_never(id).value_or(refusal_text(waits.refusal));
  }
  return std::string(kBeforeItsPass);
}

/// Names the lost nodes that may still run ranks of a stopping job.
std::string lost_nodes_text(const State& state, JobId id) {
  const Topology& topology = *state.setup().topology;
  std::vector<std::string> lost;
  const auto add = [&](NodeId node) {
    const std::string& name = topology.node_name(node);
    const bool known = std::find(lost.begin(), lost.end(), name) != lost.end();
    if (!known && state.node(node).health == NodeHealth::kLost) lost.push_back(name);
  };
  for (const PlacedGang& gang : state.running(id).gangs) {
    for (const NodeDevices& at : gang.allocation.ranks) add(at.node);
  }
  for (const Ghost& ghost : state.ghosts()) {
    if (ghost.job == id) add(ghost.at.node);
  }
  if (lost.empty()) return {};
  return fmt::format(
      "waits until {0}, where its ranks may still run, reconnects; once {1} is switched off, "
      "`orrery node fence {2}` lets the job continue",
      fmt::join(lost, " and "), lost.size() == 1 ? "that node" : "each node", lost.front());
}

std::string waiting_text(const Controller& controller, const Job& job) {
  if (job.phase == JobPhase::kStopping) return lost_nodes_text(controller.state(), job.id);
  if (job.phase == JobPhase::kHeld) return held_text(controller.state(), job, controller.now());
  if (job.phase == JobPhase::kQueued) return queued_text(controller, job.id);
  return {};
}

void add_parts(const Controller& controller, const Job& job, v1::Job& view) {
  const State& state = controller.state();
  const Topology& topology = *state.setup().topology;
  const RunningJob& run = state.running(job.id);
  std::uint32_t accelerators = 0;
  for (const NodeRanks& node : launch_plan(state, job.id).nodes) {
    for (const RankShare& share : node.shares) {
      v1::JobPart& part = *view.add_parts();
      const auto count = static_cast<std::uint32_t>(std::popcount(share.devices));
      part.set_node(topology.node_name(node.node));
      part.set_accelerator(topology.accelerator(topology.group(node.node).type).id);
      part.set_accelerators(count);
      part.set_clock(share.clock);
      part.set_gang(share.gang);
      part.set_role(job.submission->request.roles[run.gangs[share.gang].role].name);
      for (const std::uint32_t rank : share.ranks) part.add_ranks(rank);
      accelerators += count;
    }
  }
  view.set_accelerators(accelerators);
}

std::uint32_t wanted_accelerators(const JobRequest& request) {
  std::uint32_t accelerators = 0;
  for (const RoleRequest& role : request.roles) accelerators += role.gangs * role.devices_max;
  return accelerators;
}

void add_progress(const Job& job, const AttemptNotes* notes, v1::Job& view) {
  v1::JobProgress& progress = *view.mutable_progress();
  progress.set_done(job.phase == JobPhase::kFinished ? 1 : job.done);
  if (notes == nullptr || notes->attempt.attempt != job.attempt) return;
  progress.set_step(notes->progress.step);
  progress.set_saved_step(notes->progress.saved_step);
  progress.set_tokens(notes->progress.tokens);
  progress.set_loss(notes->progress.loss);
  progress.set_checkpoint(notes->progress.checkpoint);
  for (const std::string& note : notes->notes) view.add_notes(note);
}

/// Counts the accelerators of the newest attempt.
std::uint32_t placed_accelerators(const Job& job) {
  std::uint32_t count = 0;
  for (const std::vector<NodeDevices>& gang : job.placed) {
    for (const NodeDevices& at : gang) {
      count += static_cast<std::uint32_t>(std::popcount(at.devices));
    }
  }
  return count;
}

void add_foreign(const NodeRecord::Foreign& foreign, v1::Node& view) {
  if (foreign.claim == ForeignClaim::kNone) return;
  view.set_foreign(foreign.who);
  const bool ends = foreign.until != Instant::max();
  if (ends) *view.mutable_foreign_until() = timestamp_of(foreign.until);
}

/// Adds why the node takes no jobs.
void add_causes(const NodeRecord& record, const Visibility& sees, v1::Node& view) {
  view.set_drain(record.drain);
  view.set_drain_why(record.drain_why);
  if (!sees.everything()) return;
  view.set_out_why(record.out_why);
  add_foreign(record.foreign, view);
}

void add_loan(const NodeRecord& record, v1::Node& view) {
  view.set_hold(record.loan.hold);
  const bool ends = record.loan.until != Instant::max();
  if (ends) *view.mutable_lent_until() = timestamp_of(record.loan.until);
}

/// Adds when the node takes no jobs: maintenance, and the end of its loan.
void add_windows(const State& state, NodeId id, v1::Node& view) {
  add_loan(state.node(id), view);
  for (const auto& [window, plan] : state.closed().windows()) {
    if (std::find(plan.nodes.begin(), plan.nodes.end(), id) == plan.nodes.end()) continue;
    v1::MaintenanceWindow& shown = *view.add_maintenance();
    *shown.mutable_from() = timestamp_of(plan.from);
    *shown.mutable_to() = timestamp_of(plan.to);
    shown.set_why(plan.why);
  }
}

/// Adds the clocks of the jobs on a node, where they differ from the full one.
void add_clocks(const State& state, NodeId id, const Visibility& sees, v1::Node& view) {
  for (const JobId job : state.jobs_on(id)) {
    if (!holds_devices(state.job(job).phase)) continue;
    const RunningJob& run = state.running(job);
    for (std::size_t g = 0; g < run.gangs.size() && g < run.terms.size(); ++g) {
      if (run.terms[g].clock >= 1) continue;
      for (const NodeDevices& at : run.gangs[g].allocation.ranks) {
        if (at.node != id) continue;
        v1::NodeClock& clock = *view.add_clocks();
        if (sees.job(job)) clock.set_job(job.value());
        clock.set_accelerators(static_cast<std::uint32_t>(std::popcount(at.devices)));
        clock.set_clock(run.terms[g].clock);
      }
    }
  }
}

void add_attempts(const State& state, const Job& job, v1::Job& view) {
  const Topology& topology = *state.setup().topology;
  for (const Attempt& attempt : job.attempts) {
    v1::JobAttempt& shown = *view.add_attempts();
    shown.set_number(attempt.number);
    *shown.mutable_started() = timestamp_of(attempt.started);
    if (attempt.running < Instant::max()) *shown.mutable_running() = timestamp_of(attempt.running);
    for (const NodeId node : attempt.nodes) shown.add_nodes(topology.node_name(node));
    if (attempt.stopped == Instant::max()) continue;
    *shown.mutable_stopped() = timestamp_of(attempt.stopped);
    shown.set_reason(std::string(word_of(attempt.reason)));
    shown.set_blame(blame_text(attempt.blame, topology));
    if (attempt.exit) {
      shown.set_exit_status(attempt.exit->status);
      shown.set_exit_rank(attempt.exit->rank);
    }
    const JobId other = attempt.in_favour_of;
    const bool own = other.valid() && state.has(other) && state.job(other).tenant == job.tenant;
    if (own) shown.set_in_favour_of(other.value());
  }
}

std::string refused_text(const RefusedAgent& refused, Instant now) {
  return fmt::format("{} refused {}, last {} ago: {}", refused.address,
                     refused.times == 1 ? "once" : fmt::format("{} times", refused.times),
                     Duration::seconds((now - refused.last).count_ns() / kNanoseconds).text(),
                     refused.why);
}

}  // namespace

Instant instant_of(const google::protobuf::Timestamp& at) {
  return Instant() + Duration::seconds(at.seconds()) + Duration::nanoseconds(at.nanos());
}

google::protobuf::Timestamp timestamp_of(Instant at) {
  const std::int64_t ns = (at - Instant()).count_ns();
  google::protobuf::Timestamp timestamp;
  timestamp.set_seconds(ns / kNanoseconds);
  timestamp.set_nanos(static_cast<std::int32_t>(ns % kNanoseconds));
  return timestamp;
}

namespace {

/// What the state alone has of a job.
v1::Job stated_view(const EndedJob& of) {
  const State& state = of.state;
  const Job& job = state.job(of.job);
  v1::Job view;
  view.set_id(job.id.value());
  view.set_name(job.name);
  view.set_tenant(state.tenants().path(job.tenant));
  view.set_submitter(job.submitter);
  view.set_run_as(job.run_as);
  view.set_phase(std::string(word_of(job.phase)));
  if (job.hold != JobHold::kNone) view.set_hold(std::string(word_of(job.hold)));
  view.set_attempt(job.attempt);
  view.set_epoch(job.epoch);
  *view.mutable_submitted() = timestamp_of(job.submitted);
  *view.mutable_since() = timestamp_of(job.since);
  if (job.first_start < Instant::max()) *view.mutable_started() = timestamp_of(job.first_start);
  if (ended(job.phase)) *view.mutable_ended() = timestamp_of(job.since);
  if (job.attempt > 0 && !holds_devices(job.phase)) {
    view.set_reason(std::string(word_of(job.stop)));
  }
  const std::optional<JobTerms> terms =
      job.submission != nullptr ? terms_of(job.submission->request) : job.terms;
  if (terms) {
    view.set_kind(std::string(word_of(terms->kind)));
    view.set_priority(terms->priority);
    if (terms->time_limit) view.set_time_limit_s(terms->time_limit->count_seconds());
    if (terms->estimate) view.set_estimate_s(terms->estimate->count_seconds());
  }
  if (job.submission != nullptr) {
    view.set_accelerators(wanted_accelerators(job.submission->request));
  } else {
    view.set_accelerators(placed_accelerators(job));
  }
  add_progress(job, of.notes, view);
  *view.mutable_bill() = bill_view(state.usage_of(job.id, of.now), *state.setup().topology);
  view.set_blame(blame_text(job.blame, *state.setup().topology));
  return view;
}

void add_text(const State& state, const Job& job, v1::Job& view) {
  view.set_spec(job.spec);
  add_attempts(state, job, view);
}

}  // namespace

v1::Job ended_job_view(const EndedJob& job) {
  v1::Job view = stated_view(job);
  add_text(job.state, job.state.job(job.job), view);
  return view;
}

v1::Job job_view(const Controller& controller, JobId id, JobDetail detail) {
  const State& state = controller.state();
  const Job& job = state.job(id);
  v1::Job view = stated_view({state, id, controller.now(), controller.agents().notes_of(id)});
  if (holds_devices(job.phase)) add_parts(controller, job, view);
  if (detail != JobDetail::kListed || job.phase != JobPhase::kQueued) {
    view.set_waiting(waiting_text(controller, job));
  }
  if (detail == JobDetail::kAll) {
    add_text(state, job, view);
    for (std::string& note : job_notes(controller, job)) view.add_notes(std::move(note));
  }
  return view;
}

void explain_waits(const Controller& controller, v1::ListJobsResponse& list) {
  const State& state = controller.state();
  auto& rows = *list.mutable_jobs();
  const auto queued = [&](const v1::Job& row) {
    const JobId id = JobId::at(row.id());
    return state.has(id) && state.job(id).phase == JobPhase::kQueued;
  };
  for (v1::Job& row : rows) {
    if (queued(row)) row.set_waiting(std::string(kBeforeItsPass));
  }
  for (const StillWaits& waits : controller.host().core().still_waiting()) {
    const auto row =
        std::lower_bound(rows.begin(), rows.end(), waits.job.value(),
                         [](const v1::Job& a, std::uint64_t id) { return a.id() > id; });
    if (row == rows.end() || row->id() != waits.job.value() || !queued(*row)) continue;
    row->set_waiting(controller.fleet().why_never(waits.job).value_or(refusal_text(waits.refusal)));
  }
}

v1::Node node_view(const Controller& controller, NodeId id, const Visibility& sees) {
  const State& state = controller.state();
  const Topology& topology = *state.setup().topology;
  const NodeRecord& record = state.node(id);
  const NodeGroup& group = topology.group(id);
  v1::Node view;
  view.set_name(topology.node_name(id));
  view.set_health(std::string(word_of(record.health)));
  view.set_accelerator(topology.accelerator(group.type).id);
  view.set_accelerators(group.devices);
  view.set_free(state.fleet().view().node(id).available());
  view.set_place(topology.path(topology.place(id).rack));
  for (const JobId job : state.jobs_on(id)) {
    if (sees.job(job)) {
      view.add_jobs(job.value());
    } else {
      view.set_other_jobs(view.other_jobs() + 1);
    }
  }
  view.set_spare(record.spare);
  add_causes(record, sees, view);
  view.set_lemon(record.lemon);
  view.set_faults(static_cast<std::uint32_t>(record.faults.size()));
  add_windows(state, id, view);
  add_clocks(state, id, sees, view);
  const Signals& signals = controller.host().link().signals(id);
  view.set_power_w(signals.power_w);
  view.set_temperature_c(signals.temperature_c);
  const AgentRecord& agent = controller.agents().of(id);
  view.set_connected(agent.session != nullptr);
  // It has the address of another machine.
  if (agent.refused && sees.everything()) {
    view.set_refused_agent(refused_text(*agent.refused, controller.now()));
  }
  if (agent.heard) {
    *view.mutable_reading() = to_proto(agent.heard->reading);
    // It may quote what a rank of another tenant wrote.
    const bool unwell = !agent.heard->reading.unwell.empty();
    if (unwell && !sees.everything()) view.mutable_reading()->set_unwell("unwell");
    *view.mutable_reading_at() = timestamp_of(agent.heard->at);
  }
  if (!agent.opening) return view;
  const NodeInventory& found = agent.opening->inventory;
  view.set_address(agent.opening->address);
  view.set_agent_user(agent.opening->user);
  view.set_job_users(std::string(word_of(agent.opening->job_users)));
  view.set_version(agent.opening->version);
  view.set_machine(found.machine);
  view.set_emulated(found.emulated);
  view.set_kernel(found.kernel);
  view.set_driver(found.driver);
  view.set_firmware(found.firmware);
  view.set_cores(found.cores);
  view.set_memory_bytes(found.memory_bytes);
  view.set_processor(found.processor);
  view.set_numa_nodes(found.numa_nodes);
  return view;
}

v1::PowerDomain power_view(const Controller& controller, PowerDomainId id) {
  const Topology& topology = *controller.state().setup().topology;
  const PowerDomain& domain = topology.power(id);
  const Situation now = controller.state().situation(controller.now());
  v1::PowerDomain view;
  view.set_name(topology.power_name(id));
  view.set_kind(std::string(word_of(domain.kind)));
  view.set_supply(domain.supply);
  view.set_most_w(domain.max_power.value());
  if (now.caps == nullptr) return view;
  if (const auto limit = now.caps->limit(id)) view.set_limit_w(limit->value());
  if (const auto cap = now.caps->cap(id)) view.set_cap_w(cap->value());
  view.set_planned_w(now.power->planned(id).value());
  view.set_idle_w(PowerBudget(now.power->tree()).planned(id).value());
  return view;
}

namespace {

/// Counts devices of jobs; a shared device counts once.
std::uint32_t devices_in_use(const State& state) {
  std::map<NodeId, std::uint64_t> held;
  for (const RunningJob& run : state.running()) {
    for (const PlacedGang& gang : run.gangs) {
      for (const NodeDevices& at : gang.allocation.ranks) held[at.node] |= at.devices;
    }
  }
  std::uint32_t devices = 0;
  for (const auto& [node, mask] : held) devices += static_cast<std::uint32_t>(std::popcount(mask));
  return devices;
}

void count_jobs(const State& state, const Visibility& sees, v1::Cluster& view) {
  if (sees.everything()) {
    view.set_jobs(state.jobs());
    view.set_jobs_running(state.running().size());
    view.set_jobs_waiting(state.waiting().size() + state.held());
    return;
  }
  std::uint64_t jobs = 0;
  std::uint64_t running = 0;
  std::uint64_t waiting = 0;
  for (const Job& job : state.all_jobs()) {
    if (!sees.job(job.id)) continue;
    ++jobs;
    if (holds_devices(job.phase)) ++running;
    if (job.phase == JobPhase::kQueued || job.phase == JobPhase::kHeld) ++waiting;
  }
  view.set_jobs(jobs);
  view.set_jobs_running(running);
  view.set_jobs_waiting(waiting);
}

}  // namespace

v1::Cluster cluster_view(const Controller& controller, const Visibility& sees) {
  const State& state = controller.state();
  const Topology& topology = *state.setup().topology;
  v1::Cluster view;
  view.set_name(topology.name());
  view.set_version(ORRERY_VERSION);
  view.set_nodes(topology.node_count());
  view.set_accelerators(topology.device_count());
  std::uint32_t ready = 0;
  std::uint32_t free = 0;
  for (std::uint32_t at = 0; at < topology.node_count(); ++at) {
    const NodeId id(at);
    if (state.node(id).health == NodeHealth::kReady) ++ready;
    free += state.fleet().view().node(id).available();
    const std::optional<AgentOpening>& agent = controller.agents().of(id).opening;
    if (agent && agent->inventory.emulated) view.set_emulated(true);
  }
  const auto& [unknown, missing] = controller.fleet().drift().nodes();
  view.mutable_unknown_nodes()->Add(unknown.begin(), unknown.end());
  view.mutable_missing_nodes()->Add(missing.begin(), missing.end());
  // The file of tenants has the quotas of all of them.
  if (sees.everything()) {
    const std::vector<std::string>& changes = controller.fleet().drift().lines();
    view.mutable_file_changes()->Add(changes.begin(), changes.end());
  }
  view.set_nodes_ready(ready);
  view.set_accelerators_free(free);
  const std::uint32_t in_use = devices_in_use(state);
  view.set_accelerators_in_use(in_use);
  view.set_accelerators_unavailable(topology.device_count() -
                                    std::min(topology.device_count(), free + in_use));
  count_jobs(state, sees, view);
  view.set_events(state.version());
  *view.mutable_started() = timestamp_of(controller.counts().since);
  view.set_policy(state.policy().name);
  view.set_state(fmt::format("{:016x}", digest_of(state)));
  view.set_halted(controller.host().halted());
  view.set_log_bytes(controller.store().room().bytes());
  view.set_log_warning(controller.store().room().warning());
  return view;
}

v1::ListTenantsResponse tenants_view(const Controller& controller, const Visibility& sees) {
  const State& state = controller.state();
  const TenantTree& tenants = state.tenants();
  v1::ListTenantsResponse view;
  std::vector<v1::Tenant> rows(tenants.size());
  std::vector<JobUsage> used(state.by_tenant().begin(), state.by_tenant().end());
  for (const Job& job : state.all_jobs()) {
    if (!ended(job.phase)) used[job.tenant.value()] += state.usage_of(job.id, controller.now());
  }
  for (std::uint32_t at = 0; at < tenants.size(); ++at) {
    rows[at].set_path(tenants.path(TenantId(at)));
    *rows[at].mutable_bill() = bill_view(used[at], *state.setup().topology);
  }
  for (const RunningJob& run : state.running()) {
    v1::Tenant& row = rows[state.job(run.id).tenant.value()];
    row.set_running(row.running() + 1);
    std::uint32_t accelerators = 0;
    for (const PlacedGang& gang : run.gangs) {
      for (const NodeDevices& at : gang.allocation.ranks) {
        accelerators += static_cast<std::uint32_t>(std::popcount(at.devices));
      }
    }
    row.set_accelerators(row.accelerators() + accelerators);
  }
  for (const WaitingJob& waiting : state.waiting()) {
    v1::Tenant& row = rows[state.job(waiting.id).tenant.value()];
    row.set_waiting(row.waiting() + 1);
  }
  for (v1::Tenant& row : rows) {
    if (row.path().empty() || !sees.tenant(row.path())) continue;
    *view.add_tenants() = std::move(row);
  }
  if (!sees.everything()) return view;
  for (v1::LentTime& time : lent_times(controller)) *view.add_lent() = std::move(time);
  return view;
}

std::string out_of_service_text(const State& state, const JobRequest& request,
                                const Visibility& sees) {
  constexpr std::size_t kNamed = 8;
  const Topology& topology = *state.setup().topology;
  std::set<FleetTypeId> types;
  for (const RoleRequest& role : request.roles) {
    for (const GangOption& option : role.options) types.insert(option.gang.type);
  }
  std::vector<std::string> out;
  std::size_t count = 0;
  for (std::uint32_t n = 0; n < topology.node_count(); ++n) {
    const NodeId id(n);
    const NodeRecord& record = state.node(id);
    const bool there = record.health == NodeHealth::kReady && !record.spare;
    // What a resource manager does not lend is told with its holds.
    const bool passed_over = there || record.is_away() || !types.contains(topology.group(id).type);
    if (passed_over || ++count > kNamed) continue;
    std::string how(word_of(record.health));
    if (record.health == NodeHealth::kReady) how = "kept as a spare";
    if (record.health == NodeHealth::kJoining && record.boot == 0) how = "never joined";
    // What took a node out may quote what a rank of another tenant wrote.
    const bool quoted = !record.out_why.empty() && sees.everything();
    const std::string& why = quoted ? record.out_why : record.drain_why;
    out.push_back(
        fmt::format("{} ({}{}{})", topology.node_name(id), how, why.empty() ? "" : ": ", why));
  }
  if (out.empty()) return {};
  return fmt::format("{}{}", fmt::join(out, ", "),
                     count > kNamed ? fmt::format(" and {} more", count - kNamed) : "");
}

std::string_view program_version() { return ORRERY_VERSION; }

v1::EventRow event_view(const Controller& controller, const TimedEvent& event) {
  v1::EventRow row;
  *row.mutable_at() = timestamp_of(event.at);
  row.set_type(std::string(event_name(event.what.index())));
  row.set_fields(named_fields(controller, event).dump());
  return row;
}

}  // namespace orrery
