#include "verbs/watch/cluster_view.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/text/terminal_text.hpp"

namespace orrery {
namespace {

constexpr std::uint32_t kRows = 100;  ///< more than a terminal has

/// Lists jobs that hold accelerators, then those that wait, newest first; a page of each at most.
Result<v1::ListJobsResponse> look_at_jobs(Client& client) {
  v1::ListJobsResponse all;
  for (const char* phase : {"running", "starting", "stopping", "queued", "held"}) {
    v1::ListJobsRequest request;
    request.set_page_size(kRows);
    request.set_phase(phase);
    auto jobs = client.call<v1::ListJobsResponse>("ListJobs", request);
    if (!jobs) return jobs;
    for (v1::Job& job : *jobs->mutable_jobs()) *all.add_jobs() = std::move(job);
  }
  return all;
}

/// Returns "[######----]".
std::string bar(std::uint32_t used, std::uint32_t all) {
  constexpr std::size_t kWidth = 20;
  const std::size_t full = all == 0 ? 0 : kWidth * used / all;
  return "[" + std::string(full, '#') + std::string(kWidth - full, '-') + "]";
}

std::string head_text(const LiveText& text, const v1::Cluster& cluster) {
  const std::uint32_t used = cluster.accelerators_in_use();
  const std::string unavailable =
      cluster.accelerators_unavailable() > 0
          ? fmt::format(", {} unavailable", cluster.accelerators_unavailable())
          : "";
  return fmt::format(
             "{}  {}{}  started {}  policy {}\n"
             "nodes {}/{} ready   jobs {} running, {} waiting\n"
             "accelerators {} {}/{} in use{}\n",
             cluster.name(), cluster.version(), cluster.emulated() ? "  emulated" : "",
             text.ago(cluster.started()), cluster.policy(), cluster.nodes_ready(), cluster.nodes(),
             cluster.jobs_running(), cluster.jobs_waiting(), bar(used, cluster.accelerators()),
             used, cluster.accelerators(), unavailable) +
         (cluster.halted().empty() ? "" : cluster.halted() + "\n");
}

}  // namespace

Result<ClusterView> look_at_cluster(LiveSession& session) {
  Client& client = session.client();
  auto cluster = client.call<v1::Cluster>("GetCluster", v1::GetClusterRequest());
  if (!cluster) return forward_error(cluster);
  Result<v1::ListJobsResponse> jobs = look_at_jobs(client);
  if (!jobs) return forward_error(jobs);
  v1::ListNodesRequest nodes_asked;
  nodes_asked.set_page_size(kRows);
  auto nodes = client.call<v1::ListNodesResponse>("ListNodes", nodes_asked);
  if (!nodes) return forward_error(nodes);
  return ClusterView{*std::move(cluster), *std::move(jobs), *std::move(nodes)};
}

std::string cluster_view_text(const LiveText& text, const ClusterView& view) {
  const std::vector<v1::Job> jobs(view.jobs.jobs().begin(), view.jobs.jobs().end());
  return terminal_text(head_text(text, view.cluster), Newlines::kKept) + "\n" + text.jobs(jobs) +
         "\n" + text.nodes({view.nodes.nodes().begin(), view.nodes.nodes().end()});
}

Json cluster_view_json(const ClusterView& view) {
  return {{"cluster", answer_json(view.cluster)},
          {"jobs", answer_json(view.jobs)["jobs"]},
          {"nodes", answer_json(view.nodes)["nodes"]}};
}

}  // namespace orrery
