#include "control/core/core.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/format/field_writer.hpp"
#include "control/codec/codec.hpp"
#include "control/settings.hpp"
#include "control/state/snapshot.hpp"

namespace orrery {

Core::Core(const ControlSetup& setup) : state_(setup), now_(setup.begin) {
  scheduler_.emplace(*setup.tree);
}

const Outcome& Core::handle(const Input& input) {
  ORRERY_ASSERT(input.at >= now_, "inputs do not go back in time");
  now_ = input.at;
  outcome_.events.clear();
  outcome_.actions.clear();
  outcome_.answer = {};
  request_id_ = input.request_id;
  std::visit([this](const auto& each) { on(each); }, input.what);
  return outcome_;
}

Status Core::restore(std::string_view snapshot) { return orrery::restore(state_, snapshot); }

void Core::resume() {
  now_ = state_.now();
  for (const JobId id : state_.held_jobs()) {
    // This includes a backoff that ended in the moment before: no event records that a timer fired.
    if (state_.job(id).waiting_for == 0) timers_.insert({state_.job(id).not_before, id});
  }
  for (const RunningJob& run : state_.running()) {
    const Job& job = state_.job(run.id);
    if (run.request->time_limit && job.phase == JobPhase::kRunning) {
      timers_.insert({job.since + *run.request->time_limit, run.id});
    }
  }
  for (const auto& [window, plan] : state_.maintenance()) {
    timers_.insert({plan.from, JobId()});
    timers_.insert({plan.to, JobId()});
  }
  take_up_fleet();
}

// Makes what follows from the fleet and is not in the state.
void Core::take_up_fleet() {
  scheduler_.emplace(*state_.setup().tree);
  emptying_.clear();
  for (std::uint32_t n = 0; n < state_.setup().topology->node_count(); ++n) {
    const NodeHealth health = state_.node(NodeId(n)).health;
    if (health == NodeHealth::kDraining || health == NodeHealth::kQuarantined) {
      emptying_.insert(NodeId(n));
    }
  }
  places_.clear();
  recall_places();
  plans_asked_.clear();
  last_ = {};
  full_asked_ = false;
  options_since_ = state_.version();
  ++queued_;
}

void Core::emit(Event event) {
  state_.apply(now_, event);
  outcome_.events.push_back(std::move(event));
}

void Core::emit_unfelt(Event event) {
  const bool holds = held_version_ == state_.version() && now_ < held_until_;
  emit(std::move(event));
  if (!holds) return;
  held_version_ = state_.version();
  seen_.changes.links = state_.changes().links;
}

void Core::refuse(std::string why) { outcome_.answer.status = input_error({}, std::move(why)); }

// --- Commands -----------------------------------------------------------------------------------

void Core::on(const SubmitJob& command) {
  if (!request_id_.empty()) {
    if (const std::optional<JobId> known = state_.answered(request_id_)) {
      outcome_.answer.job = *known;
      return;
    }
  }
  const Submission& asked = command.submission;
  for (const std::vector<JobId>* list : {&asked.after, &asked.after_any, &asked.after_notok}) {
    for (const JobId before : *list) {
      if (!state_.has(before)) return refuse("a job to wait for is not known");
      if (state_.dependency(asked, before) != Dependency::kNever) continue;
      const Job& over = state_.job(before);
      return refuse(
          fmt::format("job \"{}\" to wait for has {}", over.name, unmet_text(over.phase)));
    }
  }
  const JobId id = JobId::at(state_.setup().next_job(state_.jobs()));
  outcome_.answer.job = id;
  emit(JobSubmitted{id, command.submission, request_id_, command.spec, command.submitter,
                    command.run_as});
  release_if_due(id);
}

void Core::on(const CancelJob& command) {
  if (!state_.has(command.job)) return refuse("no such job");
  const Job& job = state_.job(command.job);
  if (ended(job.phase) || job.cancel) return;
  if (!holds_devices(job.phase)) {
    end(command.job, JobPhase::kCancelled, {job.done, {}, {}, {}});
  } else if (job.phase == JobPhase::kStopping) {
    emit(CancelAsked{command.job});
    finish_if_gone(command.job);
  } else {
    stop(command.job, StopReason::kCancelled, {});
  }
}

void Core::on(const HoldJob& command) {
  if (!state_.has(command.job)) return refuse("no such job");
  const Job& job = state_.job(command.job);
  if (ended(job.phase)) return refuse("the job has ended");
  // An owner's hold does not replace an operator's.
  const bool weaker = job.hold == JobHold::kOperator && command.hold == JobHold::kOwner;
  if (job.hold == command.hold || weaker) return;
  const ArrayId array = job.submission->request.array;
  emit(JobHoldSet{command.job, command.hold});
  release_if_due(command.job);
  release_of(array);
}

void Core::on(const RequeueJob& command) {
  if (!state_.has(command.job)) return refuse("no such job");
  const Job& job = state_.job(command.job);
  if (ended(job.phase)) return refuse("the job has ended");
  // The command arrived twice, or too late.
  const bool done = command.attempt < job.attempt ||
                    (job.phase == JobPhase::kStopping && job.stop == StopReason::kRequeued);
  if (!done && !holds_devices(job.phase)) {
    return refuse(fmt::format("the job does not run: it is {}", word_of(job.phase)));
  }
  if (!done && job.phase == JobPhase::kStopping) return refuse("the job is stopping already");
  if (!done && job.submission->restart == RestartPolicy::kNever) {
    return refuse("restart.policy of the job is never: it may not run twice");
  }
  if (command.hold > job.hold) {
    const ArrayId array = job.submission->request.array;
    emit(JobHoldSet{command.job, command.hold});
    release_of(array);
  }
  if (!done) stop(command.job, StopReason::kRequeued, {});
}

void Core::on(const ChangeJob& command) {
  if (!state_.has(command.job)) return refuse("no such job");
  const Job& job = state_.job(command.job);
  if (ended(job.phase)) return refuse("the job has ended");
  const JobRequest& now = job.submission->request;
  if (now.priority == command.priority && now.time_limit == command.time_limit &&
      now.estimate == command.estimate) {
    return;
  }
  emit(JobChanged{command.job, command.priority, command.time_limit, command.estimate,
                  command.class_id});
  // The timer of the former limit fires and finds that this limit no longer applies.
  if (command.time_limit && job.phase == JobPhase::kRunning) {
    timers_.insert({job.since + *command.time_limit, command.job});
  }
}

void Core::on(const SetPowerCap& command) {
  const Topology& topology = *state_.setup().topology;
  if (!command.domain.valid() || command.domain.value() >= topology.power_domains().size()) {
    return refuse("no such power domain");
  }
  emit(PowerLimitSet{command.domain, PowerLimitSet::What::kCap, command.cap});
}

void Core::on(const SetTenants& command) {
  Result<TenantTree> tree = tenants_from(command.yaml, *state_.setup().topology);
  if (!tree) return void(outcome_.answer.status = forward_error(tree));
  for (const Job& job : state_.all_jobs()) {
    const std::string& path = state_.tenants().path(job.tenant);
    if (ended(job.phase) || tree->find(path)) continue;
    return refuse(fmt::format("tenant \"{}\" still has job \"{}\"", path, job.name));
  }
  emit(TenantsSet{command.yaml});
}

void Core::on(const SetPolicy& command) {
  Result<Policy> policy = policy_from(command.yaml);
  if (!policy) return void(outcome_.answer.status = forward_error(policy));
  emit(PolicySet{command.yaml});
  scheduler_->forget();
}

void Core::on(const SetFleet& command) {
  const ControlSetup& setup = state_.setup();
  if (!setup.fleets.source) return refuse("the fleet of this cluster does not change");
  const Result<const ControlSetup*> next = setup.fleets.source(command.yaml);
  if (!next) return void(outcome_.answer.status = tl::unexpected(next.error()));
  if (Status fits = check_change(state_, **next); !fits) {
    return void(outcome_.answer.status = std::move(fits));
  }
  emit(FleetSet{command.yaml});
  take_up_fleet();
}

// A job with devices keeps its request: its placement names the options of that one.
void Core::on(const ResolveJob& command) {
  if (!state_.has(command.job)) return refuse("no such job");
  const Job& job = state_.job(command.job);
  if (ended(job.phase)) return refuse("the job has ended");
  if (holds_devices(job.phase)) return refuse("the job has devices");
  if (same_fields(job.submission->request, command.request)) return;
  emit(JobResolved{command.job, command.request});
  options_since_ = state_.version();
  places_.erase(command.job);
  recall_place(job);
}

void Core::on(const ArchiveJobs& command) {
  JobsArchived archived;
  archived.jobs.reserve(command.jobs.size());
  for (const JobId id : command.jobs) {
    if (state_.may_archive(id)) archived.jobs.push_back(id);
  }
  if (!archived.jobs.empty()) emit_unfelt(std::move(archived));
}

void Core::on(const SetMaintenance& asked) {
  SetMaintenance command = asked;
  const std::map<std::uint32_t, Maintenance>& windows = state_.maintenance();
  if (!command.nodes.empty() && command.to <= now_) {
    return refuse("the maintenance window is over already");
  }
  if (command.window == 0) command.window = windows.empty() ? 1 : windows.rbegin()->first + 1;
  for (const NodeId node : command.nodes) {
    if (!has_node(node)) return refuse("no such node");
  }
  if (!command.nodes.empty() && command.to <= command.from) {
    return refuse("a maintenance window ends after it begins");
  }
  const auto before = windows.find(command.window);
  if (before != windows.end()) {
    const Maintenance plan = before->second;
    close_window(command.window, plan);
  }
  if (command.nodes.empty()) return;
  emit(MaintenanceSet{command.window, command.nodes, command.from, command.to,
                      std::move(command.why)});
  timers_.insert({command.from, JobId()});
  timers_.insert({command.to, JobId()});
}

// --- Observations of work, links and supplies
// -----------------------------------------------------------

void Core::on(const WorkReported& seen) {
  if (std::string why = contradiction(seen.job, seen.attempt); !why.empty()) return refuse(why);
  const Job& job = state_.job(seen.job);
  const bool between = holds_devices(job.phase) && !job.up && seen.attempt == job.attempt;
  if (!between) return refuse("no epoch of it begins");
  emit(WorkSettled{seen.job, believed(job, seen.progress)});
}

void Core::on(const LinkObserved& seen) { emit_unfelt(LinkChanged{seen.link, seen.state}); }

void Core::on(const SupplyObserved& seen) {
  emit(PowerLimitSet{seen.domain, PowerLimitSet::What::kSupply, seen.supply});
}

void Core::on(const PlanReady& ready) {
  plans_asked_.erase(ready.key);
  if (state_.plans().find(ready.key) == nullptr) emit(PlanFound{ready.key, ready.entry});
}

}  // namespace orrery
