// twin/world/world_faults_test.cpp - what faults do to jobs, and what the ledger says of it
// afterwards.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/numbers/rng.hpp"
#include "control/state/invariants.hpp"
#include "twin/facts_test.hpp"
#include "twin/simulation.hpp"

namespace orrery {
namespace {

/// Four leaves with the four nodes of a rack each, behind one UPS.
constexpr const char* kFourRacks = R"(apiVersion: orrery/v1
kind: Fleet
name: four
sites:
- name: lab
  halls:
  - name: hall
    ups: {name: ups, capacity: 400 kW, units: 1, redundancy: N}
    pods:
    - name: su
      racks:
      - name: rack
        count: 4
        cooling: in-row-or-dense-air
        nodes: [{type: dgx-h100, count: 4}]
  fabrics:
  - {name: compute, type: ib-ndr, topology: fat-tree, unit_nodes: 4}
)";

Instant at(std::int64_t seconds) { return Instant() + Duration::seconds(seconds); }
double hours(int device_seconds) { return device_seconds / 3600.0; }

class WorldFaultsTest : public testing::Test {
 protected:
  TraceJob& add(std::int64_t run, std::uint32_t devices) {
    TraceJob job;
    job.name = std::to_string(trace_.jobs.size() + 1);
    job.run = Duration::seconds(run);
    job.accelerators = devices;
    trace_.jobs.push_back(job);
    return trace_.jobs.back();
  }

  /// A job that can run on any number of devices from 8 to `devices`.
  void add_elastic(std::int64_t run, std::uint32_t devices) {
    TraceJob& job = add(run, devices);
    job.accelerators_min = 8;
    job.accelerators_max = devices;
  }

  void strike(std::int64_t from, FaultKind kind, FaultScope scope, Fault more = {}) {
    more.at = at(from);
    more.kind = kind;
    more.scope = scope;
    faults_.push_back(more);
  }

  void play(Instant until = Instant::max()) {
    const auto jobs =
        trace_jobs(trace_, cluster_->resolve_context({}), cluster_->classes(), options_);
    ASSERT_TRUE(jobs) << jobs.error().text();
    const ControlSetup setup = cluster_->setup(*policy_named("fifo"), Instant());
    World::Facts world{{}, {}, setup.plans};
    world.scripted = faults_;
    SimulationHooks hooks;
    hooks.events = [this](Instant now, std::span<const Event> events) {
      for (const Event& event : events) history_.push_back({now, event});
    };
    hooks.tick = [](Instant, const State& state) {
      EXPECT_EQ(broken_invariant(state).value_or(""), "");
    };
    Simulation simulation({setup, std::move(world), jobs->jobs, std::move(hooks), commands_});
    simulation.run(until);
    jobs_ = simulation.outcomes();
    summary_ = simulation.summary();
    for (std::uint32_t node = 0; node < cluster_->topology().node_count(); ++node) {
      ready_ += simulation.state().node(NodeId(node)).health == NodeHealth::kReady ? 1 : 0;
    }
  }

  /// The times in seconds of events of a type, and one field of each.
  template <class Type, class Field>
  std::vector<std::pair<std::int64_t, Field>> told(Field (*field)(const Type&)) const {
    std::vector<std::pair<std::int64_t, Field>> all;
    for (const auto& [now, event] : history_) {
      const auto* one = std::get_if<Type>(&event);
      if (one != nullptr) all.emplace_back(now.ns() / 1'000'000'000, field(*one));
    }
    return all;
  }
  template <class Type>
  std::size_t count() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        history_, [](const auto& each) { return std::holds_alternative<Type>(each.second); }));
  }
  std::int64_t end_of(std::size_t job) const { return jobs_[job].end.ns() / 1'000'000'000; }

  const FabricInstance& fabric() const { return cluster_->topology().fabrics()[0]; }
  LinkId port(std::uint32_t node, std::uint32_t port) const {
    return LinkId(fabric().first_link + fabric().graph.link_of_port({node, port}).value());
  }

  PowerDomainId ups() const {
    const std::span<const PowerDomain> domains = cluster_->topology().power_domains();
    const auto found = std::ranges::find(domains, PowerKind::kUps, &PowerDomain::kind);
    return PowerDomainId::at(static_cast<std::size_t>(found - domains.begin()));
  }

  std::unique_ptr<ControlFacts> cluster_ = facts_of(kFourRacks);
  Trace trace_;
  TraceJobOptions options_;
  std::vector<Fault> faults_;
  std::vector<Input> commands_;
  std::vector<std::pair<Instant, Event>> history_;
  std::vector<JobOutcome> jobs_;
  SimulationSummary summary_;
  int ready_ = 0;
};

