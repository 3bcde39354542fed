// The history of a job's attempts, its dependencies, and changes of its terms.
#include <algorithm>

#include "base/assert.hpp"
#include "control/state/state.hpp"
#include "scheduler/price/run_time.hpp"

namespace orrery {

// Jobs of rehearsals have no spec, and no caller asks for their history.
void begin_attempt(Job& job, Instant now) {
  if (job.spec.empty()) return;
  if (job.attempts.size() == kAttemptsKept) job.attempts.erase(job.attempts.begin());
  job.attempts.push_back({.number = job.attempt, .started = now});
}

void note_nodes(Job& job, std::span<const PlacedGang> gangs) {
  if (job.attempts.empty()) return;
  std::vector<NodeId>& nodes = job.attempts.back().nodes;
  for (const PlacedGang& gang : gangs) {
    for (const NodeDevices& at : gang.allocation.ranks) nodes.push_back(at.node);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

void end_attempt(Job& job, const JobStopping& event, Instant now) {
  if (job.attempts.empty()) return;
  Attempt& attempt = job.attempts.back();
  attempt.stopped = now;
  attempt.reason = event.reason;
  attempt.blame = event.blame;
  attempt.exit = event.exit;
  attempt.in_favour_of = event.in_favour_of;
}

Dependency State::dependency(const Submission& submission, JobId before) const {
  const JobPhase phase = job(before).phase;
  if (!ended(phase)) return Dependency::kOpen;
  return dependency_after(submission, before,
                          phase == JobPhase::kFinished ? JobEnding::kFinished : JobEnding::kOther);
}

void State::on(const ReplicaChanged& event) {
  Job& job = at(event.job);
  ORRERY_ASSERT(!job.attempts.empty(), "a replica has an attempt");
  std::optional<ReplicaState>& replica = job.attempts.back().replica;
  if (!replica) replica.emplace();
  replica->report = event.report;
  Instant& reached = replica->reached[static_cast<std::size_t>(event.report.phase)];
  reached = std::min(reached, now_);
}

void State::on(const JobHoldSet& event) {
  Job& job = at(event.job);
  ORRERY_ASSERT(!ended(job.phase), "a job that has ended is not held");
  job.hold = event.hold;
  if (event.hold == JobHold::kNone || job.phase != JobPhase::kQueued) return;
  waiting_.erase(queued_at(job));
  ++changes_.freed;  // it may have been what others waited behind
  drop_slots(job.id);
  set_phase(job, JobPhase::kHeld);
  held_.insert(job.id);
}

void State::on(const JobChanged& event) {
  Job& job = at(event.job);
  ORRERY_ASSERT(!ended(job.phase), "a job that has ended does not change");
  const bool runs = holds_devices(job.phase);
  if (runs) count_usage(running_[job.at], -1);
  auto changed = std::make_shared<Submission>(*job.submission);
  changed->request.priority = event.priority;
  changed->request.time_limit = event.time_limit;
  changed->request.estimate = event.estimate;
  changed->request.class_id = event.class_id;
  replace_submission(job, std::move(changed));
  if (runs) {
    RunningJob& run = running_.edit(job.at);
    run.request = &job.submission->request;
    count_usage(run, 1);
    if (!run.stopping) run.expected_end = expected_end(run);
  }
}

// The core has checked that the job waits.
void State::on(const JobResolved& event) {
  Job& job = at(event.job);
  auto changed = std::make_shared<Submission>(*job.submission);
  changed->request = event.request;
  changed->request.array = job.submission->request.array;
  replace_submission(job, std::move(changed));
}

void State::replace_submission(Job& job, std::shared_ptr<const Submission> changed) {
  job.submission = std::move(changed);
  if (job.phase == JobPhase::kQueued) {
    queued_at(job)->request = &job.submission->request;
    drop_slots(job.id);
  }
  ++changes_.freed;  // it may now get what was refused before
  ++changes_.plans;  // and its request has changed
}

/// Computed from the present request and plans, and from the work done at the start.
Instant State::expected_end(const RunningJob& run) const {
  const double left = 1 - job(run.id).done;
  Instant end = Instant::max();
  for (std::size_t g = 0; g < run.gangs.size(); ++g) {
    const RoleRequest& role = run.request->roles[run.gangs[g].role];
    const GangOption& option = role.options[run.gangs[g].option];
    const PlanEntry* entry = option.plan ? plans_.find(*option.plan) : nullptr;
    const PlannedWork* plan =
        entry != nullptr && *entry ? &entry->value()[run.terms[g].plan] : nullptr;
    const std::optional<Duration> whole =
        whole_run_time(*run.request, role, option, {plan, run.terms[g].ratio});
    if (!whole) continue;
    const Instant at = run.started + Duration::from_seconds(whole->count_seconds() * left);
    end = end == Instant::max() ? at : std::max(end, at);
  }
  return end;
}

}  // namespace orrery
