#include "verbs/catalog/fleet_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace orrery {
namespace {

using enum CheckVerdict;
using Nodes = std::vector<const v1::Node*>;

std::vector<std::string> names_of(const Nodes& nodes) {
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const v1::Node* node : nodes) names.push_back(node->name());
  return names;
}

/// What is compared, and of which nodes.
struct Compared {
  const char* check;
  std::string of;  ///< " with h100", or nothing
  const std::string& (v1::Node::*value)() const;
  const char* advice;
};

std::string shown(const std::string& value) { return value.empty() ? "not reported" : value; }

/// What is usual, then each other value with its nodes. Nothing where no node tells any.
void compare(const Compared& compared, const Nodes& nodes, std::vector<CheckFinding>& findings) {
  std::map<std::string, Nodes> by_value;
  for (const v1::Node* node : nodes) by_value[(node->*compared.value)()].push_back(node);
  if (by_value.empty() || (by_value.size() == 1 && by_value.begin()->first.empty())) return;
  const auto usual =
      std::ranges::max_element(by_value, {}, [](const auto& entry) { return entry.second.size(); });
  findings.push_back({.check = compared.check,
                      .found = fmt::format("{} on {} of {}{}", shown(usual->first),
                                           usual->second.size(), nodes.size(), compared.of)});
  for (const auto& [value, having] : by_value) {
    if (value == usual->first) continue;
    findings.push_back(
        {.check = compared.check,
         .verdict = kWarning,
         .found = fmt::format("{} on {}{}", shown(value), having.size(), compared.of),
         .advice = compared.advice,
         .nodes = names_of(having)});
  }
}

CheckFinding agents(const std::vector<v1::Node>& nodes) {
  Nodes gone;
  Nodes drained;
  for (const v1::Node& node : nodes) {
    if (!node.connected()) (node.drain() ? drained : gone).push_back(&node);
  }
  CheckFinding finding{.check = "agents"};
  const std::size_t there = nodes.size() - gone.size() - drained.size();
  finding.found = fmt::format("{} of {} connected", there, nodes.size());
  if (!drained.empty()) finding.found += fmt::format(", {} of the others drained", drained.size());
  if (gone.empty()) return finding;
  finding.verdict = kProblem;
  finding.advice = "no job starts on these nodes: check the agent's log on them, or drain them";
  finding.nodes = names_of(gone);
  return finding;
}

/// Reports nodes that fleet.yaml and the running cluster do not have in common.
void compare_file(const v1::Cluster& cluster, std::vector<CheckFinding>& findings) {
  const auto add = [&](const auto& names, std::string_view what, std::string_view advice) {
    if (names.empty()) return;
    findings.push_back({.check = "fleet.yaml",
                        .verdict = kWarning,
                        .found = std::string(what),
                        .advice = std::string(advice),
                        .nodes = {names.begin(), names.end()}});
  };
  add(cluster.unknown_nodes(), "it names nodes that the cluster does not have",
      "`orrery fleet apply DIR/fleet.yaml` adds them; or remove them from the file");
  add(cluster.missing_nodes(), "it does not name all nodes of the cluster",
      "`orrery fleet apply DIR/fleet.yaml` retires them; or restore them in the file");
}

/// A changed line that no operator wrote is damage.
void report_files(const v1::Cluster& cluster, std::vector<CheckFinding>& findings) {
  for (const std::string& change : cluster.file_changes()) {
    findings.push_back({.check = "files", .verdict = kWarning, .found = change});
  }
  if (cluster.file_changes().empty()) return;
  findings.back().advice =
      "since the controller was started; if no operator changed the file, it is damaged: restore "
      "it. fleet.yaml takes effect with `orrery fleet apply DIR/fleet.yaml`. This is reported "
      "until "
      "the next start";
}

CheckFinding programs(const v1::Cluster& cluster, const Nodes& nodes) {
  Nodes others;
  for (const v1::Node* node : nodes) {
    if (node->version() != cluster.version()) others.push_back(node);
  }
  CheckFinding finding{
      .check = "program",
      .found = fmt::format("{} on the controller and on {} of {} agents", cluster.version(),
                           nodes.size() - others.size(), nodes.size())};
  if (others.empty()) return finding;
  finding.verdict = kWarning;
  finding.advice =
      "install the controller's version on these nodes; jobs continue while an agent restarts";
  finding.nodes = names_of(others);
  return finding;
}

CheckFinding log_of(const v1::Cluster& cluster) {
  CheckFinding finding{.check = "log", .found = "the controller accepts changes"};
  if (cluster.halted().empty() && !cluster.log_warning().empty()) {
    finding.verdict = kWarning;
    finding.found = fmt::format("the shared log has {} MiB", cluster.log_bytes() >> 20);
    finding.advice = cluster.log_warning();
    return finding;
  }
  if (cluster.halted().empty()) return finding;
  finding.verdict = kProblem;
  finding.found = "the controller is halted";
  finding.advice = cluster.halted();
  return finding;
}

/// Jobs without a user of their own can read every key of a node whose agent is root.
CheckFinding users(const Nodes& nodes) {
  Nodes root;
  for (const v1::Node* node : nodes) {
    if (node->job_users() == "any") root.push_back(node);
  }
  CheckFinding finding{.check = "users"};
  if (root.empty()) {
    finding.found = "no node runs jobs as root";
    return finding;
  }
  finding.verdict = kWarning;
  finding.found = fmt::format("allow_agent_user on {} of {}: jobs without run_as run as root there",
                              root.size(), nodes.size());
  finding.advice =
      "such a job can read the keys of the node and stop other jobs: set run_as for each tenant in "
      "tenants.yaml and remove allow_agent_user";
  finding.nodes = names_of(root);
  return finding;
}

}  // namespace

std::vector<CheckFinding> check_fleet(const v1::Cluster& cluster,
                                      const std::vector<v1::Node>& nodes) {
  Nodes known;
  std::map<std::string, Nodes> by_type;
  for (const v1::Node& node : nodes) {
    if (node.version().empty()) continue;
    known.push_back(&node);
    by_type[node.accelerator()].push_back(&node);
  }
  std::vector<CheckFinding> findings{log_of(cluster), agents(nodes), programs(cluster, known),
                                     users(known)};
  compare_file(cluster, findings);
  report_files(cluster, findings);
  compare({"kernel", "", &v1::Node::kernel, "the rest of the fleet runs a different kernel"}, known,
          findings);
  for (const auto& [type, having] : by_type) {
    const std::string with = " with " + type;
    compare({"driver", with, &v1::Node::driver,
             "a job may span both versions: a gang is as fast as its slowest node, and collectives "
             "may refuse to start"},
            having, findings);
    compare(
        {"firmware", with, &v1::Node::firmware, "the rest of these nodes have a different version"},
        having, findings);
  }
  return findings;
}

}  // namespace orrery
