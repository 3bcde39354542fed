// control/codec/event_fields.hpp - the fields of events and inputs, in the order of their encoding.
//
// A new field goes to the end, and the version of each record type that holds it rises
// (control/log/upcast.hpp). Internal to the codec and its tests: see control/codec/field_walk.hpp.
#pragma once

#include "control/core/plan_digest.hpp"
#include "control/input.hpp"
#include "control/state/job_fields.hpp"
#include "control/state/ledger.hpp"

namespace orrery {

[[nodiscard]] constexpr PassKind last_of(PassKind) { return PassKind::kFull; }
[[nodiscard]] constexpr ExitKind last_of(ExitKind) { return ExitKind::kRefused; }
[[nodiscard]] constexpr ReplicaPhase last_of(ReplicaPhase) { return ReplicaPhase::kDraining; }
[[nodiscard]] constexpr CanaryVerdict::Of last_of(CanaryVerdict::Of) {
  return CanaryVerdict::Of::kGiveUp;
}
[[nodiscard]] constexpr JobHold last_of(JobHold) { return JobHold::kResting; }
[[nodiscard]] constexpr PowerLimitSet::What last_of(PowerLimitSet::What) {
  return PowerLimitSet::What::kSupply;
}

// --- Plans --------------------------------------------------------------------------------------

template <class Codec, SameStruct<std::monostate> S>
void code(Codec&, S&) {}

template <class Codec, SameStruct<PlansFound> S>
void code(Codec& codec, S& found) {
  auto& [plans, step_seconds] = found;
  codec.named("plans step_seconds", plans, step_seconds);
}

template <class Codec, class S>
  requires SameStruct<S, PlanFound> || SameStruct<S, PlanReady>
void code(Codec& codec, S& found) {
  auto& [key, entry] = found;
  if constexpr (std::is_const_v<S>) {
    const PlanDigest digest = digest_of(entry.get());
    codec.named("key digest", key, digest);
  } else {
    PlanDigest digest;
    codec.named("key digest", key, digest);
    entry = codec.plan(key, digest);
  }
}

// --- Events -------------------------------------------------------------------------------------

template <class Codec, SameStruct<Blame> S>
void code(Codec& codec, S& blame) {
  auto& [layer, node, evidence] = blame;
  codec.named("layer node evidence", layer, node, evidence);
}

template <class Codec, SameStruct<Progress> S>
void code(Codec& codec, S& progress) {
  auto& [done, lost, saving, undetected] = progress;
  codec.named("done lost saving undetected", done, lost, saving, undetected);
}

template <class Codec, SameStruct<RankExit> S>
void code(Codec& codec, S& exit) {
  auto& [rank, status] = exit;
  codec.named("rank status", rank, status);
}

template <class Codec, SameStruct<ReplicaPace> S>
void code(Codec& codec, S& pace) {
  auto& [prefill_tokens_s, step_s, step_full_s] = pace;
  codec.named("prefill_tokens_s step_s step_full_s", prefill_tokens_s, step_s, step_full_s);
}

template <class Codec, SameStruct<ReplicaReport> S>
void code(Codec& codec, S& report) {
  auto& [phase, endpoint, pid, slots, pace, kv_tokens, kv_events] = report;
  codec.named("phase endpoint pid slots pace kv_tokens kv_events", phase, endpoint, pid, slots,
              pace, kv_tokens, kv_events);
}

template <class Codec, SameStruct<ReplicaState> S>
void code(Codec& codec, S& replica) {
  auto& [report, reached] = replica;
  codec(report, reached);
}

// Reports of the releases that knew nothing of a replica's cache.

template <class Codec>
void code_without_cache(Codec& codec, ReplicaReport& report) {
  codec(report.phase, report.endpoint, report.pid, report.slots, report.pace);
}

template <class Codec>
void code_without_cache(Codec& codec, ReplicaState& replica) {
  code_without_cache(codec, replica.report);
  codec(replica.reached);
}

template <class Codec, class Value>
void code_without_cache(Codec& codec, std::optional<Value>& reported) {
  bool known = false;
  codec(known);
  if (known) code_without_cache(codec, reported.emplace());
}

template <class Codec, SameStruct<ReplicaChanged> S>
void code(Codec& codec, S& event) {
  auto& [job, report] = event;
  codec.named("job report", job, report);
}

template <class Codec, SameStruct<JobTexts> S>
void code(Codec& codec, S& texts) {
  auto& [spec, submitter, run_as] = texts;
  codec.named("spec submitter run_as", spec, submitter, run_as);
}

template <class Codec, SameStruct<CanaryGates> S>
void code(Codec& codec, S& gates) {
  auto& [failures, latencies, quality] = gates;
  codec.named("failures latencies quality", failures, latencies, quality);
}

template <class Codec, SameStruct<RolloutTerms> S>
void code(Codec& codec, S& terms) {
  auto& [surge, unavailable, canary, bake, gates] = terms;
  codec.named("surge unavailable canary bake gates", surge, unavailable, canary, bake, gates);
}

template <class Codec, SameStruct<ServiceUpdating> S>
void code(Codec& codec, S& event) {
  auto& [service, revision, replica, texts, replicas, terms, back, stage] = event;
  codec.named("service revision replica texts replicas terms back stage", service, revision,
              replica, texts, replicas, terms, back, stage);
}

template <class Codec, SameStruct<ServiceUpdated> S>
void code(Codec& codec, S& event) {
  auto& [service, outcome] = event;
  codec.named("service outcome", service, outcome);
}

template <class Codec, SameStruct<ServiceScaled> S>
void code(Codec& codec, S& event) {
  auto& [service, before, replicas, why] = event;
  codec.named("service before replicas why", service, before, replicas, why);
}

template <class Codec, SameStruct<JobSubmitted> S>
void code(Codec& codec, S& event) {
  auto& [job, submission, request_id, spec, submitter, run_as] = event;
  codec.named("job submission request_id spec submitter run_as after_any after_notok hold", job,
              submission, request_id, spec, submitter, run_as, submission.after_any,
              submission.after_notok, submission.hold);
}

template <class Codec, SameStruct<JobReleased> S>
void code(Codec& codec, S& event) {
  auto& [job] = event;
  codec.named("job", job);
}

template <class Codec, SameStruct<JobStarted> S>
void code(Codec& codec, S& event) {
  auto& [job, attempt, gangs, terms, expected, checkpoint, delay, compile, microdollars] = event;
  codec.named("job attempt gangs terms expected checkpoint delay compile microdollars", job,
              attempt, gangs, terms, expected, checkpoint, delay, compile, microdollars);
}

template <class Codec, SameStruct<JobRunning> S>
void code(Codec& codec, S& event) {
  auto& [job, source] = event;
  codec.named("job source", job, source);
}

template <class Codec, SameStruct<JobResized> S>
void code(Codec& codec, S& event) {
  auto& [job, epoch, gangs, terms, in_favour_of, done] = event;
  codec.named("job epoch gangs terms in_favour_of done", job, epoch, gangs, terms, in_favour_of,
              done);
}

template <class Codec, SameStruct<ClockSet> S>
void code(Codec& codec, S& event) {
  auto& [job, gang, terms, done] = event;
  codec.named("job gang terms done", job, gang, terms, done);
}

template <class Codec, SameStruct<JobStopping> S>
void code(Codec& codec, S& event) {
  auto& [job, reason, in_favour_of, blame, progress, exit] = event;
  codec.named("job reason in_favour_of blame progress exit", job, reason, in_favour_of, blame,
              progress, exit);
}

template <class Codec, SameStruct<DevicesFreed> S>
void code(Codec& codec, S& event) {
  auto& [job, attempt, nodes, epoch, progress] = event;
  codec.named("job attempt nodes epoch progress", job, attempt, nodes, epoch, progress);
}

template <class Codec, SameStruct<JobRequeued> S>
void code(Codec& codec, S& event) {
  auto& [job, progress, not_before] = event;
  codec.named("job progress not_before", job, progress, not_before);
}

template <class Codec, SameStruct<JobEnded> S>
void code(Codec& codec, S& event) {
  auto& [job, phase, progress, blame] = event;
  codec.named("job phase progress blame", job, phase, progress, blame);
}

template <class Codec, SameStruct<NodeChanged> S>
void code(Codec& codec, S& event) {
  auto& [node, health, blame, window, why] = event;
  codec.named("node health blame window why", node, health, blame, window, why);
}

template <class Codec, SameStruct<NodeBooted> S>
void code(Codec& codec, S& event) {
  auto& [node, boot] = event;
  codec.named("node boot", node, boot);
}

template <class Codec, SameStruct<SpareSet> S>
void code(Codec& codec, S& event) {
  auto& [node, spare] = event;
  codec.named("node spare", node, spare);
}

template <class Codec, SameStruct<LinkState> S>
void code(Codec& codec, S& link) {
  auto& [health, load] = link;
  codec.named("health load", health, load);
}

template <class Codec, SameStruct<LinkChanged> S>
void code(Codec& codec, S& event) {
  auto& [link, state] = event;
  codec.named("link state", link, state);
}

template <class Codec, SameStruct<PowerLimitSet> S>
void code(Codec& codec, S& event) {
  auto& [domain, what, limit] = event;
  codec.named("domain what limit", domain, what, limit);
}

template <class Codec, SameStruct<TenantsSet> S>
void code(Codec& codec, S& event) {
  auto& [yaml] = event;
  codec.named("yaml", yaml);
}

template <class Codec, SameStruct<FleetSet> S>
void code(Codec& codec, S& event) {
  auto& [yaml] = event;
  codec.named("yaml", yaml);
}

template <class Codec, SameStruct<PolicySet> S>
void code(Codec& codec, S& event) {
  auto& [yaml] = event;
  codec.named("yaml", yaml);
}

template <class Codec, SameStruct<SlotsReserved> S>
void code(Codec& codec, S& event) {
  auto& [slots] = event;
  codec.named("slots", slots);
}

template <class Codec, SameStruct<DecisionDropped> S>
void code(Codec& codec, S& event) {
  auto& [job, why] = event;
  codec.named("job why", job, why);
}

template <class Codec, SameStruct<NodeLent> S>
void code(Codec& codec, S& event) {
  auto& [node, managed, hold, until, health, job] = event;
  codec.named("node managed hold until health job", node, managed, hold, until, health, job);
}

template <class Codec, SameStruct<ForeignSet> S>
void code(Codec& codec, S& event) {
  auto& [node, claim, until, who] = event;
  codec.named("node claim until who", node, claim, until, who);
}

template <class Codec, SameStruct<HoldBilled> S>
void code(Codec& codec, S& event) {
  auto& [hold, nodes, from, to] = event;
  codec.named("hold nodes from to", hold, nodes, from, to);
}

template <class Codec, SameStruct<MaintenanceSet> S>
void code(Codec& codec, S& event) {
  auto& [window, nodes, from, to, why] = event;
  codec.named("window nodes from to why", window, nodes, from, to, why);
}

template <class Codec, SameStruct<LemonFound> S>
void code(Codec& codec, S& event) {
  auto& [node, faults] = event;
  codec.named("node faults", node, faults);
}

template <class Codec, SameStruct<PassDone> S>
void code(Codec& codec, S& event) {
  auto& [kind] = event;
  codec.named("kind", kind);
}

template <class Codec, SameStruct<IdleCauseSet> S>
void code(Codec& codec, S& event) {
  auto& [type, cause] = event;
  auto use = static_cast<DeviceUse>(cause);
  codec.named("type cause", type, use);
  if constexpr (!std::is_const_v<S>) cause = static_cast<std::uint8_t>(use);
}

template <class Codec, SameStruct<CancelAsked> S>
void code(Codec& codec, S& event) {
  auto& [job] = event;
  codec.named("job", job);
}

template <class Codec, SameStruct<JobsArchived> S>
void code(Codec& codec, S& event) {
  auto& [jobs] = event;
  codec.named("jobs", jobs);
}

template <class Codec, SameStruct<WorkSettled> S>
void code(Codec& codec, S& event) {
  auto& [job, progress] = event;
  codec.named("job progress", job, progress);
}

template <class Codec, SameStruct<NodeAccused> S>
void code(Codec& codec, S& event) {
  auto& [job, attempt, node, verdict, evidence] = event;
  codec.named("job attempt node verdict evidence", job, attempt, node, verdict, evidence);
}

template <class Codec, SameStruct<JobHoldSet> S>
void code(Codec& codec, S& event) {
  auto& [job, hold] = event;
  codec.named("job hold", job, hold);
}

template <class Codec, SameStruct<JobChanged> S>
void code(Codec& codec, S& event) {
  auto& [job, priority, time_limit, estimate, class_id] = event;
  codec.named("job priority time_limit estimate class_id", job, priority, time_limit, estimate,
              class_id);
}

template <class Codec, class S>
  requires SameStruct<S, JobResolved> || SameStruct<S, ResolveJob>
void code(Codec& codec, S& resolved) {
  auto& [job, request] = resolved;
  codec.named("job request", job, request);
}

// --- Inputs -------------------------------------------------------------------------------------

template <class Codec, SameStruct<SubmitJob> S>
void code(Codec& codec, S& input) {
  auto& [submission, spec, submitter, run_as] = input;
  codec(submission, spec, submitter, run_as, submission.after_any, submission.after_notok,
        submission.hold);
}

template <class Codec, SameStruct<CancelJob> S>
void code(Codec& codec, S& input) {
  auto& [job] = input;
  codec(job);
}

template <class Codec, SameStruct<HoldJob> S>
void code(Codec& codec, S& input) {
  auto& [job, hold] = input;
  codec(job, hold);
}

template <class Codec, SameStruct<RequeueJob> S>
void code(Codec& codec, S& input) {
  auto& [job, attempt, hold] = input;
  codec(job, attempt, hold);
}

template <class Codec, SameStruct<ChangeJob> S>
void code(Codec& codec, S& input) {
  auto& [job, priority, time_limit, estimate, class_id] = input;
  codec(job, priority, time_limit, estimate, class_id);
}

template <class Codec, SameStruct<DrainNode> S>
void code(Codec& codec, S& input) {
  auto& [node, at_once, why] = input;
  codec(node, at_once, why);
}

template <class Codec, SameStruct<ResumeNode> S>
void code(Codec& codec, S& input) {
  auto& [node] = input;
  codec(node);
}

template <class Codec, SameStruct<FenceNode> S>
void code(Codec& codec, S& input) {
  auto& [node] = input;
  codec(node);
}

template <class Codec, SameStruct<SetSpare> S>
void code(Codec& codec, S& input) {
  auto& [node, spare] = input;
  codec(node, spare);
}

template <class Codec, SameStruct<SetPowerCap> S>
void code(Codec& codec, S& input) {
  auto& [domain, cap] = input;
  codec(domain, cap);
}

template <class Codec, SameStruct<SetTenants> S>
void code(Codec& codec, S& input) {
  auto& [yaml] = input;
  codec(yaml);
}

template <class Codec, SameStruct<SetFleet> S>
void code(Codec& codec, S& input) {
  auto& [yaml] = input;
  codec(yaml);
}

template <class Codec, SameStruct<SetPolicy> S>
void code(Codec& codec, S& input) {
  auto& [yaml] = input;
  codec(yaml);
}

template <class Codec, SameStruct<SetMaintenance> S>
void code(Codec& codec, S& input) {
  auto& [window, nodes, from, to, why] = input;
  codec(window, nodes, from, to, why);
}

template <class Codec, SameStruct<ArchiveJobs> S>
void code(Codec& codec, S& input) {
  auto& [jobs] = input;
  codec(jobs);
}

template <class Codec, SameStruct<RanksUp> S>
void code(Codec& codec, S& input) {
  auto& [job, attempt, epoch, source] = input;
  codec(job, attempt, epoch, source);
}

template <class Codec, SameStruct<RanksEnded> S>
void code(Codec& codec, S& input) {
  auto& [job, attempt, kind, blame, progress, gone, exit] = input;
  codec(job, attempt, kind, blame, progress, gone, exit);
}

template <class Codec, SameStruct<WorkReported> S>
void code(Codec& codec, S& input) {
  auto& [job, attempt, progress] = input;
  codec(job, attempt, progress);
}

template <class Codec, SameStruct<RanksGone> S>
void code(Codec& codec, S& input) {
  auto& [job, attempt, nodes, progress, epoch] = input;
  codec(job, attempt, nodes, progress, epoch);
}

template <class Codec, SameStruct<NodeJoined> S>
void code(Codec& codec, S& input) {
  auto& [node, boot] = input;
  codec(node, boot);
}

template <class Codec, SameStruct<NodeHeard> S>
void code(Codec& codec, S& input) {
  auto& [node, health, missed] = input;
  codec(node, health, missed);
}

template <class Codec, SameStruct<NodeGranted> S>
void code(Codec& codec, S& input) {
  auto& [node, hold, until, job] = input;
  codec(node, hold, until, job);
}

template <class Codec, SameStruct<ForeignUse> S>
void code(Codec& codec, S& input) {
  auto& [node, claim, until, who] = input;
  codec(node, claim, until, who);
}

template <class Codec, SameStruct<HoldRecorded> S>
void code(Codec& codec, S& input) {
  auto& [hold, nodes, from, to] = input;
  codec(hold, nodes, from, to);
}

template <class Codec, SameStruct<UpdateService> S>
void code(Codec& codec, S& command) {
  auto& [job, replica, texts, replicas, terms, revision] = command;
  codec.named("job replica texts replicas terms revision", job, replica, texts, replicas, terms,
              revision);
}

template <class Codec, SameStruct<CanaryVerdict> S>
void code(Codec& codec, S& verdict) {
  auto& [service, revision, stage, of, why] = verdict;
  codec(service, revision, stage, of, why);
}

template <class Codec, SameStruct<ScaleOrder> S>
void code(Codec& codec, S& order) {
  auto& [service, replicas, why] = order;
  codec(service, replicas, why);
}

template <class Codec, SameStruct<ReplicaSeen> S>
void code(Codec& codec, S& input) {
  auto& [job, attempt, report] = input;
  codec(job, attempt, report);
}

template <class Codec, SameStruct<NodeAbsent> S>
void code(Codec& codec, S& input) {
  auto& [node, gone, why] = input;
  codec(node, gone, why);
}

template <class Codec, SameStruct<NodeFault> S>
void code(Codec& codec, S& input) {
  auto& [node, layer, evidence, repair, stops_jobs, claimed_by, attempt] = input;
  codec(node, layer, evidence, repair, stops_jobs, claimed_by, attempt);
}

template <class Codec, SameStruct<NodeRepaired> S>
void code(Codec& codec, S& input) {
  auto& [node] = input;
  codec(node);
}

template <class Codec, SameStruct<LinkObserved> S>
void code(Codec& codec, S& input) {
  auto& [link, state] = input;
  codec(link, state);
}

template <class Codec, SameStruct<SupplyObserved> S>
void code(Codec& codec, S& input) {
  auto& [domain, supply] = input;
  codec(domain, supply);
}

template <class Codec, SameStruct<Proposal> S>
void code(Codec& codec, S& input) {
  auto& [version, result] = input;
  codec(version, result);
}

template <class Codec, SameStruct<Tick> S>
void code(Codec&, S&) {}

}  // namespace orrery
