#include "executor/slurm/slurm_lists.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text/name_check.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

/// The error that scontrol printed something else than a list of nodes.
tl::unexpected<Error> no_nodes(std::string_view text, std::string_view expected) {
  return environment_error(
      fmt::format("scontrol printed \"{}\", not {}", printable(text, 60), expected));
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
  // Older versions print DRAINING and FAILING only for nodes that have jobs.
  constexpr std::array<std::string_view, 5> kUsed = {"ALLOCATED", "MIXED", "COMPLETING", "DRAINING",
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
    if (has(kUsed, word)) node.used = true;
    if (has(kDrained, word)) node.drained = node.out_of_service = true;
  }
}

Result<SlurmNode> read_node(std::string_view line) {
  const auto name = value_of(line, "NodeName=");
  const auto state = value_of(line, " State=");
  if (!name || name->empty() || !state || state->empty()) {
    return no_nodes(line, "a node with its state");
  }
  constexpr std::size_t kShown = 400;  // longest text of Slurm that is passed on
  SlurmNode node;
  node.name = *name;
  read_node_state(*state, node);
  const std::string_view reason = node_reason(line);
  node.reason = printable(reason.empty() && node.out_of_service ? *state : reason, kShown);
  // slurmd drains a node on which processes outlive SIGKILL.
  if (reason.find("Kill task failed") != reason.npos) node.may_keep_processes = true;
  return node;
}

/// Returns the work that must be on used nodes that have no listed job; without nodes: there is
/// none.
ForeignWork hidden_work(const ManagerListing& listing, const std::vector<SlurmNode>& nodes) {
  std::set<std::string_view> listed;
  for (const ForeignWork& work : *listing.foreign) {
    listed.insert(work.nodes.begin(), work.nodes.end());
  }
  for (const HoldSeen& hold : listing.holds) {
    const bool over = hold.phase == HoldPhase::kEnded || hold.phase == HoldPhase::kEndedDirty;
    if (!over) listed.insert(hold.nodes.begin(), hold.nodes.end());
  }
  ForeignWork hidden{.id = "a job that is not shown", .user = "unknown", .nodes = {}, .left = {}};
  for (const SlurmNode& node : nodes) {
    if (node.used && !listed.contains(node.name)) hidden.nodes.push_back(node.name);
  }
  return hidden;
}

}  // namespace

Result<std::vector<SlurmNode>> read_slurm_nodes(std::string_view text) {
  constexpr std::string_view kNodeStart = "NodeName=";
  if (!text.starts_with(kNodeStart) || !text.ends_with('\n')) {
    return no_nodes(text, "a whole list of nodes");
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

ManagerListing join_slurm_lists(SqueueList jobs, const std::vector<SlurmNode>& nodes) {
  ManagerListing listing{
      .complete = true, .holds = std::move(jobs.holds), .foreign = std::move(jobs.foreign)};
  listing.nodes.reserve(nodes.size());
  if (listing.foreign) {
    ForeignWork hidden = hidden_work(listing, nodes);
    if (!hidden.nodes.empty()) listing.foreign->push_back(std::move(hidden));
  }
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
