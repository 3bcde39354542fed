// orrery top
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "api/cluster_directory.hpp"
#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "apps/orrery/terminal_screen.hpp"
#include "base/text/terminal_text.hpp"
#include "verbs/cluster/live_session.hpp"
#include "verbs/cluster/live_text.hpp"

namespace orrery {
namespace {

constexpr Duration kRefresh = Duration::seconds(1);
constexpr std::uint32_t kRows = 100;  ///< more than a terminal has

/// What one frame shows.
struct ClusterView {
  v1::Cluster cluster;
  v1::ListJobsResponse jobs;
  v1::ListNodesResponse nodes;
};

/// Jobs that hold accelerators, then those that wait, newest first; a page of each at most.
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

Result<ClusterView> look(LiveSession& session) {
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

/// "[######----]".
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

std::string frame(const LiveText& text, const ClusterView& view) {
  const std::vector<v1::Job> jobs(view.jobs.jobs().begin(), view.jobs.jobs().end());
  return terminal_text(head_text(text, view.cluster), Newlines::kKept) + "\n" + text.jobs(jobs) +
         "\n" + text.nodes({view.nodes.nodes().begin(), view.nodes.nodes().end()});
}

Status show_once(const CommandOptions& options) {
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  const Result<ClusterView> view = look(**session);
  if (!view) return tl::unexpected(view.error());
  if (options.output == OutputFormat::kJson) {
    print_json({{"cluster", answer_json(view->cluster)},
                {"jobs", answer_json(view->jobs)["jobs"]},
                {"nodes", answer_json(view->nodes)["nodes"]}});
  } else {
    print_shown(frame(LiveText::of(options), *view));
  }
  return {};
}

Status show(const CommandOptions& options) {
  const bool terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  if (!terminal || options.output == OutputFormat::kJson) return show_once(options);
  CommandOptions impatient = options;
  impatient.retry_s = 0;  // the next frame tries again
  // Without a cluster there is nothing to fill the screen with. No session yet: its threads would
  // be older than the screen.
  RealStorage storage;
  const auto found = read_cluster_address(storage, cluster_directory(options));
  if (!found) return tl::unexpected(found.error());
  Result<TerminalScreen> screen = TerminalScreen::open();
  if (!screen) return forward_error(screen);
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(impatient);
  if (!session) return forward_error(session);
  std::string last;
  do {
    const Result<ClusterView> view = look(**session);
    std::string trouble;
    if (view) {
      last = frame(LiveText::of(options), *view);
    } else {
      trouble = terminal_text(view.error().text(), Newlines::kKept) + "\n\n";
    }
    screen->draw(trouble + last);
  } while (screen->wait(kRefresh));
  return {};
}

}  // namespace

void add_top_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  CLI::App& top = *app.add_subcommand(
      "top", "show a running cluster full-screen, refreshed every second; q quits");
  top.footer("If standard output is not a terminal, the state is printed once.");
  top.callback([&options, &chosen] { chosen = [&options] { return show(options); }; });
}

}  // namespace orrery
