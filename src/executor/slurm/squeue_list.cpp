#include "executor/slurm/squeue_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "base/text/utf8.hpp"
#include "executor/slurm/sbatch_answer.hpp"
#include "executor/slurm/slurm_names.hpp"
#include "fleet/import/host_list.hpp"
#include "workload/slurm/sbatch_values.hpp"

namespace orrery {
namespace {

constexpr std::size_t kTextShown = 400;  ///< longest text of Slurm that is passed on
constexpr std::size_t kNameShown = 57;   ///< likewise of a name; printable() may add three bytes

/// The fields of one job in the order of squeue_format().
enum Field : std::size_t {
  kId,
  kName,
  kComment,
  kState,
  kReason,
  kNodes,
  kLeft,
  kStart,
  kEnd,
  kUid,
  kUser,
  kFields
};
constexpr std::string_view kFieldLetters = "ijkTrNLSeUu";
static_assert(kFieldLetters.size() == kFields);
constexpr std::string_view kRecordEnd = ".\n";

/// The state of a job that waited for a reservation which has ended: it stays so even if there is
/// one of that name again.
constexpr std::string_view kReservationGone = "RESV_DEL_HOLD";

/// Reasons of a pending job that no other job's end takes away, as job_reason_string() of Slurm
/// 22.05 to 26.05 names them. With EnforcePartLimits=NO sbatch takes such a job. A job that is held
/// by a person, or waits for a node that is down, is not among them.
constexpr std::array<std::string_view, 14> kNeverStarts = {
    "PartitionTimeLimit", "PartitionNodeLimit",   "PartitionConfig",  "AccountNotAllowed",
    "QOSNotAllowed",      "InvalidAccount",       "InvalidQOS",       "BadConstraints",
    "Constraints",        "MaxMemPerLimit",       "AccountingPolicy", "ReservationDeleted",
    "ReservationInvalid", "QOSMinCpuNotSatisfied"};

/// Whether a limit is one of each job, such as QOSMaxWallDurationPerJobLimit.
bool is_limit_of_a_job(std::string_view reason) {
  const bool is_most = reason.starts_with("AssocMax") || reason.starts_with("QOSMax");
  return is_most && (reason.find("PerJob") != reason.npos || reason.find("PerNode") != reason.npos);
}

/// The fields of a job, and how many nodes it has or asks for.
struct JobFields : std::array<std::string_view, kFields> {
  std::string_view count;
};

struct StateMeaning {
  std::string_view state;
  HoldPhase phase;
};

/// job_state_string() of Slurm 22.05 to 26.05.
constexpr std::array kStates = {
    StateMeaning{"PENDING", HoldPhase::kWaiting},
    StateMeaning{"RUNNING", HoldPhase::kRunning},
    StateMeaning{"COMPLETING", HoldPhase::kEnding},
    StateMeaning{"COMPLETED", HoldPhase::kEnded},
    StateMeaning{"CANCELLED", HoldPhase::kEnded},
    StateMeaning{"FAILED", HoldPhase::kEnded},
    StateMeaning{"TIMEOUT", HoldPhase::kEnded},
    StateMeaning{"PREEMPTED", HoldPhase::kEnded},
    StateMeaning{"DEADLINE", HoldPhase::kEnded},
    StateMeaning{"OUT_OF_MEMORY", HoldPhase::kEnded},
    StateMeaning{"REVOKED", HoldPhase::kEnded},
    StateMeaning{"NODE_FAIL", HoldPhase::kEndedDirty},
    StateMeaning{"BOOT_FAIL", HoldPhase::kEndedDirty},
    StateMeaning{"LAUNCH_FAILED", HoldPhase::kEndedDirty},
    StateMeaning{"RECONFIG_FAIL", HoldPhase::kEndedDirty},
    StateMeaning{"SUSPENDED", HoldPhase::kRunning},
    StateMeaning{"STOPPED", HoldPhase::kRunning},
    StateMeaning{"RESIZING", HoldPhase::kRunning},
    StateMeaning{"SIGNALING", HoldPhase::kRunning},
    StateMeaning{"STAGE_OUT", HoldPhase::kEnding},
    // Its nodes are chosen, but are still being booted.
    StateMeaning{"CONFIGURING", HoldPhase::kWaiting},
    StateMeaning{"POWER_UP_NODE", HoldPhase::kWaiting},
    StateMeaning{"EXPEDITING", HoldPhase::kWaiting},
    StateMeaning{"REQUEUED", HoldPhase::kWaiting},
    StateMeaning{"REQUEUE_FED", HoldPhase::kWaiting},
    StateMeaning{"REQUEUE_HOLD", HoldPhase::kWaiting},
    StateMeaning{"SPECIAL_EXIT", HoldPhase::kWaiting},
    StateMeaning{kReservationGone, HoldPhase::kWaiting},
};

/// Whether a job in a state has nodes: also while they are booted or cleaned, but not while only
/// its files are taken away (STAGE_OUT).
bool has_nodes(const StateMeaning& meaning) {
  constexpr std::array<std::string_view, 3> kOthers = {"COMPLETING", "CONFIGURING",
                                                       "POWER_UP_NODE"};
  return meaning.phase == HoldPhase::kRunning ||
         std::find(kOthers.begin(), kOthers.end(), meaning.state) != kOthers.end();
}

const StateMeaning* meaning_of(std::string_view state) {
  const auto found = std::find_if(kStates.begin(), kStates.end(),
                                  [&](const StateMeaning& each) { return each.state == state; });
  return found == kStates.end() ? nullptr : &*found;
}

tl::unexpected<Error> unreadable(std::string_view what) {
  return environment_error(fmt::format("squeue printed {}", what));
}

tl::unexpected<Error> unreadable_field(const JobFields& job, std::string_view thing, Field field) {
  return unreadable(fmt::format("\"{}\" as {} of job {}", printable(job[field], 60), thing,
                                printable(job[kId], 20)));
}

/// Cuts one job off the front of the text; none: it does not begin with a whole one.
std::optional<JobFields> take_job(std::string_view& text, std::string_view separator) {
  JobFields job;
  if (!text.starts_with(separator)) return std::nullopt;
  text.remove_prefix(separator.size());
  for (std::string_view& field : job) {
    const std::size_t end = text.find(separator);
    if (end == text.npos) return std::nullopt;
    field = text.substr(0, end);
    text.remove_prefix(end + separator.size());
  }
  const std::size_t end = text.find(kRecordEnd);
  if (end == text.npos) return std::nullopt;
  job.count = text.substr(0, end);
  if (job.count.find_first_not_of("0123456789.KMG") != text.npos) return std::nullopt;
  text.remove_prefix(end + kRecordEnd.size());
  return job;
}

bool is_none(std::string_view text) { return text.empty() || text == "None" || text == "(null)"; }

std::string reason_of(const JobFields& job) {
  const std::string_view state = job[kState];
  const bool plain = state == "PENDING" || state == "RUNNING";
  // The reason of a job that was cancelled in the queue is still why it waited there.
  if (is_none(job[kReason]) || state == "CANCELLED")
    return plain ? "" : printable(state, kTextShown);
  const std::string why = printable(job[kReason], kTextShown);
  return plain ? why : fmt::format("{}: {}", state, why);
}

/// Returns a time of day; none: Slurm has none.
Result<std::optional<Instant>> time_of(const JobFields& job, std::string_view thing, Field field) {
  const std::string_view text = job[field];
  if (text == "N/A" || text == "NONE" || text == "None" || text == "Unknown") return std::nullopt;
  const auto time = Instant::parse(fmt::format("{}Z", text));
  if (!time) return unreadable_field(job, thing, field);
  return *time;
}

/// Returns the time until the job's time is over; none: unlimited.
Result<std::optional<Duration>> time_left(const JobFields& job, Instant now_wall) {
  const std::string_view text = job[kLeft];
  if (text == "UNLIMITED" || text == "NOT_SET") return std::nullopt;
  if (text == "INVALID") {
    // So squeue calls a time that is over, and one of more than a year.
    auto end = time_of(job, "the end", kEnd);
    if (!end) return forward_error(end);
    return *end ? std::max(**end - now_wall, Duration()) : Duration();
  }
  const auto seconds = sbatch_time(text);
  if (!seconds) return unreadable_field(job, "the time left", kLeft);
  return *seconds ? Duration::from_seconds((*seconds)->value()) : Duration();
}

Result<std::vector<std::string>> nodes_of(const JobFields& job) {
  if (is_none(job[kNodes])) return std::vector<std::string>();
  auto nodes = expand_host_list(job[kNodes]);
  if (!nodes) return unreadable_field(job, "the nodes", kNodes);
  return nodes;
}

/// Reads the times of a hold whose phase and nodes are read, and which does not wait.
Status read_times(const JobFields& job, Instant now_wall, HoldSeen& seen) {
  const bool over = seen.phase != HoldPhase::kRunning && seen.phase != HoldPhase::kEnding;
  // What is cancelled in the queue gets one time as its start and its end, but no nodes.
  if (over && seen.nodes.empty()) return {};
  auto started = time_of(job, "the start", kStart);
  if (!started) return forward_error(started);
  seen.started = *started;
  if (over) {
    auto ended = time_of(job, "the end", kEnd);
    if (!ended) return forward_error(ended);
    seen.ended = *ended;
    return {};
  }
  auto left = time_left(job, now_wall);
  if (!left) return forward_error(left);
  seen.left = *left;
  return {};
}

/// Whether a job that waits never starts unless a person sees to it.
bool never_starts(const JobFields& job) {
  if (job[kState] == kReservationGone) return true;
  const std::string_view reason = job[kReason];
  return job[kState] == "PENDING" &&
         (is_limit_of_a_job(reason) ||
          std::find(kNeverStarts.begin(), kNeverStarts.end(), reason) != kNeverStarts.end());
}

Result<HoldSeen> read_hold(const HoldKey& key, const JobFields& job, Instant now_wall) {
  HoldSeen seen{.key = key, .id = std::string(job[kId]), .reason = reason_of(job)};
  const std::optional<HoldPhase> phase = hold_phase(job[kState]);
  if (!phase) return unreadable_field(job, "the state", kState);
  seen.phase = *phase;
  if (seen.phase == HoldPhase::kWaiting) {
    seen.stuck = never_starts(job);
    // A large number may be shortened: "1.50K".
    std::uint32_t count = 0;
    const char* const end = job.count.data() + job.count.size();
    const auto read = std::from_chars(job.count.data(), end, count);
    if (read.ec == std::errc() && read.ptr == end) seen.asked = count;
    auto start = time_of(job, "the start", kStart);
    if (!start) return forward_error(start);
    if (*start) seen.starts_in = std::max(**start - now_wall, Duration());
    return seen;
  }
  auto nodes = nodes_of(job);
  if (!nodes) return forward_error(nodes);
  seen.nodes = *std::move(nodes);
  if (Status read = read_times(job, now_wall, seen); !read) return forward_error(read);
  return seen;
}

/// Reads a job that is no hold of the cluster; without nodes: it has none now.
Result<ForeignWork> read_foreign(const JobFields& job, Instant now_wall) {
  const StateMeaning* meaning = meaning_of(job[kState]);
  if (meaning == nullptr) return unreadable_field(job, "the state", kState);
  if (!has_nodes(*meaning)) return ForeignWork();
  auto nodes = nodes_of(job);
  if (!nodes) return forward_error(nodes);
  auto left = time_left(job, now_wall);
  if (!left) return forward_error(left);
  // The time of work that stands still, or is being ended, does not pass.
  const std::string_view state = job[kState];
  const bool stands = state == "SUSPENDED" || state == "STOPPED" || state == "COMPLETING";
  return ForeignWork{.id = printable(job[kId], kNameShown),
                     .user = printable(job[kUser], kNameShown),
                     .nodes = *std::move(nodes),
                     .left = stands ? std::nullopt : *left};
}

/// Returns the key of the hold that a job is; none: it is no hold of this cluster.
Result<std::optional<HoldKey>> key_of(const JobFields& job, const SqueueReading& reading) {
  const auto key = slurm_hold_key(reading.cluster, {.name = job[kName], .comment = job[kComment]});
  // A hold is never a job array or a part of a heterogeneous job.
  if (!key || !is_slurm_job_id(job[kId])) return std::nullopt;
  const std::string_view text = job[kUid];
  std::uint32_t uid = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), uid);
  if (failed != std::errc() || end != text.data() + text.size()) {
    return unreadable_field(job, "the user", kUid);
  }
  if (uid != reading.uid) return std::nullopt;
  return key;
}

