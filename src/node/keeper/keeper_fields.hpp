// node/keeper/keeper_fields.hpp - the fields of a keeper's launch and messages, in the order of
// their encoding. Included by the .cpp files that encode them alone: see
// control/codec/field_walk.hpp.
//
// The names of fields are those of proto/orrery/v1/agent.proto; what only keepers see has none.
// A new field goes to the end of what is sent, with a new version of the wire.
#pragma once

#include "control/codec/decoder.hpp"
#include "control/codec/event_fields.hpp"
#include "node/keeper/keeper_launch.hpp"
#include "node/keeper/keeper_wire.hpp"

namespace orrery {

[[nodiscard]] constexpr DeviceNumber::Kind last_of(DeviceNumber::Kind) {
  return DeviceNumber::Kind::kBlock;
}
[[nodiscard]] constexpr Lease::Kind last_of(Lease::Kind) { return Lease::Kind::kBinding; }
[[nodiscard]] constexpr RankStage last_of(RankStage) { return RankStage::kGone; }
[[nodiscard]] constexpr LaunchStyle last_of(LaunchStyle) { return LaunchStyle::kSlurm; }
[[nodiscard]] constexpr DeviceList last_of(DeviceList) { return DeviceList::kTpu; }

template <class Codec, SameStruct<OrderStamp> S>
void code(Codec& codec, S& value) {
  auto& [term, sequence] = value;
  codec.named("term sequence", term, sequence);
}

template <class Codec, SameStruct<AttemptId> S>
void code(Codec& codec, S& value) {
  auto& [job, attempt] = value;
  codec.named("job attempt", job, attempt);
}

template <class Codec, SameStruct<FenceToken> S>
void code(Codec& codec, S& value) {
  auto& [id, epoch] = value;
  codec.named("id epoch", id, epoch);
}

template <class Codec, SameStruct<RankShare> S>
void code(Codec& codec, S& value) {
  auto& [gang, devices, ranks, clock, share] = value;
  codec.named("gang devices ranks clock share", gang, devices, ranks, clock, share);
}

template <class Codec, SameStruct<Lease> S>
void code(Codec& codec, S& value) {
  auto& [kind, length] = value;
  codec.named("kind length", kind, length);
}

template <class Codec, SameStruct<LaunchRanks> S>
void code(Codec& codec, S& value) {
  auto& [token, shares, delay, grace, lease, heard] = value;
  codec.named("token shares delay grace lease heard", token, shares, delay, grace, lease, heard);
}

template <class Codec, SameStruct<EndRanks> S>
void code(Codec& codec, S& value) {
  auto& [token, grace] = value;
  codec.named("token grace", token, grace);
}

template <class Codec, SameStruct<KillRanks> S>
void code(Codec& codec, S& value) {
  auto& [token] = value;
  codec.named("token", token);
}

template <class Codec, SameStruct<RenewLease> S>
void code(Codec& codec, S& value) {
  auto& [id, heard] = value;
  codec.named("attempt heard", id, heard);
}

template <class Codec, SameStruct<AdoptKeeper> S>
void code(Codec&, S&) {}

template <class Codec, SameStruct<ReleaseKeeper> S>
void code(Codec&, S&) {}

template <class Codec, SameStruct<KeeperOrder> S>
void code(Codec& codec, S& value) {
  auto& [stamp, what] = value;
  codec(stamp, what);
}

/// The form of a keeper's messages. Form 2 added the exit status of the rank that ended an attempt.
/// Form 3 added the reports of replicas, form 4 the sizes of their caches.
inline constexpr std::uint8_t kKeeperForm = 4;

template <class Codec>
[[nodiscard]] constexpr std::uint32_t keeper_form(const Codec& /*codec*/) {
  return kKeeperForm;
}
[[nodiscard]] inline std::uint32_t keeper_form(const Decoder& decoder) { return decoder.form(); }

template <class Codec, SameStruct<AttemptEnd> S>
void code(Codec& codec, S& value) {
  auto& [kind, blame, exit] = value;
  codec.named("kind blame", kind, blame);
  if (keeper_form(codec) >= 2) codec.named("exit", exit);
}

template <class Codec, SameStruct<AttemptReport> S>
void code(Codec& codec, S& value) {
  auto& [token, stage, up_epoch, shed_epoch, clocks, end, progress, applied, replica] = value;
  codec.named("token stage up_epoch shed_epoch clocks end progress applied", token, stage, up_epoch,
              shed_epoch, clocks, end, progress, applied);
  if constexpr (std::is_same_v<Codec, Decoder>) {
    if (keeper_form(codec) == 3) return code_without_cache(codec, replica);
  }
  if (keeper_form(codec) >= 4) codec.named("replica", replica);
}

template <class Codec, SameStruct<GangNode> S>
void code(Codec& codec, S& value) {
  auto& [address, ranks] = value;
  codec.named("address ranks", address, ranks);
}

template <class Codec, SameStruct<GangLayout> S>
void code(Codec& codec, S& value) {
  auto& [gang, nodes, here, master_port, restarts] = value;
  codec.named("gang nodes here master_port restarts", gang, nodes, here, master_port, restarts);
}

template <class Codec, SameStruct<LaunchFacts> S>
void code(Codec& codec, S& value) {
  auto& [job, tenant, attempt, plan, progress, hostfile, rankfile, style, per, command, environment,
         restarts_max, devices, device_names, threads, openblas_core_type] = value;
  codec(job, tenant, attempt, plan, progress, hostfile, rankfile, style, per, command, environment,
        restarts_max, devices, device_names, threads, openblas_core_type);
}

template <class Codec, SameStruct<ProcessUser> S>
void code(Codec& codec, S& value) {
  auto& [uid, gid, groups] = value;
  codec(uid, gid, groups);
}

template <class Codec, SameStruct<LogLimits> S>
void code(Codec& codec, S& value) {
  auto& [file_bytes, files] = value;
  codec(file_bytes, files);
}

template <class Codec, SameStruct<RankNeeds> S>
void code(Codec& codec, S& value) {
  auto& [gang, cpu, memory] = value;
  codec.named("gang cpu_thousandths memory_mib", gang, cpu, memory);
}

template <class Codec, SameStruct<DeviceNumber> S>
void code(Codec& codec, S& value) {
  auto& [kind, major, minor] = value;
  codec(kind, major, minor);
}

template <class Codec, SameStruct<NodeDeviceFiles> S>
void code(Codec& codec, S& value) {
  auto& [own, others] = value;
  codec(own, others);
}

template <class Codec, SameStruct<OutputNames> S>
void code(Codec& codec, S& value) {
  auto& [output, errors] = value;
  codec.named("output error", output, errors);
}

template <class Codec, SameStruct<KeeperLaunch> S>
void code(Codec& codec, S& value) {
  auto& [stamp, ranks, facts, gangs, directory, user, logs, work_steps, needs, device_cpu, devices,
         processes_max, copies] = value;
  codec(stamp, ranks, facts, gangs, directory, user, logs, work_steps, needs, device_cpu, devices,
        processes_max, copies);
}

template <class Codec, SameStruct<AgentOrder> S>
void code(Codec& codec, S& value) {
  auto& [order, gangs] = value;
  codec(order, gangs);
}

template <class Codec, SameStruct<LogQuestion> S>
void code(Codec& codec, S& value) {
  auto& [gang, rank, from] = value;
  codec.named("gang rank from", gang, rank, from);
}

template <class Codec, SameStruct<RankProgress> S>
void code(Codec& codec, S& value) {
  auto& [step, saved_step, tokens, loss, checkpoint, bad_lines] = value;
  codec.named("step saved_step tokens loss checkpoint bad_lines", step, saved_step, tokens, loss,
              checkpoint, bad_lines);
}

template <class Codec, SameStruct<KeeperStatus> S>
void code(Codec& codec, S& value) {
  auto& [report, progress, notes] = value;
  codec(report, progress, notes);
}

template <class Codec, SameStruct<RankPace> S>
void code(Codec& codec, S& value) {
  auto& [rank, seconds] = value;
  codec.named("rank seconds", rank, seconds);
}

template <class Codec, SameStruct<RankPaces> S>
void code(Codec& codec, S& value) {
  auto& [paces] = value;
  codec(paces);
}

template <class Codec, SameStruct<WrongResults> S>
void code(Codec& codec, S& value) {
  auto& [evidence] = value;
  codec(evidence);
}

template <class Codec, SameStruct<LogPart> S>
void code(Codec& codec, S& value) {
  auto& [from, bytes] = value;
  codec.named("from bytes", from, bytes);
}

template <class Codec, SameStruct<LogTail> S>
void code(Codec& codec, S& value) {
  auto& [question, found, part] = value;
  codec(question, found, part);
}

template <class Codec, SameStruct<TerminalSize> S>
void code(Codec& codec, S& value) {
  auto& [columns, rows] = value;
  codec.named("columns rows", columns, rows);
}

template <class Codec, SameStruct<ExecOpen> S>
void code(Codec& codec, S& value) {
  auto& [id, gang, rank, command, terminal, terminal_type] = value;
  codec.named("id gang rank command terminal terminal_type", id, gang, rank, command, terminal,
              terminal_type);
}

template <class Codec, SameStruct<ExecInput> S>
void code(Codec& codec, S& value) {
  auto& [id, bytes, end, terminal, taken, close] = value;
  codec.named("id bytes end terminal taken close", id, bytes, end, terminal, taken, close);
}

template <class Codec, SameStruct<KeeperAbilities> S>
void code(Codec& codec, S& value) {
  auto& [commands] = value;
  codec(commands);
}

template <class Codec, SameStruct<ExecOutput> S>
void code(Codec& codec, S& value) {
  auto& [id, output, errors, taken] = value;
  codec.named("id output errors taken", id, output, errors, taken);
}

template <class Codec, SameStruct<ExecEnd> S>
void code(Codec& codec, S& value) {
  auto& [id, status, error] = value;
  codec.named("id status error", id, status, error);
}

}  // namespace orrery