constexpr Duration kMinute = Duration::minutes(1);

// --- Scopes --------------------------------------------------------------------------------------

TEST_F(WorldFaultsTest, AFaultOfEveryScopeIsFelt) {
  struct Case {
    FaultKind kind;
    FaultScope scope;
    std::uint32_t faults;  ///< faults that stop a job on the first two nodes
    std::size_t links;     ///< links that change, counted when they fail and when they return
    std::size_t supplies;
  };
  const SwitchIndex leaf = fabric().graph.leaf_of({0, 0});
  const std::size_t cables =
      std::size_t{4} * fabric().graph.ports_per_node() + fabric().graph.uplinks(leaf).uppers.size();
  for (const Case& each :
       {Case{FaultKind::kHost, NodeId(0), 1, 0, 0},
        Case{FaultKind::kAccelerator, DeviceId(3), 1, 0, 0},
        Case{FaultKind::kLinkDown, port(0, 0), 0, 2, 0},
        Case{FaultKind::kSwitchDown, SwitchPlace{FabricId(0), leaf}, 1, 2 * cables, 0},
        Case{FaultKind::kPdu, DomainId(4), 1, 0, 0}, Case{FaultKind::kUps, ups(), 0, 0, 2}}) {
    SCOPED_TRACE(word_of_fault(each.kind));
    trace_ = {};
    faults_.clear();
    history_.clear();
    add(1000, 16);
    strike(100, each.kind, each.scope, {.detection = kMinute, .repair = kMinute});
    play();
    EXPECT_EQ(jobs_[0].phase, JobPhase::kFinished);
    EXPECT_EQ(jobs_[0].usage.faults, each.faults);
    EXPECT_EQ(count<LinkChanged>(), each.links);
    EXPECT_EQ(count<PowerLimitSet>(), each.supplies);
  }
}

TEST_F(WorldFaultsTest, ASwitchTakesTheGangsWithItThatNeedIt) {
  add(1000, 16);  // on the first leaf
  add(1000, 8);   // on the same leaf, in one node
  add(2000, 32);  // on the second leaf
  const SwitchPlace leaf{FabricId(0), fabric().graph.leaf_of({0, 0})};
  strike(100, FaultKind::kSwitchDown, leaf, {.detection = kMinute, .repair = kMinute * 10});
  play();
  EXPECT_EQ(jobs_[0].usage.faults, 1U);
  EXPECT_EQ(end_of(0), 160 + 5 + 1000) << "it starts anew elsewhere when the loss is known";
  EXPECT_NEAR(device_hours(jobs_[0].usage.lost), hours(16 * 95), 1e-3);
  EXPECT_NEAR(device_hours(jobs_[0].usage.idle), hours(16 * (5 + 60 + 5)), 1e-3);
  EXPECT_EQ(end_of(1), 1005);
  EXPECT_EQ(end_of(2), 2005);
  EXPECT_EQ(ready_, 16) << "the nodes are back with their switch";
  const auto taken =
      told<NodeChanged, NodeHealth>([](const NodeChanged& node) { return node.health; });
  EXPECT_EQ(std::ranges::count(taken, std::pair(std::int64_t{160}, NodeHealth::kQuarantined)), 4);
}

TEST_F(WorldFaultsTest, AGangOnCutOffNodesWaitsForTheNetwork) {
  add(1000, 128);
  const SwitchPlace leaf{FabricId(0), fabric().graph.leaf_of({0, 0})};
  strike(100, FaultKind::kSwitchDown, leaf, {.detection = kMinute, .repair = kMinute * 10});
  play();
  EXPECT_EQ(jobs_[0].usage.faults, 1U);
  EXPECT_EQ(end_of(0), 760 + 5 + 1000);
}

// --- Elastic jobs --------------------------------------------------------------------------------

TEST_F(WorldFaultsTest, AnElasticJobsUnseenStandstillIsCounted) {
  add_elastic(1000, 16);
  strike(105, FaultKind::kAccelerator, DeviceId(3), {.detection = kMinute, .repair = kMinute});
  play();
  EXPECT_EQ(jobs_[0].usage.resizes, 1U);
  EXPECT_EQ(jobs_[0].usage.faults, 0U);
  EXPECT_EQ(end_of(0), 5 + 1000 + 60 + 5);
  // The node that the job leaves is not free until the job is up again.
  EXPECT_NEAR(device_hours(jobs_[0].usage.idle), hours(16 * (5 + 60 + 5) + 8 * 5), 1e-3);
  EXPECT_EQ(jobs_[0].usage.lost, 0);
}