/// Adds a job to the list if it belongs there; returns how many nodes it names.
Result<std::size_t> add_job(const JobFields& job, const SqueueReading& reading, SqueueList& list) {
  auto key = key_of(job, reading);
  if (!key) return forward_error(key);
  if (*key) {
    auto seen = read_hold(**key, job, reading.now_wall);
    if (!seen) return forward_error(seen);
    return list.holds.emplace_back(*std::move(seen)).nodes.size();
  }
  if (!list.foreign) return 0;
  auto work = read_foreign(job, reading.now_wall);
  if (!work) return forward_error(work);
  if (work->nodes.empty()) return 0;
  return list.foreign->emplace_back(*std::move(work)).nodes.size();
}

}  // namespace

std::string squeue_separator(std::uint64_t drawn) { return fmt::format("<{:016x}>", drawn); }

std::string squeue_format(std::string_view separator) {
  std::string format(separator);
  format.reserve((kFields + 1) * (separator.size() + 2));
  for (const char letter : kFieldLetters) format.append({'%', letter}).append(separator);
  return format + "%D.";
}

std::optional<HoldPhase> hold_phase(std::string_view state) {
  const StateMeaning* meaning = meaning_of(state);
  if (meaning == nullptr) return std::nullopt;
  return meaning->phase;
}

Result<SqueueList> read_squeue(std::string_view text, const SqueueReading& reading) {
  constexpr std::size_t kNamesMax = 1u << 20;
  SqueueList list;
  if (reading.foreign) list.foreign.emplace();
  std::size_t names = 0;
  while (!text.empty()) {
    const std::string_view rest = text;
    const std::optional<JobFields> job = take_job(text, reading.separator);
    if (!job) {
      return unreadable(fmt::format("\"{}\", not a whole job", printable(rest, 60)));
    }
    Result<std::size_t> added = add_job(*job, reading, list);
    if (!added) return forward_error(added);
    names += *added;
    if (names > kNamesMax) return unreadable("more nodes than a cluster can have");
  }
  return list;
}

}  // namespace orrery
