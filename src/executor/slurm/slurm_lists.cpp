#include "executor/slurm/slurm_lists.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text/name_check.hpp"
#include "base/text/utf8.hpp"
#include "executor/slurm/sbatch_answer.hpp"
#include "executor/slurm/slurm_names.hpp"
#include "fleet/import/host_list.hpp"
#include "workload/slurm/sbatch_values.hpp"

namespace orrery {
namespace {

constexpr std::size_t kShown = 400;  ///< longest text of Slurm that is passed on

/// The fields of one job in the order of squeue_format().
enum Field : std::size_t { kId, kName, kComment, kState, kReason, kNodes, kLeft, kStart, kFields };
constexpr std::string_view kFieldLetters = "ijkTrNLS";
static_assert(kFieldLetters.size() == kFields);
constexpr std::string_view kRecordEnd = ".\n";

using JobFields = std::array<std::string_view, kFields>;

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
    StateMeaning{"RESV_DEL_HOLD", HoldPhase::kWaiting},
};

tl::unexpected<Error> unreadable(std::string_view program, std::string_view what) {
  return environment_error(fmt::format("{} printed {}", program, what));
}

tl::unexpected<Error> unreadable_field(const JobFields& job, std::string_view thing, Field field) {
  return unreadable("squeue", fmt::format("\"{}\" as {} of job {}", printable(job[field], 60),
                                          thing, printable(job[kId], 20)));
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
  if (!text.starts_with(kRecordEnd)) return std::nullopt;
  text.remove_prefix(kRecordEnd.size());
  return job;
}

bool is_none(std::string_view text) { return text.empty() || text == "None" || text == "(null)"; }

std::string reason_of(const JobFields& job) {
  const std::string_view state = job[kState];
  const bool plain = state == "PENDING" || state == "RUNNING";
  // The reason of a job that was cancelled in the queue is still why it waited there.
  if (is_none(job[kReason]) || state == "CANCELLED") return plain ? "" : printable(state, kShown);
  const std::string why = printable(job[kReason], kShown);
  return plain ? why : fmt::format("{}: {}", state, why);
}

Result<std::optional<Duration>> time_left(const JobFields& job) {
  const std::string_view text = job[kLeft];
  if (text == "UNLIMITED" || text == "NOT_SET") return std::nullopt;
  if (text == "INVALID") return Duration();  // squeue's word for a time that is over
  const auto seconds = sbatch_time(text);
  if (!seconds) return unreadable_field(job, "the time left", kLeft);
  return *seconds ? Duration::from_seconds((*seconds)->value()) : Duration();
}

Result<std::optional<Duration>> start_of(const JobFields& job, Instant now_wall) {
  if (job[kStart] == "N/A") return std::nullopt;
  const auto start = Instant::parse(fmt::format("{}Z", job[kStart]));
  if (!start) return unreadable_field(job, "the start", kStart);
  return std::max(*start - now_wall, Duration());
}

Result<HoldSeen> read_hold(const HoldKey& key, const JobFields& job, Instant now_wall) {
  HoldSeen seen{.key = key, .id = std::string(job[kId]), .reason = reason_of(job)};
  const std::optional<HoldPhase> phase = hold_phase(job[kState]);
  if (!phase) return unreadable_field(job, "the state", kState);
  seen.phase = *phase;
  if (seen.phase == HoldPhase::kWaiting) {
    auto start = start_of(job, now_wall);
    if (!start) return forward_error(start);
    seen.starts_in = *start;
    return seen;
  }
  if (seen.phase == HoldPhase::kRunning || seen.phase == HoldPhase::kEnding) {
    auto left = time_left(job);
    if (!left) return forward_error(left);
    seen.left = *left;
  }
  if (is_none(job[kNodes])) return seen;
  auto nodes = expand_host_list(job[kNodes]);
  if (!nodes) return unreadable_field(job, "the nodes", kNodes);
  seen.nodes = *std::move(nodes);
  return seen;
}

/// Returns the value behind " KEY=" up to a blank.
std::optional<std::string_view> value_of(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == line.npos) return std::nullopt;
  const std::string_view value = line.substr(at + key.size());
  return value.substr(0, value.find(' '));
}

/// Returns the reason at the end of a node's line; empty: it has none.
std::string_view node_reason(std::string_view line) {
  constexpr std::string_view kReasonKey = " Reason=";
  const std::size_t at = line.find(kReasonKey);
  if (at == line.npos) return {};
  std::string_view reason = line.substr(at + kReasonKey.size());
  for (const std::string_view next : {" Comment=", " Extra=", " InstanceId=", " InstanceType="}) {
    reason = reason.substr(0, reason.find(next));
  }
  while (reason.ends_with(' ')) reason.remove_suffix(1);
  return reason;
}

