// bench/swarm_takeover.hpp - kill -9 of the controller that leads while thousands of agents with a
// job each are connected to it and to its standbys: how soon a standby decides, and how soon it has
// heard all agents.
//
// Built on the benchmark's thread; what it started ends with it. The program ends where a call
// fails, or where a job is lost.
#pragma once

#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "bench/agent_swarm.hpp"
#include "bench/bench_process.hpp"
#include "bench/live_cluster.hpp"
#include "bench/live_load.hpp"
#include "bench/live_takeover.hpp"

namespace orrery {

/// Seconds since the kill.
struct SwarmTakeover {
  double decided = 0;  ///< until a submission is answered
  double heard = 0;    ///< until all agents are connected to the new leader
};

/// Three controllers and three members of etcd, with a swarm of agents on nodes of their own.
class SwarmCluster {
 public:
  /// `self`: this program, which has `--agents DIR AUTHORITY N`.
  SwarmCluster(const std::string& self, int agents)
      : agents_(agents),
        cluster_({.up = "--nodes 1 --accelerators 8 --controllers 3 --store etcd"}),
        client_(cluster_.client()),
        swarm_({self, "--agents", cluster_.path(), cluster_.path() + "/controllers/1",
                fmt::format("{}", agents)}) {
    add_nodes();
    (void)swarm_.line();
    wait_until_heard();
    // One job a node, also on the node that is no part of the swarm.
    (void)submit_load(*client_, "filling",
                      {.accelerators = 8, .count = agents_ + 1, .command = R"("sleep", "1d")"});
    while (running_jobs() < agents_ + 1) pause(0.5);
  }

  SwarmTakeover take_over() {
    const pid_t leader = leading_controller(cluster_);
    leader_ = command_of(leader);
    SwarmTakeover result;
    const RealClock clock;
    const Instant killed = clock.now_monotonic();
    (void)::kill(leader, SIGKILL);
    (void)submit_load(*client_, fmt::format("probe-{}", leader), {});
    result.decided = (clock.now_monotonic() - killed).count_seconds();
    wait_until_heard();
    result.heard = (clock.now_monotonic() - killed).count_seconds();
    if (running_jobs() != agents_ + 1) give_up("a job was lost");
    start_again();
    // The agents return to the controller that was killed within the longest delay between tries.
    pause(2 * ControllerChannels::kBackoffMax.count_seconds());
    return result;
  }

 private:
  /// Adds the nodes of the swarm to the rack of the cluster's only node. `orrery fleet apply` would
  /// start an agent for each.
  void add_nodes() {
    std::ifstream file(cluster_.path() + "/fleet.yaml");
    std::string fleet{std::istreambuf_iterator<char>(file), {}};
    fleet.insert(fleet.find("  fabrics:"), swarm_racks(agents_));
    v1::ApplyFleetRequest asked;
    asked.set_request_id("swarm");
    asked.set_fleet(std::move(fleet));
    (void)call_or_exit<v1::FleetChange>(*client_, "ApplyFleet", asked);
  }
  [[nodiscard]] int running_jobs() {
    return static_cast<int>(
        call_or_exit<v1::Cluster>(*client_, "GetCluster", v1::GetClusterRequest()).jobs_running());
  }
  [[nodiscard]] int heard() {
    int heard = 0;
    v1::ListNodesRequest asked;
    asked.set_page_size(1'000);
    do {
      const auto page = call_or_exit<v1::ListNodesResponse>(*client_, "ListNodes", asked);
      for (const v1::Node& node : page.nodes()) {
        heard += static_cast<int>(node.connected() && node.health() == "ready");
      }
      asked.set_page_token(page.next_page_token());
    } while (!asked.page_token().empty());
    return heard;
  }
  void wait_until_heard() {
    constexpr double kPatience = 120;
    const RealClock clock;
    const Instant begin = clock.now_monotonic();
    while (heard() < agents_ + 1) {
      pause(0.05);
      if ((clock.now_monotonic() - begin).count_seconds() < kPatience) continue;
      give_up(fmt::format("only {} agents are heard", heard()));
    }
  }
  /// Returns the words that a process was started with.
  [[nodiscard]] static std::vector<std::string> command_of(pid_t process) {
    std::ifstream file(fmt::format("/proc/{}/cmdline", process));
    std::vector<std::string> words;
    for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
    if (words.empty()) give_up("the leader has no command line");
    return words;
  }
  /// Starts the controller that was killed. `orrery up` would start an agent for each node.
  void start_again() {
    std::vector<std::string> words{"sh", "-c", "exec \"$@\" 2>/dev/null", "sh"};
    words.insert(words.end(), leader_.begin(), leader_.end());
    again_.push_back(std::make_unique<BenchProcess>(std::move(words)));
  }

  int agents_;
  LiveCluster cluster_;
  std::unique_ptr<Client> client_;
  BenchProcess swarm_;
  std::vector<std::string> leader_;  ///< the command line of the controller that was killed
  std::vector<std::unique_ptr<BenchProcess>> again_;
};

}  // namespace orrery
