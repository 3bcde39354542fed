// twin/world/faulty_world_test.hpp - jobs on a fleet of four racks whose faults a test writes down.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/state/invariants.hpp"
#include "twin/facts_test.hpp"
#include "twin/simulation.hpp"

namespace orrery {

/// Four leaves with the four nodes of a rack each, behind one UPS.
inline constexpr const char* kFourRacks = R"(apiVersion: orrery/v1
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

/// Plays the jobs and faults of a test by `fifo`, and checks the invariants of the state at each
/// tick.
class FaultyWorldTest : public testing::Test {
 protected:
  static constexpr Duration kMinute = Duration::minutes(1);

  static Instant at(std::int64_t seconds) { return Instant() + Duration::seconds(seconds); }
  static double hours(int device_seconds) { return device_seconds / 3600.0; }

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

}  // namespace orrery
