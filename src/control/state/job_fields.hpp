// control/state/job_fields.hpp - the fields of jobs, gangs and decisions, in the order of their
// encoding.
//
// A new field goes to the end, and the version of each record type that holds it rises
// (control/log/upcast.hpp). Internal to the codec and its tests: see control/codec/field_walk.hpp.
#pragma once

#include "control/codec/field_walk.hpp"
#include "control/submission.hpp"
#include "scheduler/decision.hpp"

namespace orrery {

[[nodiscard]] constexpr RejectionKind last_of(RejectionKind) { return RejectionKind::kLater; }

// --- Requests -----------------------------------------------------------------------------------

template <class Codec, SameStruct<HostNeeds> S>
void code(Codec& codec, S& needs) {
  auto& [cpu, memory, cxl, disk] = needs;
  codec.named("cpu memory cxl disk", cpu, memory, cxl, disk);
}

template <class Codec, SameStruct<GangRequest> S>
void code(Codec& codec, S& gang) {
  auto& [type, devices, node_devices, share, host, required, preferred, segment, exclusive,
         rails_aligned, slice, sites] = gang;
  codec.named(
      "type devices node_devices share host required preferred segment exclusive rails_aligned "
      "slice sites",
      type, devices, node_devices, share, host, required, preferred, segment, exclusive,
      rails_aligned, slice, sites);
}

template <class Codec, SameStruct<PlanKey> S>
void code(Codec& codec, S& key) {
  auto& [work, type, devices] = key;
  codec.named("work type devices", work, type, devices);
}

template <class Codec, SameStruct<GangOption> S>
void code(Codec& codec, S& option) {
  auto& [gang, speed, plan] = option;
  codec.named("gang speed plan", gang, speed, plan);
}

template <class Codec, SameStruct<Rejection> S>
void code(Codec& codec, S& rejection) {
  auto& [kind, blocking, reason] = rejection;
  codec.named("kind blocking reason", kind, blocking, reason);
}

template <class Codec, SameStruct<ExcludedType> S>
void code(Codec& codec, S& excluded) {
  auto& [type, why] = excluded;
  codec.named("type why", type, why);
}

/// Leaves out the position in the user's file, which decides nothing: a log does not depend on
/// where the file was.
template <class Codec, SameStruct<SpreadSpec> S>
void code(Codec& codec, S& spread) {
  [[maybe_unused]] auto& [level, most, where] = spread;
  codec.named("level most", level, most);
}

template <class Codec, SameStruct<RoleRequest> S>
void code(Codec& codec, S& role) {
  auto& [name, gangs, options, excluded, devices_min, devices_max, spread, work, steps] = role;
  codec.named("name gangs options excluded devices_min devices_max spread work steps", name, gangs,
              options, excluded, devices_min, devices_max, spread, work, steps);
}

template <class Codec, SameStruct<DataRequest> S>
void code(Codec& codec, S& data) {
  auto& [site, size] = data;
  codec.named("site size", site, size);
}

/// Leaves out the array, which has its place among the fields of the submission.
template <class Codec, SameStruct<JobRequest> S>
void code(Codec& codec, S& request) {
  [[maybe_unused]] auto& [tenant, priority, class_id, kind, preemptible, deadline, name, roles,
                          goal, budget, time_limit, estimate, data, checkpoint_interval,
                          checkpoint_cost, restart, array] = request;
  codec.named(
      "name kind tenant priority preemptible roles goal deadline budget time_limit estimate data "
      "checkpoint_interval checkpoint_cost restart class_id",
      name, kind, tenant, priority, preemptible, roles, goal, deadline, budget, time_limit,
      estimate, data, checkpoint_interval, checkpoint_cost, restart, class_id);
}

template <class Codec, SameStruct<Preparation> S>
void code(Codec& codec, S& preparation) {
  auto& [program, compile] = preparation;
  codec.named("program compile", program, compile);
}

/// Leaves out the fields that were added later; they stand at the end of the records that hold it.
template <class Codec, SameStruct<Submission> S>
void code(Codec& codec, S& submission) {
  [[maybe_unused]] auto& [request, restart, choose_interval, restart_max, after, parallel, prepare,
                          after_any, after_notok, hold] = submission;
  codec.named("request restart choose_interval restart_max after array parallel prepare", request,
              restart, choose_interval, restart_max, after, request.array, parallel, prepare);
}

// --- Placements ---------------------------------------------------------------------------------

template <class Codec, SameStruct<NodeDevices> S>
void code(Codec& codec, S& at) {
  auto& [node, devices] = at;
  codec.named("node devices", node, devices);
}

template <class Codec, SameStruct<Allocation> S>
void code(Codec& codec, S& allocation) {
  auto& [ranks, idle, share] = allocation;
  codec.named("ranks idle share", ranks, idle, share);
}

template <class Codec, SameStruct<PlacedGang> S>
void code(Codec& codec, S& gang) {
  auto& [role, option, allocation, host] = gang;
  codec.named("role option allocation host", role, option, allocation, host);
}

template <class Codec, SameStruct<GangTerms> S>
void code(Codec& codec, S& terms) {
  auto& [length, ratio, clock, draw, plan] = terms;
  codec.named("length ratio clock draw plan", length, ratio, clock, draw, plan);
}

template <class Codec, SameStruct<Reservation> S>
void code(Codec& codec, S& slot) {
  auto& [job, start, gangs, lost_device_seconds] = slot;
  codec.named("job start gangs lost_device_seconds", job, start, gangs, lost_device_seconds);
}

// --- Decisions ----------------------------------------------------------------------------------

template <class Codec, SameStruct<Refusal> S>
void code(Codec& codec, S& refusal) {
  auto& [kind, level, missing] = refusal;
  codec(kind, level, missing);
}

template <class Codec, SameStruct<Price> S>
void code(Codec& codec, S& price) {
  auto& [micro_dollars] = price;
  codec(micro_dollars);
}

template <class Codec, SameStruct<StartJob> S>
void code(Codec& codec, S& start) {
  auto& [job, gangs, terms, expected, delay, price] = start;
  codec(job, gangs, terms, expected, delay, price);
}

template <class Codec, SameStruct<PreemptJob> S>
void code(Codec& codec, S& preempt) {
  auto& [job, in_favour_of, lost_device_seconds] = preempt;
  codec(job, in_favour_of, lost_device_seconds);
}

template <class Codec, SameStruct<ResizeJob> S>
void code(Codec& codec, S& resize) {
  auto& [job, gangs, terms, in_favour_of, gained_device_seconds, cost_device_seconds] = resize;
  codec(job, gangs, terms, in_favour_of, gained_device_seconds, cost_device_seconds);
}

template <class Codec, SameStruct<SetClock> S>
void code(Codec& codec, S& set) {
  auto& [job, gang, terms] = set;
  codec(job, gang, terms);
}

template <class Codec, SameStruct<WantPlan> S>
void code(Codec& codec, S& want) {
  auto& [key] = want;
  codec(key);
}

template <class Codec, SameStruct<StillWaits> S>
void code(Codec& codec, S& waits) {
  auto& [job, refusal] = waits;
  codec(job, refusal);
}

template <class Codec, SameStruct<PassResult> S>
void code(Codec& codec, S& result) {
  // Only the core's own passes, which are in no record, use the other fields: held_back, wake and
  // holds_until.
  auto& [decisions, waiting, reservations, held_back, wake, candidates, placements, holds_until] =
      result;
  codec(decisions, waiting, reservations, candidates, placements);
}

}  // namespace orrery