TEST_F(WorldFaultsTest, AnElasticJobThatShrinksCountsTheStandstillOfAllItHad) {
  add_elastic(1000, 128);
  strike(105, FaultKind::kAccelerator, DeviceId(3), {.detection = kMinute, .repair = kMinute});
  play();
  EXPECT_EQ(jobs_[0].usage.resizes, 1U);
  EXPECT_NEAR(device_hours(jobs_[0].usage.idle), hours(128 * (5 + 60 + 5)), 1e-3);
}

TEST_F(WorldFaultsTest, AnElasticJobComputesAnewWhatWasCorrupt) {
  add_elastic(1000, 16);
  strike(105, FaultKind::kSdc, DeviceId(3), {.detection = kMinute, .repair = kMinute});
  play();
  EXPECT_EQ(jobs_[0].usage.resizes, 1U);
  EXPECT_EQ(end_of(0), 165 + 5 + 1000) << "it has no copy of before";
  EXPECT_NEAR(device_hours(jobs_[0].usage.lost), hours(16 * 160), 1e-3);
}

// --- Slow nodes ----------------------------------------------------------------------------------

TEST_F(WorldFaultsTest, AJobThatStartsOnASlowNodeIsSlow) {
  add(50, 128);
  add(100, 128);
  strike(10, FaultKind::kFailSlow, NodeId(3), {.repair = kMinute * 60, .slowdown = 2});
  play();
  EXPECT_EQ(end_of(0), 10 + 2 * 45);
  EXPECT_EQ(end_of(1), 100 + 5 + 2 * 100);
}

TEST_F(WorldFaultsTest, AGangIsAsSlowAsItsSlowestNode) {
  add(100, 128);
  strike(10, FaultKind::kFailSlow, NodeId(3), {.repair = Duration::seconds(10), .slowdown = 2});
  strike(15, FaultKind::kFailSlow, NodeId(4), {.repair = kMinute * 60, .slowdown = 4});
  play();
  // 5 s at full speed, 2.5 s of work by the second fault, the rest at a quarter.
  EXPECT_NEAR((jobs_[0].end - Instant()).count_seconds(), 15 + 4 * 92.5, 1e-3);
}

TEST_F(WorldFaultsTest, ASlowNodeThatNeedsHandsIsSlowUntilItIsMended) {
  add(1000, 128);
  add(100, 128);
  strike(105, FaultKind::kFailSlow, NodeId(3),
         {.remedy = Remedy::kRepair, .repair = kMinute, .slowdown = 2});
  play();
  EXPECT_EQ(end_of(0), 105 + 2 * 900) << "nobody mends it under the job";
  EXPECT_EQ(end_of(1), 1905 + 60 + 5 + 100);
}

TEST_F(WorldFaultsTest, WhatAJobLeftOnASilentNodeEndsWithItsLeaseWhenTheJobHasEnded) {
  add(200, 16);
  add(3000, 8);
  strike(100, FaultKind::kHost, NodeId(0), {.detection = kMinute, .repair = kMinute * 60});
  play();
  EXPECT_EQ(jobs_[0].phase, JobPhase::kFinished);
  EXPECT_LT(end_of(0), 100 + 600) << "before the lease";
  EXPECT_EQ(jobs_[1].phase, JobPhase::kFinished);
}

// --- Silent corruption ---------------------------------------------------------------------------

TEST_F(WorldFaultsTest, NothingIsUndoneOfACorruptionThatNobodyKnows) {
  options_.checkpoint_interval = kMinute;
  add(1000, 8);
  strike(105, FaultKind::kSdc, DeviceId(3), {.detection = kMinute * 60, .repair = kMinute});
  commands_ = {{at(305), DrainNode{NodeId(0), true, "test"}, {}}};
  play();
  EXPECT_EQ(jobs_[0].usage.lost, 0);
  EXPECT_EQ(end_of(0), 5 + 1000 + 5);
}

TEST_F(WorldFaultsTest, AJobThatStartsOnACorruptNodeComputesWronglyToo) {
  add(100, 128);
  add(1000, 128);
  strike(55, FaultKind::kSdc, DeviceId(3), {.detection = kMinute * 5, .repair = kMinute});
  play();
  EXPECT_EQ(end_of(0), 105);
  EXPECT_EQ(jobs_[0].usage.lost, 0) << "it has ended, and nobody knows";
  EXPECT_EQ(summary_.corrupt, 1U);
  EXPECT_NEAR(device_hours(jobs_[1].usage.lost), hours(128 * (355 - 110)), 0.1);
}

// --- Faults that overlap -------------------------------------------------------------------------

