#include "twin/traffic/contention.hpp"

#include <gtest/gtest.h>

#include "twin/facts_test.hpp"
#include "twin/policy_run.hpp"
#include "twin/world/arrivals.hpp"
#include "workload/trace/trace_file.hpp"

namespace orrery {
namespace {

/// Data lie in the first site, accelerators stand in the second.
constexpr const char* kTwoSites = R"(apiVersion: orrery/v1
kind: Fleet
name: two
sites:
- name: archive
  storage: [{name: lustre, system: ddn-ai400x2-lustre, units: 4}]
  halls:
  - name: hall
    pods:
    - name: su
      racks:
      - name: rack
        cooling: in-row-or-dense-air
        nodes: [{type: dgx-a100, count: 1}]
- name: lab
  storage: [{name: lustre, system: ddn-ai400x2-lustre, units: 4}]
  halls:
  - name: hall
    pods:
    - name: su
      racks:
      - name: rack
        cooling: in-row-or-dense-air
        nodes: [{type: dgx-h100, count: 2}]
wan: [{from: archive, to: lab, bandwidth: 100 Gb/s, latency: 5 ms}]
)";

struct Played {
  std::string name;
  int devices = 8;
  std::string more;  ///< keys of the spec
};

class ContentionTest : public testing::Test {
 protected:
  void stand_on(const std::string& fleet) { cluster_ = facts_of(fleet); }
  /// Four leaves of four nodes with one uplink each.
  void stand_on_narrow_leaves() { stand_on(lab_with_storage(4, ", leaf_oversubscription: 32")); }

  /// All submitted at the begin.
  void add(const Played& job) {
    text_ += "- {name: " + job.name +
             ", submit: 0 s, spec: {apiVersion: orrery/v1, kind: Train, name: " + job.name +
             ", preemptible: true" + job.more +
             ", roles: [{node_accelerators: 8, types: [h100], accelerators: " +
             std::to_string(job.devices) +
             ", work: {model: llama-3.1-8b, sequence: 2048, global_batch: " +
             std::to_string(job.devices) + ", steps: 1000}}]}}\n";
  }

  /// Sets the share of bandwidth left of the links above the first leaf, for a while.
  void weaken_uplinks(double left, Duration from, Duration lasts) {
    const FabricInstance& fabric = cluster_->topology().fabrics().front();
    for (std::uint32_t port = 0; port < fabric.graph.ports_per_node(); ++port) {
      const Fabric::Uplinks up = fabric.graph.uplinks(fabric.graph.leaf_of({0, port}));
      for (std::uint32_t k = 0; k < up.uppers.size(); ++k) {
        Fault fault{.at = Instant() + from, .kind = FaultKind::kLinkDown};
        fault.scope = LinkId(fabric.first_link + up.first.value() + k);
        fault.repair = lasts;
        fault.slowdown = 1 / left;
        faults_.push_back(fault);
      }
    }
  }

  PolicyRun play(std::vector<Input> commands = {}, std::vector<Instant> arrivals = {}) {
    const auto trace = read_trace_file(
        "apiVersion: orrery/v1\nkind: Trace\nname: t\njobs:\n" + text_, "trace.yaml", {});
    EXPECT_TRUE(trace) << (trace ? "" : trace.error().text());
    TraceJobOptions options;
    options.rules = *replay_rules("orrery");
    auto jobs = trace_jobs(*trace, cluster_->resolve_context({}), cluster_->classes(), options);
    EXPECT_TRUE(jobs) << (jobs ? "" : jobs.error().text());
    PolicyRunInputs in{.cluster = *cluster_,
                       .jobs = *jobs,
                       .label = policy_,
                       .policy = *policy_under(options.rules, policy_),
                       .rules = options.rules};
    in.commands = std::move(commands);
    in.arrivals = std::move(arrivals);
    in.faults = faults_;
    Result<PolicyRun> run = run_policy(in);
    EXPECT_TRUE(run) << (run ? "" : run.error().text());
    return *std::move(run);
  }

