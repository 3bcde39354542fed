#include "twin/runs/start_waits.hpp"

#include <gtest/gtest.h>

#include "twin/facts_test.hpp"
#include "twin/simulation.hpp"
#include "workload/trace/trace_file.hpp"

namespace orrery {
namespace {

/// A start after a loss.
struct Restarted {
  double seconds = 0;  ///< from the start until it is up
  StateSource source = StateSource::kUnsaid;
};

class StartWaitsTest : public testing::Test {
 protected:
  void stand_by(std::uint32_t node) {
    commands_.push_back({Instant(), SetSpare{NodeId(node), true}, {}});
  }

  void strike(std::uint32_t node, FaultKind kind, Duration repair = Duration::hours(9)) {
    faults_.push_back({.at = Instant() + Duration::seconds(200),
                       .kind = kind,
                       .scope = NodeId(node),
                       .remedy = Remedy::kTransient,
                       .detection = Duration::seconds(10),
                       .repair = repair});
  }

  /// Runs one job on the first nodes and returns how its last attempt began.
  Restarted play(int devices, const std::string& more) {
    const std::string text =
        "apiVersion: orrery/v1\nkind: Trace\nname: t\njobs:\n- {name: job, submit: 0 s, spec: "
        "{apiVersion: orrery/v1, kind: Train, name: job, checkpoint: {interval: 60 s, cost: 1 s, "
        "restart: 300 s" +
        more +
        ", roles: [{node_accelerators: 8, types: [h100], accelerators: " + std::to_string(devices) +
        ", work: {model: llama-3.1-8b, sequence: 2048, global_batch: 64, steps: 3000}}]}}\n";
    const auto trace = read_trace_file(text, "trace.yaml", {});
    EXPECT_TRUE(trace) << (trace ? "" : trace.error().text());
    TraceJobOptions options;
    options.rules = *replay_rules("orrery");
    const auto jobs =
        trace_jobs(*trace, cluster_->resolve_context({}), cluster_->classes(), options);
    EXPECT_TRUE(jobs) << (jobs ? "" : jobs.error().text());
    const ControlSetup setup = cluster_->setup(*policy_named("fifo"), Instant());
    World::Facts world{options.rules, {}, setup.plans};
    world.timing.warm_restart = Duration::seconds(60);
    world.calibration = &builtin_constants();
    world.scripted = faults_;
    Restarted last;
    Instant started;
    SimulationHooks hooks;
    hooks.events = [&](Instant now, std::span<const Event> events) {
      for (const Event& event : events) {
        if (std::holds_alternative<JobStarted>(event)) started = now;
        if (const auto* up = std::get_if<JobRunning>(&event)) {
          last = {(now - started).count_seconds(), up->source};
        }
      }
    };
    Simulation simulation({setup, std::move(world), jobs->jobs, std::move(hooks), commands_});
    simulation.run();
    summary_ = simulation.summary();
    EXPECT_EQ(summary_.finished, 1U);
    return last;
  }

  std::unique_ptr<ControlFacts> cluster_ = facts_of(lab_with_storage(2));
  std::vector<Fault> faults_;
  std::vector<Input> commands_;
  SimulationSummary summary_;
};

constexpr const char* kToStorage = "}";
constexpr const char* kToPeers = ", peer_copy: true}";
constexpr double kLaunch = 5;
constexpr double kBytes = 14 * 8.03e9;  ///< of the state

TEST_F(StartWaitsTest, AJobWithoutALossSaysNothingOfWhereItsStateLay) {
  const Restarted first = play(16, kToPeers);
  EXPECT_NEAR(first.seconds, kLaunch, 1e-3);
  EXPECT_EQ(first.source, StateSource::kUnsaid);
}

TEST_F(StartWaitsTest, ANodeThatWasNotKeptReadyCostsTheWholeRestart) {
  strike(0, FaultKind::kAccelerator);
  const Restarted cold = play(16, kToStorage);
  EXPECT_NEAR(cold.seconds, kLaunch + 300, 1e-3) << "reading it is in the 300 s";
  EXPECT_EQ(cold.source, StateSource::kStorage);
  EXPECT_EQ(summary_.recoveries.on_ready_nodes, 0U);
}

TEST_F(StartWaitsTest, ASpareIsReadyAndLeavesOnlyTheStateToRead) {
  stand_by(3);
  strike(0, FaultKind::kAccelerator);
  const Restarted warm = play(16, kToStorage);
  // Reading takes less than a second or two at the rate of one unit; a node's NICs carry more.
  EXPECT_GT(warm.seconds, kLaunch + 60);
  EXPECT_LT(warm.seconds, kLaunch + 60 + 10);
  EXPECT_EQ(warm.source, StateSource::kStorage);
  EXPECT_EQ(summary_.recoveries.on_ready_nodes, 1U);
}

TEST_F(StartWaitsTest, AJobThatStartsAgainOnItsOwnNodesNeedsNoSpare) {
  strike(0, FaultKind::kSoftware, Duration::minutes(1));
  EXPECT_LT(play(16, kToStorage).seconds, kLaunch + 60 + 10);
}

TEST_F(StartWaitsTest, ANodeOfItsOwnThatBootedIsNotReady) {
  strike(0, FaultKind::kHost, Duration::minutes(5));
  const Restarted again = play(16, kToPeers + std::string(", restart: {policy: when-safe}"));
  EXPECT_NEAR(again.seconds, kLaunch + 300, 10);
  EXPECT_EQ(summary_.recoveries.on_ready_nodes, 0U);
  EXPECT_EQ(again.source, StateSource::kPeers) << "its buddy kept its part";
}

TEST_F(StartWaitsTest, StateComesFromThePeersAsFastAsTheNodesSend) {
  stand_by(3);
  strike(0, FaultKind::kAccelerator);
  const Restarted near = play(16, kToPeers);
  EXPECT_EQ(near.source, StateSource::kPeers);
  EXPECT_NEAR(near.seconds, kLaunch + 60 + kBytes / (2 * 350e9), 0.05);
  EXPECT_EQ(summary_.recoveries.from_peers, 1U);
  EXPECT_LT(near.seconds, play(16, kToStorage).seconds);
}

TEST_F(StartWaitsTest, ANodeAndTheOneThatKeepsItsPartLostTogetherMeanStorage) {
  for (const std::uint32_t node : {5U, 6U, 7U}) stand_by(node);
  strike(0, FaultKind::kAccelerator);
  strike(2, FaultKind::kAccelerator);
  EXPECT_EQ(play(32, kToPeers).source, StateSource::kPeers);
  strike(1, FaultKind::kAccelerator);
  EXPECT_EQ(play(32, kToPeers).source, StateSource::kStorage);
}

TEST_F(StartWaitsTest, AJobThatWentBackToTheQueueReadsStorage) {
  for (const std::uint32_t node : {0U, 1U, 2U, 3U, 4U})
    strike(node, FaultKind::kAccelerator, Duration::minutes(30));
  const Restarted later = play(64, kToPeers);
  EXPECT_EQ(later.source, StateSource::kStorage);
  EXPECT_NEAR(later.seconds, kLaunch + 300, 1e-3);
}

TEST_F(StartWaitsTest, ACopyOfWhatWasCorruptIsNoGoodOne) {
  stand_by(3);
  strike(0, FaultKind::kSdc);
  faults_.back().detection = Duration::minutes(5);
  EXPECT_EQ(play(16, kToPeers).source, StateSource::kStorage);
}

}  // namespace
}  // namespace orrery