TEST_F(WorldFaultsTest, ALinkIsWholeWhenTheLastOfItsFaultsIsOver) {
  add(1000, 8);
  strike(100, FaultKind::kLinkDown, port(0, 0), {.repair = Duration::seconds(100)});
  strike(150, FaultKind::kLinkDown, port(0, 0), {.repair = Duration::seconds(150)});
  play();
  const auto health =
      told<LinkChanged, float>([](const LinkChanged& link) { return link.state.health; });
  const std::vector<std::pair<std::int64_t, float>> expected{
      {100, 0}, {150, 0}, {200, 0}, {300, 1}};
  EXPECT_EQ(health, expected);
}

TEST_F(WorldFaultsTest, ASupplyIsWholeWhenTheLastOfItsFaultsIsOver) {
  add(1000, 8);
  strike(100, FaultKind::kUps, ups(), {.repair = Duration::seconds(100)});
  strike(150, FaultKind::kUps, ups(), {.repair = Duration::seconds(150)});
  play();
  const auto limited =
      told<PowerLimitSet, bool>([](const PowerLimitSet& set) { return set.limit.has_value(); });
  // Heartbeats are missing for 5 s before a loss of power is known.
  const std::vector<std::pair<std::int64_t, bool>> expected{
      {105, true}, {155, true}, {205, true}, {305, false}};
  EXPECT_EQ(limited, expected);
}

// --- What still runs -----------------------------------------------------------------------------

TEST_F(WorldFaultsTest, WhatRunsAtTheEndHasSavedAndStood) {
  options_.checkpoint_interval = kMinute;
  options_.checkpoint_cost = Duration::seconds(10);
  add(1000, 128);
  play(at(500));
  EXPECT_NEAR(summary_.goodput, (495 - 7 * 10) / 500.0, 1e-6);
  EXPECT_NEAR(device_hours(jobs_[0].usage.idle), hours(128 * (5 + 70)), 1e-3);
  strike(430, FaultKind::kAccelerator, DeviceId(3), {.detection = kMinute * 60});
  play(at(500));
  EXPECT_NEAR(summary_.goodput, (425 - 6 * 10) / 500.0, 1e-6);
}

// --- All together --------------------------------------------------------------------------------

// Under any faults but silent nodes, in any order, the useful time of a job is exactly what its
// work takes, and the rest of its time has another cause.
TEST_F(WorldFaultsTest, TimeThatCountsAsUsefulIsThatOfTheWorkDone) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng = Rng::stream(seed, "faults");
    trace_ = {};
    faults_.clear();
    options_.checkpoint_interval = kMinute * 10;
    options_.restart = Duration::seconds(static_cast<std::int64_t>(rng.below(60)));
    for (const std::uint32_t devices : {8U, 16U, 24U, 48U, 64U}) {
      const auto run = static_cast<std::int64_t>(1000 + rng.below(8000));
      devices == 16 ? add_elastic(run, devices) : void(add(run, devices));
    }
    const std::size_t switches = fabric().graph.switches().size();
    for (std::int64_t from = 0; from < 9000; from += static_cast<std::int64_t>(rng.below(1500))) {
      const NodeId node(static_cast<std::uint32_t>(rng.below(16)));
      const std::vector<std::pair<FaultKind, FaultScope>> any{
          {FaultKind::kNic, node},
          {FaultKind::kSoftware, node},
          {FaultKind::kSdc, DeviceId(node.value() * 8)},
          {FaultKind::kHbm, DeviceId(node.value() * 8)},
          {FaultKind::kLinkDown, port(node.value(), 0)},
          {FaultKind::kSwitchDown, SwitchPlace{FabricId(0), SwitchIndex::at(rng.below(switches))}},
          {FaultKind::kUps, ups()}};
      const auto& [kind, scope] = any[rng.below(any.size())];
      strike(from, kind, scope,
             {.remedy = rng.below(2) == 0 ? Remedy::kTransient : Remedy::kRepair,
              .detection = Duration::seconds(static_cast<std::int64_t>(rng.below(600))),
              .repair = Duration::seconds(static_cast<std::int64_t>(rng.below(3600)))});
    }
    play();
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      EXPECT_EQ(jobs_[i].phase, JobPhase::kFinished) << i;
      if (jobs_[i].usage.resizes > 0) continue;
      const JobUsage& usage = jobs_[i].usage;
      const double useful = device_hours(usage.devices.total() - usage.lost - usage.idle);
      const double work = trace_.jobs[i].run.count_seconds() * trace_.jobs[i].accelerators / 3600;
      EXPECT_NEAR(useful, work, 1e-6 * work) << i;
    }
  }
}

}  // namespace
}  // namespace orrery
