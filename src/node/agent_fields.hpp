// node/agent_fields.hpp - the fields of the messages between an agent and its controller
// (node/agent_wire.hpp), with their names in proto/orrery/v1/agent.proto. Included by the .cpp
// files that encode them alone: see control/codec/field_walk.hpp.
#pragma once

#include "node/agent_wire.hpp"
#include "node/keeper/keeper_fields.hpp"

namespace orrery {

[[nodiscard]] constexpr RefusalReason last_of(RefusalReason) { return RefusalReason::kLeaseOver; }

// --- Opening a stream ---------------------------------------------------------------------------

template <class Codec, SameStruct<NodeInventory> S>
void code(Codec& codec, S& value) {
  auto& [accelerator, accelerators, emulated, cores, memory, kernel, driver, machine, firmware,
         processor, packages, numa_nodes] = value;
  codec.named(
      "accelerator accelerators emulated cores memory_bytes kernel driver machine firmware "
      "processor packages numa_nodes",
      accelerator, accelerators, emulated, cores, memory, kernel, driver, machine, firmware,
      processor, packages, numa_nodes);
}

/// The server adds the key that the agent shows: it is not sent.
template <class Codec, SameStruct<HoldName> S>
void code(Codec& codec, S& value) {
  auto& [key, id] = value;
  codec.named("key id", key, id);
}

template <class Codec, SameStruct<AgentOpening> S>
void code(Codec& codec, S& value) {
  [[maybe_unused]] auto& [node, address, boot, incarnation, version, inventory, process, key, user,
                          job_users, runs_commands, hold] = value;
  codec.named(
      "node address boot incarnation version inventory process user job_users runs_commands hold",
      node, address, boot, incarnation, version, inventory, process, user, job_users, runs_commands,
      hold);
}

template <class Codec, SameStruct<AgentWelcome> S>
void code(Codec& codec, S& value) {
  auto& [cluster, node, beat, repeat] = value;
  codec.named("cluster node beat repeat", cluster, node, beat, repeat);
}

// --- Orders -------------------------------------------------------------------------------------

template <class Codec, SameStruct<AgentIdentity> S>
void code(Codec& codec, S& value) {
  auto& [node, boot, incarnation] = value;
  codec.named("node boot incarnation", node, boot, incarnation);
}

template <class Codec, SameStruct<MendNode> S>
void code(Codec& codec, S& value) {
  auto& [layer] = value;
  codec.named("layer", layer);
}

template <class Codec, class S>
  requires SameStruct<S, Reconcile> || SameStruct<S, BurnIn> || SameStruct<S, Mended>
void code(Codec&, S&) {}

template <class Codec, SameStruct<Acknowledge> S>
void code(Codec& codec, S& value) {
  auto& [number] = value;
  codec.named("number", number);
}

template <class Codec, SameStruct<Order> S>
void code(Codec& codec, S& value) {
  auto& [cluster, stamp, to, what] = value;
  codec.named("cluster stamp to what", cluster, stamp, to, what);
}

template <class Codec, SameStruct<NodeProgram> S>
void code(Codec& codec, S& value) {
  auto& [job, tenant, plan, framework, per, command, environment, directory, restarts_max,
         work_steps, gangs, user, needs, copies] = value;
  codec.named(
      "job tenant plan framework per command environment directory restarts_max work_steps gangs "
      "user needs copies",
      job, tenant, plan, framework, per, command, environment, directory, restarts_max, work_steps,
      gangs, user, needs, copies);
}

template <class Codec, SameStruct<NodeOrder> S>
void code(Codec& codec, S& value) {
  auto& [order, program] = value;
  codec.named("order program", order, program);
}

// --- Reports ------------------------------------------------------------------------------------

template <class Codec, SameStruct<Signals> S>
void code(Codec& codec, S& value) {
  auto& [power, temperature, xid, ecc, link] = value;
  codec.named("power_w temperature_c xid_count ecc_count link_errors", power, temperature, xid, ecc,
              link);
}

template <class Codec, SameStruct<Heartbeat> S>
void code(Codec& codec, S& value) {
  auto& [sequence, at, signals] = value;
  codec.named("sequence at signals", sequence, at, signals);
}

template <class Codec, SameStruct<NumberedReport> S>
void code(Codec& codec, S& value) {
  auto& [number, report] = value;
  codec.named("number report", number, report);
}

template <class Codec, SameStruct<Hello> S>
void code(Codec& codec, S& value) {
  auto& [answers, at, attempts] = value;
  codec.named("answers at attempts", answers, at, attempts);
}

template <class Codec, SameStruct<Refused> S>
void code(Codec& codec, S& value) {
  auto& [stamp, why, term] = value;
  codec.named("stamp why term", stamp, why, term);
}

template <class Codec, SameStruct<HealthFault> S>
void code(Codec& codec, S& value) {
  auto& [layer, evidence, repair, stops_jobs, claimed_by] = value;
  std::optional<AttemptId> claim;
  if (claimed_by.job.valid()) claim = claimed_by;
  codec.named("layer evidence repair stops_jobs claimed_by", layer, evidence, repair, stops_jobs,
              claim);
  if constexpr (!std::is_const_v<S>) claimed_by = claim.value_or(AttemptId{});
}

template <class Codec, SameStruct<Report> S>
void code(Codec& codec, S& value) {
  auto& [from, number, what] = value;
  codec.named("from number what", from, number, what);
}

// --- Logs, notes, readings ----------------------------------------------------------------------

template <class Codec, SameStruct<AttemptLogQuestion> S>
void code(Codec& codec, S& value) {
  auto& [id, attempt, log, since] = value;
  codec.named("id attempt log since", id, attempt, log, since);
}

template <class Codec, SameStruct<AttemptLogPart> S>
void code(Codec& codec, S& value) {
  auto& [id, found, size, part, since_from] = value;
  codec.named("id found size part since_from", id, found, size, part, since_from);
}

template <class Codec, SameStruct<KeptLog> S>
void code(Codec& codec, S& value) {
  auto& [attempt, gang, rank, part] = value;
  codec.named("attempt gang rank part", attempt, gang, rank, part);
}

template <class Codec, SameStruct<HoldEnding> S>
void code(Codec& codec, S& value) {
  auto& [why] = value;
  codec.named("why", why);
}

template <class Codec, SameStruct<AttemptNotes> S>
void code(Codec& codec, S& value) {
  auto& [attempt, progress, notes, paces] = value;
  codec.named("attempt progress notes paces", attempt, progress, notes, paces);
}

template <class Codec, SameStruct<AcceleratorReading> S>
void code(Codec& codec, S& value) {
  auto& [power, temperature, busy, memory, used, memory_errors, link_errors, clock] = value;
  codec.named(
      "power_w temperature_c busy memory_bytes memory_used_bytes memory_errors link_errors clock",
      power, temperature, busy, memory, used, memory_errors, link_errors, clock);
}

template <class Codec, SameStruct<NodeReading> S>
void code(Codec& codec, S& value) {
  auto& [cpu_busy, memory, used, received, sent, network_errors, link_errors, accelerators, unwell,
         clock_refusal, burn_in] = value;
  codec.named(
      "cpu_busy memory_bytes memory_used_bytes received_bytes sent_bytes network_errors "
      "link_errors accelerators unwell clock_refusal burn_in",
      cpu_busy, memory, used, received, sent, network_errors, link_errors, accelerators, unwell,
      clock_refusal, burn_in);
}

// --- Commands beside ranks ----------------------------------------------------------------------

template <class Codec, SameStruct<AttemptExecOpen> S>
void code(Codec& codec, S& value) {
  auto& [attempt, open] = value;
  codec.named("attempt open", attempt, open);
}

}  // namespace orrery