/// What the words of a node's state say, such as "MIXED+DRAIN+NOT_RESPONDING", or "IDLE*" of older
/// versions.
void read_node_state(std::string_view state, SlurmNode& node) {
  constexpr std::array<std::string_view, 3> kSilent = {"DOWN", "UNKNOWN", "NOT_RESPONDING"};
  constexpr std::array<std::string_view, 4> kOut = {"ERROR", "FUTURE", "INVALID_REG",
                                                    "REBOOT_ISSUED"};
  constexpr std::array<std::string_view, 5> kDrained = {"DRAIN", "DRAINING", "DRAINED", "FAIL",
                                                        "FAILING"};
  const auto has = [](const auto& words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  while (!state.empty()) {
    std::string_view word = state.substr(0, state.find('+'));
    state.remove_prefix(std::min(state.size(), word.size() + 1));
    const std::size_t letters = word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    const bool starred = letters != word.npos && word.substr(letters).find('*') != word.npos;
    word = word.substr(0, letters);
    if (starred || has(kSilent, word)) node.may_keep_processes = node.out_of_service = true;
    if (has(kOut, word)) node.out_of_service = true;
    if (has(kDrained, word)) node.drained = node.out_of_service = true;
  }
}

Result<SlurmNode> read_node(std::string_view line) {
  const auto name = value_of(line, "NodeName=");
  const auto state = value_of(line, " State=");
  if (!name || name->empty() || !state || state->empty()) {
    return unreadable("scontrol",
                      fmt::format("\"{}\", not a node with its state", printable(line, 60)));
  }
  SlurmNode node;
  node.name = *name;
  read_node_state(*state, node);
  const std::string_view reason = node_reason(line);
  node.reason = printable(reason.empty() && node.out_of_service ? *state : reason, kShown);
  // slurmd drains a node on which processes outlive SIGKILL.
  if (reason.find("Kill task failed") != reason.npos) node.may_keep_processes = true;
  return node;
}

}  // namespace

std::string squeue_separator(std::uint64_t drawn) { return fmt::format("<{:016x}>", drawn); }

std::string squeue_format(std::string_view separator) {
  std::string format(separator);
  format.reserve((kFields + 1) * (separator.size() + 2));
  for (const char letter : kFieldLetters) format.append({'%', letter}).append(separator);
  return format + '.';
}

std::optional<HoldPhase> hold_phase(std::string_view state) {
  const auto found = std::find_if(kStates.begin(), kStates.end(),
                                  [&](const StateMeaning& each) { return each.state == state; });
  if (found == kStates.end()) return std::nullopt;
  return found->phase;
}

Result<std::vector<HoldSeen>> read_squeue(std::string_view text, const SqueueReading& reading) {
  constexpr std::size_t kNamesMax = 1u << 20;
  std::vector<HoldSeen> holds;
  std::size_t names = 0;
  while (!text.empty()) {
    const std::string_view rest = text;
    const std::optional<JobFields> job = take_job(text, reading.separator);
    if (!job) {
      return unreadable("squeue", fmt::format("\"{}\", not a whole job", printable(rest, 60)));
    }
    const auto key =
        slurm_hold_key(reading.cluster, {.name = (*job)[kName], .comment = (*job)[kComment]});
    // A hold is never a job array or a part of a heterogeneous job.
    if (!key || !is_slurm_job_id((*job)[kId])) continue;
    auto seen = read_hold(*key, *job, reading.now_wall);
    if (!seen) return forward_error(seen);
    names += seen->nodes.size();
    if (names > kNamesMax) return unreadable("squeue", "more nodes than a cluster can have");
    holds.push_back(*std::move(seen));
  }
  return holds;
}

Result<std::vector<SlurmNode>> read_slurm_nodes(std::string_view text) {
  constexpr std::string_view kNodeStart = "NodeName=";
  if (!text.starts_with(kNodeStart) || !text.ends_with('\n')) {
    return unreadable("scontrol",
                      fmt::format("\"{}\", not a whole list of nodes", printable(text, 60)));
  }
  std::vector<SlurmNode> nodes;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    if (!line.starts_with(kNodeStart)) continue;  // a line of the comment before it
    auto node = read_node(line);
    if (!node) return forward_error(node);
    if (check_name(node->name, {})) nodes.push_back(*std::move(node));
  }
  return nodes;
}

bool tracks_all_processes(std::string_view config) {
  constexpr std::string_view kKey = "\nProctrackType";
  const std::size_t key = config.find(kKey);
  if (key == config.npos) return false;
  const std::string_view line = config.substr(key + 1, config.find('\n', key + 1) - key - 1);
  return line.ends_with("= proctrack/cgroup");
}

void doubt_ends(std::vector<HoldSeen>& holds) {
  for (HoldSeen& hold : holds) {
    if (hold.phase != HoldPhase::kEnded) continue;
    hold.phase = HoldPhase::kEndedDirty;
    hold.reason += "; Slurm does not track processes by control groups (ProctrackType)";
  }
}

ManagerListing join_slurm_lists(std::vector<HoldSeen> holds, const std::vector<SlurmNode>& nodes) {
  ManagerListing listing{.complete = true, .holds = std::move(holds)};
  listing.nodes.reserve(nodes.size());
  std::set<std::string_view> keeping;
  for (const SlurmNode& node : nodes) {
    if (node.may_keep_processes) keeping.insert(node.name);
    listing.nodes.push_back(node);
  }
  for (HoldSeen& hold : listing.holds) {
    if (hold.phase != HoldPhase::kEnded) continue;
    const auto kept = std::find_if(hold.nodes.begin(), hold.nodes.end(),
                                   [&](const auto& name) { return keeping.contains(name); });
    if (kept == hold.nodes.end()) continue;
    hold.phase = HoldPhase::kEndedDirty;
    hold.reason += fmt::format("; Slurm cannot end processes on {}", *kept);
  }
  return listing;
}

}  // namespace orrery