  std::unique_ptr<ControlFacts> cluster_;
  std::string text_;
  std::string policy_ = "fifo";
  std::vector<Fault> faults_;
};

double end_of(const PolicyRun& run, std::size_t job) {
  return (run.outcomes[job].end - Instant()).count_seconds();
}

TEST_F(ContentionTest, gangs_that_meet_on_an_uplink_slow_each_other_and_one_under_a_leaf_does_not) {
  stand_on_narrow_leaves();
  add({.name = "first", .devices = 48});
  const double alone = end_of(play(), 0);
  add({.name = "second", .devices = 48});
  add({.name = "small", .devices = 16});
  const PolicyRun run = play();
  EXPECT_GT(end_of(run, 0), 1.5 * alone);
  EXPECT_NEAR(end_of(run, 1), end_of(run, 0), 0.01 * alone);
  text_.clear();
  add({.name = "small", .devices = 16});
  EXPECT_NEAR(end_of(run, 2), end_of(play(), 0), 1e-3);
}

// While links are weak, the steps of a running gang take as long as those of a gang that starts on
// weak links.
TEST_F(ContentionTest, a_gang_that_runs_is_slowed_by_links_that_weaken_as_one_that_starts_is) {
  stand_on(lab_with_storage(4));
  add({.name = "across", .devices = 48});
  const double whole = end_of(play(), 0);
  weaken_uplinks(0.05, Duration(), Duration::max());
  const double weak = end_of(play(), 0);
  EXPECT_GT(weak, 2 * whole);
  for (const char* policy : {"fifo", "hardware-aware"}) {
    policy_ = policy;
    faults_.clear();
    weaken_uplinks(0.05, Duration::from_seconds(whole / 2), Duration::max());
    EXPECT_NEAR(end_of(play(), 0), (whole + weak) / 2, 0.02 * weak) << policy;
    faults_.clear();
    weaken_uplinks(0.05, Duration::from_seconds(whole / 4), Duration::from_seconds(weak / 4));
    EXPECT_NEAR(end_of(play(), 0), whole * 3 / 4 + weak / 4, 0.02 * weak) << policy;
  }
}

TEST_F(ContentionTest, a_plan_sets_the_pace_under_a_policy_that_never_asked_for_it) {
  stand_on_narrow_leaves();
  add({.name = "job", .devices = 8});
  const double ended = end_of(play(), 0);
  const auto entry = cluster_->plan({WorkId(0), FleetTypeId(0), 8});
  ASSERT_TRUE(*entry);
  const double launch = WorldTiming().launch.count_seconds();
  EXPECT_NEAR(ended, launch + 1000 * entry->value().front().step_seconds, 0.01 * ended);
}

TEST_F(ContentionTest, a_restart_waits_for_its_copy_longer_when_others_read_theirs) {
  stand_on_narrow_leaves();
  constexpr const char* kCopies = ", checkpoint: {interval: 60 s, cost: 1 s, restart: 10 s}";
  const auto drained = [](std::uint32_t node) {
    return Input{Instant() + Duration::seconds(200), DrainNode{NodeId(node), true, "test"}, {}};
  };
  add({.name = "lone", .devices = 8, .more = kCopies});
  const double lone = end_of(play({drained(0)}), 0);
  text_.clear();
  std::vector<Input> commands;
  for (std::uint32_t i = 0; i < 8; ++i) {
    add({.name = "job" + std::to_string(i), .devices = 8, .more = kCopies});
    commands.push_back(drained(i));
  }
  const PolicyRun run = play(commands);
  // 128 GB a copy, written and read at what one unit moves.
  for (std::size_t i = 0; i < 8; ++i) EXPECT_GT(end_of(run, i), lone + 1);
  EXPECT_EQ(run.summary.finished, 8U);
}

TEST_F(ContentionTest, data_elsewhere_come_over_the_wan_first_and_share_it) {
  stand_on(kTwoSites);
  add({.name = "near", .devices = 8});
  const double near = end_of(play(), 0);
  text_.clear();
  constexpr const char* kData = ", data: [{site: archive, size: 5 TB}]";
  add({.name = "a", .devices = 8, .more = kData});
  EXPECT_NEAR(end_of(play(), 0), near + 400, 1) << "5 TB at 12.5 GB/s";
  add({.name = "b", .devices = 8, .more = kData});
  EXPECT_NEAR(end_of(play(), 0), near + 800, 2);
}

TEST_F(ContentionTest, nodes_on_order_take_work_once_they_are_delivered) {
  stand_on_narrow_leaves();
  const Delivery late{FleetTypeId(0), Duration::hours(2), Duration::minutes(15)};
  const std::vector<Instant> arrivals =
      arrivals_of(cluster_->topology(), std::span(&late, 1), Instant());
  EXPECT_EQ(arrivals.front(), Instant() + Duration::hours(2));
  EXPECT_EQ(arrivals.back(), Instant() + Duration::minutes(135));
  add({.name = "job", .devices = 24});
  const PolicyRun run = play({}, arrivals);
  EXPECT_EQ(run.outcomes[0].start, arrivals[2]);
  const Delivery never{FleetTypeId(0), Duration::max(), {}};
  const PolicyRun none =
      play({}, arrivals_of(cluster_->topology(), std::span(&never, 1), Instant()));
  EXPECT_EQ(none.summary.unfinished, 1U);
}

}  // namespace
}  // namespace orrery
