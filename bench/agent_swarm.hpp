// bench/agent_swarm.hpp - thousands of agents in one process, each with its own streams over mutual
// TLS to all controllers of a cluster. They are the state machine of real agents, and report
// launches as up at once without running them.
//
// A benchmark starts its own program again to run them, because run_agents() never returns. All of
// it runs on the thread of the loop.
#pragma once

#include <sys/resource.h>

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent.hpp"
#include "api/agents/controller_streams.hpp"
#include "api/cluster_directory.hpp"
#include "base/system/real_env.hpp"
#include "bench/bench_process.hpp"
#include "bench/figure.hpp"

namespace orrery {

/// Discards the log lines of the agents, which all report the loss of a controller.
class SilentSink final : public LogSink {
 public:
  void write_line(std::string_view /*line*/) override {}
};

struct SwarmSetup {
  Env env;
  const std::vector<std::string>& controllers;  ///< HOST:PORT of each
  LogSink& sink;
};

class SwarmAgent final : public ChannelEvents {
 public:
  SwarmAgent(const SwarmSetup& setup, const AgentTls& tls, std::string node)
      : env_(setup.env),
        node_(std::move(node)),
        streams_(setup.env, Log(setup.sink), setup.controllers, tls) {}

  void open() {
    AgentOpening opening;
    opening.node = node_;
    opening.address = "127.0.0.1";
    opening.boot = 1;
    opening.incarnation = 1;
    opening.version = "bench";
    opening.inventory.accelerator = "h100";
    opening.inventory.accelerators = 8;
    streams_.channel().open(opening, *this);
  }
  void on_welcome(const AgentWelcome& welcome) override {
    if (agent_) return;  // another controller leads now, and asks for what runs here
    agent_.emplace(AgentSetup{welcome.cluster, {welcome.node, 1, 1}, welcome.beat, welcome.repeat},
                   std::span<const AttemptId>(), now());
    act();
  }
  void on_order(const NodeOrder& order) override {
    agent_->on_order(order.order, now());
    act();
  }
  void on_log_question(const AttemptLogQuestion&) override {}
  void on_burn_in() override {}
  void on_command(const AttemptExecOpen&) override {}
  void on_command_input(const ExecInput&) override {}
  void on_lost(const Error& why) override {
    const bool refused = why.kind == ErrorKind::kInput || why.kind == ErrorKind::kInfeasible;
    if (refused) give_up(node_ + ": " + why.text());
  }

 private:
  [[nodiscard]] Instant now() const { return env_.clock.now_monotonic(); }
  void act() {
    std::vector<AgentEffect> effects = agent_->take();
    for (; !effects.empty(); effects = agent_->take()) {
      for (AgentEffect& effect : effects) {
        if (auto* report = std::get_if<Report>(&effect))
          streams_.channel().send(std::move(*report));
        if (auto* start = std::get_if<StartKeeper>(&effect)) run(*start);
      }
    }
    if (timer_) env_.timers.cancel(*timer_);
    timer_ = env_.timers.call_at(agent_->next_due(), [this] {
      timer_.reset();
      agent_->on_timer(now());
      act();
    });
  }
  void run(const StartKeeper& start) {
    AttemptReport report{.token = start.launch.token, .stage = RankStage::kRunning};
    report.applied = start.stamp;
    report.up_epoch = report.shed_epoch = start.launch.token.epoch;
    for (const RankShare& share : start.launch.shares) report.clocks.push_back(share.clock);
    agent_->on_keeper_report(report, now());
  }

  Env env_;
  std::string node_;
  ControllerStreams streams_;
  std::optional<Agent> agent_;
  std::optional<TimerId> timer_;
};

inline std::string swarm_node(int node) { return fmt::format("node{}", node); }

/// The racks of a swarm in a fleet file, a line each: four nodes a rack, as much as dense air
/// cools.
inline std::string swarm_racks(int nodes) {
  std::string text;
  for (int first = 0; first < nodes; first += 4) {
    text += fmt::format(
        "      - {{name: r{}, cooling: in-row-or-dense-air, nodes: [{{type: dgx-h100, count: 4, "
        "names: \"node[{}-{}]\"}}]}}\n",
        first, first, first + 3);
  }
  return text;
}

/// Lets this process, and those that it starts, open as many files as they may.
inline void open_many_files() {
  struct rlimit files{};
  (void)::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &files);
}

/// Connects `count` agents to the cluster that `directory` names, and goes on until it is killed.
/// `authority`: the directory of a controller that keeps the authority's key.
inline int run_agents(const std::string& directory, const std::string& authority, int count) {
  const std::unique_ptr<RealEnv> real = must(RealEnv::create());
  const Env env = real->env();
  const TlsIdentity signer = must(open_authority(env, authority));
  const ClusterAddress at = must(read_cluster_address(env.storage, directory));
  SilentSink sink;
  const SwarmSetup setup{env, at.controllers, sink};
  std::deque<SwarmAgent> agents;
  for (int node = 0; node < count; ++node) {
    CertificateRequest request = must(request_certificate());
    std::string certificate =
        must(certify_node(signer, {swarm_node(node), request.request}, env.clock.now_wall()));
    const AgentTls tls{{std::move(certificate), std::move(request.key)}, at.authority};
    agents.emplace_back(setup, tls, swarm_node(node));
  }
  say("made");
  for (SwarmAgent& agent : agents) agent.open();
  real->run();
  return 0;
}

}  // namespace orrery
