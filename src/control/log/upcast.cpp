#include "control/log/upcast.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include "control/codec/encoder.hpp"
#include "control/input.hpp"

namespace orrery {
namespace {

constexpr std::uint32_t kJobSubmitted = 0;
static_assert(std::is_same_v<std::variant_alternative_t<kJobSubmitted, Event>, JobSubmitted>);
constexpr std::uint32_t kJobRunning = 3;
static_assert(std::is_same_v<std::variant_alternative_t<kJobRunning, Event>, JobRunning>);
constexpr std::uint32_t kDevicesFreed = 7;
static_assert(std::is_same_v<std::variant_alternative_t<kDevicesFreed, Event>, DevicesFreed>);
constexpr std::uint32_t kJobStopping = 6;
static_assert(std::is_same_v<std::variant_alternative_t<kJobStopping, Event>, JobStopping>);
constexpr std::uint32_t kNodeChanged = 10;
static_assert(std::is_same_v<std::variant_alternative_t<kNodeChanged, Event>, NodeChanged>);
constexpr std::uint32_t kMaintenanceSet = 20;
static_assert(std::is_same_v<std::variant_alternative_t<kMaintenanceSet, Event>, MaintenanceSet>);
constexpr std::uint32_t kSubmitJob = 0;
static_assert(std::is_same_v<std::variant_alternative_t<kSubmitJob, InputKind>, SubmitJob>);
constexpr std::uint32_t kSetMaintenance = 9;
static_assert(
    std::is_same_v<std::variant_alternative_t<kSetMaintenance, InputKind>, SetMaintenance>);
constexpr std::uint32_t kNodeFault = 15;
static_assert(std::is_same_v<std::variant_alternative_t<kNodeFault, InputKind>, NodeFault>);
constexpr std::uint32_t kRanksUp = 10;
static_assert(std::is_same_v<std::variant_alternative_t<kRanksUp, InputKind>, RanksUp>);
constexpr std::uint32_t kRanksEnded = 11;
static_assert(std::is_same_v<std::variant_alternative_t<kRanksEnded, InputKind>, RanksEnded>);
constexpr std::uint32_t kRanksGone = 12;
static_assert(std::is_same_v<std::variant_alternative_t<kRanksGone, InputKind>, RanksGone>);

constexpr std::uint32_t kNodeLent = 32;
static_assert(std::is_same_v<std::variant_alternative_t<kNodeLent, Event>, NodeLent>);
constexpr std::uint32_t kNodeGranted = 29;
static_assert(std::is_same_v<std::variant_alternative_t<kNodeGranted, InputKind>, NodeGranted>);

constexpr std::uint32_t kUpdateService = 34;
static_assert(std::is_same_v<std::variant_alternative_t<kUpdateService, InputKind>, UpdateService>);

constexpr std::uint32_t kReplicaChanged = 35;
static_assert(std::is_same_v<std::variant_alternative_t<kReplicaChanged, Event>, ReplicaChanged>);
constexpr std::uint32_t kReplicaSeen = 33;
static_assert(std::is_same_v<std::variant_alternative_t<kReplicaSeen, InputKind>, ReplicaSeen>);

/// In earlier versions, replicas reported nothing of their caches.
std::string add_no_cache(std::string_view fields) {
  Encoder cache;
  cache(std::uint64_t{0}, std::string());
  return std::string(fields).append(cache.bytes());
}

/// In earlier versions, other texts were another revision.
std::string add_no_revision(std::string_view fields) {
  Encoder revision;
  revision(std::uint32_t{0});
  return std::string(fields).append(revision.bytes());
}

/// In earlier versions, freed devices were freed for every epoch.
std::string add_every_epoch(std::string_view fields) {
  Encoder epoch;
  epoch(kEveryEpoch);
  return std::string(fields).append(epoch.bytes());
}

/// In earlier versions, progress was reported only at the end.
std::string add_no_progress(std::string_view fields) {
  Encoder progress;
  progress(std::optional<bool>());
  return std::string(fields).append(progress.bytes());
}

/// In earlier versions, a submission had no spec to launch.
std::string add_no_spec(std::string_view fields) {
  Encoder spec;
  spec(std::string());
  return std::string(fields).append(spec.bytes());
}

/// In earlier versions, jobs had no submitter and ran as the agent's own user.
std::string add_no_submitter(std::string_view fields) {
  Encoder names;
  names(std::string(), std::string());
  return std::string(fields).append(names.bytes());
}

/// In earlier versions, jobs waited only for jobs that finish, and none was submitted held.
std::string add_no_conditions(std::string_view fields) {
  Encoder conditions;
  conditions(std::vector<JobId>(), std::vector<JobId>(), false);
  return std::string(fields).append(conditions.bytes());
}

/// In earlier versions, exit statuses were not kept.
std::string add_no_exit(std::string_view fields) {
  Encoder exit;
  exit(std::optional<bool>());
  return std::string(fields).append(exit.bytes());
}

/// In earlier versions, every drain counted as an operator's.
std::string add_no_window(std::string_view fields) {
  Encoder window;
  window(false);
  return std::string(fields).append(window.bytes());
}

/// In earlier versions, the source of the state was not reported.
std::string add_no_source(std::string_view fields) {
  Encoder source;
  source(StateSource::kUnsaid);
  return std::string(fields).append(source.bytes());
}

/// In earlier versions, reasons were not kept.
std::string add_no_reason(std::string_view fields) {
  Encoder why;
  why(std::string());
  return std::string(fields).append(why.bytes());
}

/// In earlier versions, every fault counted as found by the node's checks.
std::string add_no_claim(std::string_view fields) {
  Encoder claim;
  claim(JobId(), std::uint32_t{0});
  return std::string(fields).append(claim.bytes());
}

/// In earlier versions, lent nodes were for any job.
std::string add_no_job(std::string_view fields) {
  Encoder job;
  job(JobId());
  return std::string(fields).append(job.bytes());
}

constexpr std::array kUpcasters{
    Upcaster{JournalContent::kEvents, {.id = kJobSubmitted, .version = 1}, add_no_spec},
    Upcaster{JournalContent::kEvents, {.id = kJobSubmitted, .version = 2}, add_no_submitter},
    Upcaster{JournalContent::kEvents, {.id = kJobSubmitted, .version = 3}, add_no_conditions},
    Upcaster{JournalContent::kInputs, {.id = kSubmitJob, .version = 1}, add_no_spec},
    Upcaster{JournalContent::kInputs, {.id = kSubmitJob, .version = 2}, add_no_submitter},
    Upcaster{JournalContent::kInputs, {.id = kSubmitJob, .version = 3}, add_no_conditions},
    Upcaster{JournalContent::kInputs, {.id = kRanksEnded, .version = 1}, add_no_exit},
    Upcaster{JournalContent::kEvents, {.id = kJobStopping, .version = 1}, add_no_exit},
    Upcaster{JournalContent::kEvents, {.id = kJobRunning, .version = 1}, add_no_source},
    Upcaster{JournalContent::kEvents, {.id = kDevicesFreed, .version = 1}, add_every_epoch},
    Upcaster{JournalContent::kEvents, {.id = kDevicesFreed, .version = 2}, add_no_progress},
    Upcaster{JournalContent::kEvents, {.id = kNodeChanged, .version = 1}, add_no_window},
    Upcaster{JournalContent::kEvents, {.id = kNodeChanged, .version = 2}, add_no_reason},
    Upcaster{JournalContent::kEvents, {.id = kMaintenanceSet, .version = 1}, add_no_reason},
    Upcaster{JournalContent::kInputs, {.id = kSetMaintenance, .version = 1}, add_no_reason},
    Upcaster{JournalContent::kInputs, {.id = kNodeFault, .version = 1}, add_no_claim},
    Upcaster{JournalContent::kInputs, {.id = kRanksUp, .version = 1}, add_no_source},
    Upcaster{JournalContent::kInputs, {.id = kRanksGone, .version = 1}, add_every_epoch},
    Upcaster{JournalContent::kEvents, {.id = kNodeLent, .version = 1}, add_no_job},
    Upcaster{JournalContent::kInputs, {.id = kNodeGranted, .version = 1}, add_no_job},
    Upcaster{JournalContent::kInputs, {.id = kUpdateService, .version = 1}, add_no_revision},
    Upcaster{JournalContent::kEvents, {.id = kReplicaChanged, .version = 1}, add_no_cache},
    Upcaster{JournalContent::kInputs, {.id = kReplicaSeen, .version = 1}, add_no_cache}};

}  // namespace

std::span<const Upcaster> builtin_upcasters() { return kUpcasters; }

std::uint8_t present_version(JournalContent content, std::uint32_t type,
                             std::span<const Upcaster> upcasters) {
  const auto raises = std::count_if(upcasters.begin(), upcasters.end(), [&](const Upcaster& one) {
    return one.content == content && one.from.id == type;
  });
  return static_cast<std::uint8_t>(1 + raises);
}

}  // namespace orrery
