#include "control/jobs/node_replacement.hpp"

#include <algorithm>
#include <optional>

#include "control/jobs/decision_check.hpp"
#include "scheduler/replace/replacement.hpp"
#include "scheduler/request/job_array.hpp"

namespace orrery {

bool NodeReplacement::continue_without(JobId id, NodeId node) {
  return replace_part(id, node) || shrink_away(id, node);
}

void NodeReplacement::recall(const Job& job) {
  places_.forget(job.id);
  places_.recall(job, *state_.setup().topology);
}

// Whether a job can be resized while running: its ranks survive the loss of some and accept others.
bool NodeReplacement::can_resize_running(JobId id) const {
  const RunningJob& run = state_.running(id);
  if (run.gangs.size() != 1 || !state_.job(id).up) return false;
  const PlacedGang& gang = run.gangs.front();
  return run.request->roles[gang.role].elastic() && gang.allocation.share >= kWholeDevice;
}

// A resource manager may have lent a spare for one job alone.
std::vector<NodeId> NodeReplacement::ready_spares(JobId job) const {
  std::vector<NodeId> ready;
  for (const NodeId spare : state_.spares()) {
    const NodeRecord& record = state_.node(spare);
    const bool may_have = !record.loan.job.valid() || record.loan.job == job;
    if (record.health == NodeHealth::kReady && may_have) ready.push_back(spare);
  }
  return ready;
}

void NodeReplacement::take_spares(std::span<const SpareTaken> spares) {
  for (const SpareTaken& taken : spares) recorder_.emit(SpareSet{taken.spare, false});
}

void NodeReplacement::return_spares(std::span<const SpareTaken> spares) {
  for (const SpareTaken& taken : spares) recorder_.emit(SpareSet{taken.lost, true});
}

// Continues an elastic gang with its remaining nodes while another node replaces the lost one.
bool NodeReplacement::replace_part(JobId id, NodeId node) {
  const RunningJob& run = state_.running(id);
  if (!can_resize_running(id) || keeps_distance(*run.request)) return false;
  const std::vector<NodeId> spares = ready_spares(id);
  const Situation s = state_.situation(recorder_.now());
  const auto whole = resize_with_replacement({s, state_.policy(), spares}, run, node);
  if (!whole) return false;
  FleetOverlay fleet(s.fleet);
  make_ready(fleet, whole->spares);
  if (!DecisionCheck(state_, recorder_.now()).why_stale(whole->decision, fleet.view()).empty()) {
    return false;
  }
  take_spares(whole->spares);
  return_spares(whole->spares);
  starts_.go_on_as(whole->decision);
  return true;
}

// Continues an elastic gang at the largest of its sizes that fits on its remaining nodes.
bool NodeReplacement::shrink_away(JobId id, NodeId node) {
  if (!can_resize_running(id)) return false;
  const Situation s = state_.situation(recorder_.now());
  const auto smaller = resize_without({s, state_.policy(), {}}, state_.running(id), node);
  if (smaller) starts_.go_on_as(*smaller);
  return smaller.has_value();
}

void NodeReplacement::restart_waiting() {
  std::vector<JobId> jobs;
  for (const auto& [id, place] : places_.all()) {
    if (state_.job(id).phase == JobPhase::kQueued) jobs.push_back(id);
  }
  const auto priority = [this](JobId id) { return state_.job(id).submission->request.priority; };
  std::stable_sort(jobs.begin(), jobs.end(),
                   [&](JobId a, JobId b) { return priority(a) > priority(b); });
  for (const JobId id : jobs) restart_at_its_place(id, Restart::kAfterWait);
}

void NodeReplacement::restart_at_its_place(JobId id, Restart restart) {
  const auto place = places_.all().find(id);
  const Job& job = state_.job(id);
  if (place == places_.all().end() || job.phase != JobPhase::kQueued) return;
  const std::vector<NodeId> spares = ready_spares(id);
  const Situation s = state_.situation(recorder_.now());
  const auto again = restart_in_place(
      {s, state_.policy(), spares},
      {id, &job.submission->request, job.submitted, job.done, job.attained}, place->second);
  if (!again) return;
  FleetOverlay fleet(s.fleet);
  make_ready(fleet, again->spares);
  if (!DecisionCheck(state_, recorder_.now()).why_stale(again->decision, fleet.view()).empty()) {
    return;
  }
  std::optional<RestartKind> kind;
  if (restart == Restart::kAtOnce) {
    const bool warm = again->spares.size() == again->replaced;
    kind = warm ? RestartKind::kWarmSpares : RestartKind::kCold;
  }
  take_spares(again->spares);
  starts_.start(again->decision, kind);
  return_spares(again->spares);
}

}  // namespace orrery
