#include "verbs/local/local_answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/text/count_text.hpp"
#include "verbs/local/local_gateway.hpp"

namespace orrery {

Result<RunningCluster> running_cluster(LocalCluster& cluster, std::vector<std::string> started) {
  const std::vector<LocalProcess>& processes = cluster.record().processes;
  const auto count_of = [&](LocalRole role) {
    return static_cast<std::size_t>(std::ranges::count(processes, role, &LocalProcess::role));
  };
  const Result<bool> root = cluster.runs_jobs_as_root();
  if (!root) return tl::unexpected(root.error());
  return RunningCluster{.directory = cluster.directory(),
                        .asked = {},
                        .address = cluster.address(),
                        .gateway = gateway_url(cluster.record()),
                        .nodes = cluster.nodes(),
                        .lent = cluster.others().lent,
                        .controllers = count_of(LocalRole::kController),
                        .processes = processes.size(),
                        .unknown = cluster.others().unknown,
                        .started = std::move(started),
                        .jobs_run_as_root = *root};
}

namespace {

std::string nodes_text(const RunningCluster& cluster) {
  std::string text;
  if (!cluster.nodes.empty()) {
    const LocalNode& node = cluster.nodes.front();
    text = fmt::format("Each node has {} x {}, emulated: programs run on this machine's CPU.\n",
                       node.accelerators, node.type);
  }
  if (cluster.lent > 0) {
    text +=
        fmt::format("{} lent by resource managers when jobs need {}: `orrery holds`.\n",
                    cluster.lent == 1 ? "One node is" : fmt::format("{} nodes are", cluster.lent),
                    cluster.lent == 1 ? "it" : "them");
  }
  if (!cluster.gateway.empty()) {
    text += fmt::format("Services answer at {}: `orrery serve`.\n", cluster.gateway);
  }
  return text + "\n";
}

}  // namespace

RunningText running_text(const RunningCluster& cluster) {
  const std::string what = cluster.started.empty() ? "already running"
                           : cluster.started.size() == cluster.processes
                               ? "started"
                               : fmt::format("started {}; the rest was already running",
                                             fmt::join(cluster.started, ", "));
  const std::string with =
      cluster.controllers > 1 ? fmt::format(" with {} controllers", cluster.controllers) : "";
  RunningText text;
  const std::string nodes = cluster.nodes.empty() ? counted(cluster.lent, "lent node")
                                                  : counted(cluster.nodes.size(), "node");
  text.head = fmt::format("A local cluster of {}{} at {} ({}): {}.\n", nodes, with, cluster.address,
                          cluster.directory, what);
  if (!cluster.unknown.empty()) {
    text.note = fmt::format(
        "note: fleet.yaml names {}, which this cluster does not have: `orrery fleet apply "
        "{}/fleet.yaml` adds them\n",
        fmt::join(cluster.unknown, ", "), cluster.directory);
  }
  text.rest = nodes_text(cluster);
  if (cluster.jobs_run_as_root) {
    text.rest +=
        "WARNING: jobs run as root, so that any job can read the keys of this cluster and stop "
        "other jobs.\nDo not let other users submit jobs, or set run_as for each tenant in "
        "DIR/tenants.yaml.\n\n";
  }
  const std::string dir = cluster.asked.empty() ? "" : fmt::format(" --dir {}", cluster.asked);
  text.rest += fmt::format(
      "  orrery{0} submit -- python3 -c 'print(\"hello\")'\n"
      "  orrery{0} jobs --all\n"
      "  orrery{0} logs -f 0\n"
      "  orrery{0} down\n",
      dir);
  return text;
}

Json running_json(const RunningCluster& cluster) {
  Json names = Json::array();
  for (const LocalNode& each : cluster.nodes) names.push_back(each.name);
  const LocalNode node = cluster.nodes.empty() ? LocalNode() : cluster.nodes.front();
  return {{"dir", cluster.directory},
          {"address", cluster.address},
          {"gateway", cluster.gateway},
          {"nodes", names},
          {"lent_nodes", cluster.lent},
          {"controllers", cluster.controllers},
          {"accelerator", node.type},
          {"accelerators", node.accelerators},
          {"emulated", true},
          {"unknown_nodes", cluster.unknown},
          {"jobs_run_as_root", cluster.jobs_run_as_root},
          {"started", cluster.started}};
}

VerbAnswer ended_answer(const LocalCluster::Ended& ended, LocalCluster::Keepers keepers) {
  const std::string stores =
      ended.stores == 0 ? "" : fmt::format(" and {} of etcd", counted(ended.stores, "member"));
  const std::string gateways = ended.gateways == 0 ? "" : counted(ended.gateways, "gateway") + ", ";
  return {fmt::format("stopped {}, {}{} and {}{}; {}\n", counted(ended.controllers, "controller"),
                      gateways, counted(ended.agents, "agent"), counted(ended.keepers, "keeper"),
                      stores,
                      keepers == LocalCluster::Keepers::kKeep
                          ? "running jobs continue, and `orrery up` takes them over"
                          : "jobs that have not ended restart with `orrery up`"),
          {{"controllers", ended.controllers},
           {"gateways", ended.gateways},
           {"agents", ended.agents},
           {"keepers", ended.keepers},
           {"stores", ended.stores}}};
}

Status check_ended(const LocalCluster::Ended& ended) {
  if (ended.other_controller == 0) return {};
  return infeasible(
      fmt::format("a controller that `orrery up` did not start is still running: process {0}; "
                  "`kill {0}` stops it",
                  ended.other_controller));
}

}  // namespace orrery
