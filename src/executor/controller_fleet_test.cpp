// The fleet of a controller changes: agents, work and restarts follow it.
#include <fmt/format.h>

#include <algorithm>
#include <latch>
#include <set>

#include "executor/controller_test.hpp"

namespace orrery {
namespace {

/// The fleet of the lab with a rack before its nodes.
std::string grown(const std::string& names) {
  std::string text = kLabFleet;
  const std::string racks = "      racks:\n";
  text.insert(text.find(racks) + racks.size(),
              "      - {name: new, nodes: [{type: dgx-h100, count: 1, names: " + names + "}]}\n");
  return text;
}

class ControllerFleetTest : public ControllerTest {
 protected:
  Result<FleetChange> apply(const std::string& fleet, FleetApply how = FleetApply::kApply,
                            const std::string& from = "") {
    std::optional<Result<FleetChange>> answer;
    controller_->fleet().apply({fleet, how, "", from},
                               [&](Result<FleetChange> change) { answer = std::move(change); });
    await([&] { return answer.has_value(); });
    return *answer;
  }
  /// Submits a job with planned work that no other sequence length has. Returns its work.
  WorkId train(int sequence) {
    const auto jobs = submit(fmt::format(
        "apiVersion: orrery/v1\nkind: Train\nname: train\n"
        "roles: [{{accelerators: 8, work: {{model: llama-3.1-8b, sequence: {}, steps: 10}}}}]\n"
        "launch: {{command: [train]}}\n",
        sequence));
    EXPECT_TRUE(jobs) << jobs.error().text();
    return *controller_->state().job(jobs->front()).submission->request.roles[0].work;
  }
  [[nodiscard]] NodeId node(const std::string& name) const {
    return controller_->agents().node_named(name).value_or(NodeId());
  }
};

// Facts of a fleet that was asked about, or left, must learn the work that came meanwhile.
TEST_F(ControllerFleetTest, WorkKeepsItsNumberThroughChangesAndStarts) {
  ASSERT_TRUE(apply(grown("node7"), FleetApply::kDryRun));
  const WorkId first = train(1024);
  ASSERT_TRUE(apply(grown("node7")));
  const WorkId second = train(2048);
  const Result<FleetChange> back = apply(kLabFleet);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->retired, std::vector<std::string>{"node7"});
  const WorkId third = train(4096);
  EXPECT_NE(first, second);
  EXPECT_NE(first, third);
  EXPECT_NE(second, third);
  ASSERT_TRUE(apply(grown("node8")));
  for (const bool restarted : {false, true}) {
    if (restarted) stop(), start();
    EXPECT_EQ(train(1024), first);
    EXPECT_EQ(train(2048), second);
    EXPECT_EQ(train(4096), third);
  }
}

// The facts that a log begins with know neither the tenants nor the sites of later ones.
TEST_F(ControllerFleetTest, WorkKeepsItsNumberThoughItsJobFitsTheFirstFacts) {
  set_tenants(
      "apiVersion: orrery/v1\nkind: Tenants\nname: t\n"
      "tenants: [{name: default}, {name: research}]\n");
  std::string wide = grown("node7");
  wide +=
      "- name: annex\n  residency: eu\n  halls:\n  - {name: h, pods: [{racks: [{nodes: [{type: "
      "dgx-h100}]}]}]}\n";
  const Result<FleetChange> changed = apply(wide);
  ASSERT_TRUE(changed) << changed.error().text();
  const std::string job =
      "apiVersion: orrery/v1\nkind: Train\nname: x\nlaunch: {command: [train]}\n"
      "roles: [{accelerators: 8, work: {model: llama-3.1-8b, sequence: 512, steps: 10}}]\n";
  ASSERT_TRUE(submit(job + "tenant: research\n"));
  const auto there = submit(job + "residency: [eu]\n");
  ASSERT_TRUE(there) << there.error().text();
  EXPECT_FALSE(submit(
      "apiVersion: orrery/v1\nkind: Train\nname: x\nlaunch: {command: [train]}\n"
      "roles:\n- {name: a, accelerators: 9999, work: {model: llama-3.1-8b, sequence: 256}}\n"
      "- {name: b, accelerators: 8, work: {model: llama-3.1-8b, sequence: 128, steps: 10}}\n"));
  const WorkId later = train(1024);
  stop();
  start();
  EXPECT_EQ(train(1024), later);
  EXPECT_EQ(*controller_->state().job(there->front()).submission->request.roles[0].work,
            train(512));
}

// The plans of the log are those of the fleet at their time, and those of running jobs stay.
TEST_F(ControllerFleetTest, PlansOfAChangedFleetAreReplayedAndRunOn) {
  const auto with = [](const std::string& row) {
    return grown("node7") +
           "---\napiVersion: orrery/v1\nkind: Catalog\nname: slow\naccelerators:\n"
           "- {id: nvidia-h100-sxm5-80g, " +
           row + "}\n";
  };
  const Result<FleetChange> slow = apply(with("hbm_bandwidth_bytes_per_s: 1.0e12"));
  ASSERT_TRUE(slow) << slow.error().text();
  Session session;
  join("node7", session);
  (void)train(1024);
  await([&] { return !session.orders<LaunchRanks>().empty(); });
  const auto step = [&] {
    const State& state = controller_->state();
    const auto& request = state.job(JobId(0)).submission->request;
    const PlanEntry* entry = state.plans().find(*request.roles[0].options[0].plan);
    return entry != nullptr && *entry ? entry->value().front().step_seconds : 0;
  };
  const double before = step();
  EXPECT_GT(before, 0);
  stop();
  start();
  EXPECT_EQ(step(), before);
  EXPECT_TRUE(apply(with("hbm_bandwidth_bytes_per_s: 1.1e12"), FleetApply::kDryRun));
  const Result<FleetChange> small =
      apply(with("hbm_bytes: 20000000000, driver_visible_memory_bytes: 20000000000"));
  ASSERT_FALSE(small);
  EXPECT_NE(small.error().text().find("plans by which jobs run: 0; end them"), std::string::npos)
      << small.error().text();
}

TEST_F(ControllerFleetTest, AReadOfAHeldSituationKeepsTheFleetThatItBeganWith) {
  ASSERT_TRUE(apply(grown("node7")));
  std::latch go_on(1);
  std::optional<std::uint32_t> nodes;
  ASSERT_TRUE(controller_->reads().add([&]() -> SideReads::Read {
    return [&](const HeldSituation& held) -> SideReads::Finish {
      go_on.wait();
      const std::uint32_t count = held.situation().fleet.topology().node_count();
      return [&nodes, count] { nodes = count; };
    };
  }));
  for (const char* next : {"node8", "node9"}) ASSERT_TRUE(apply(grown(next)));
  const Result<FleetChange> last = apply(kLabFleet);
  go_on.count_down();
  ASSERT_TRUE(last) << last.error().text();
  await([&] { return nodes.has_value(); });
  EXPECT_EQ(nodes, 3u);
}

TEST_F(ControllerFleetTest, ChangedPricesCountFromTheChangeOn) {
  Session session;
  join("node0", session);
  const auto jobs = submit(job("one"));
  ASSERT_TRUE(jobs);
  await([&] { return !session.orders<LaunchRanks>().empty(); });
  const std::string dear = std::string(kLabFleet) +
                           "---\napiVersion: orrery/v1\nkind: Catalog\nname: prices\n"
                           "accelerator_prices:\n- {accelerator: nvidia-h100-sxm5-80g, "
                           "ondemand_typical_usd_per_hour: 3.6e9}\n";
  const Result<FleetChange> changed = apply(dear);
  ASSERT_TRUE(changed) << changed.error().text();
  EXPECT_TRUE(changed->added.empty() && changed->retired.empty());
  const Instant at = controller_->state().job(jobs->front()).metered;
  EXPECT_LT(controller_->state().usage_of(jobs->front(), at).dollars, 1);
  for (const bool restarted : {false, true}) {
    if (restarted) stop(), start();
    const JobUsage later =
        controller_->state().usage_of(jobs->front(), at + Duration::seconds(1000));
    EXPECT_NEAR(later.dollars, 8e9, 1e6);
  }
  EXPECT_LT(controller_->state().fleet_since(), at) << "no id has changed";
}

/// The fleet of the lab with a rack of another type of accelerator.
std::string with_h200() {
  std::string text = kLabFleet;
  const std::string racks = "      racks:\n";
  text.insert(text.find(racks) + racks.size(),
              "      - {name: new, nodes: [{type: dgx-h200, count: 1, names: node7}]}\n");
  return text;
}

TEST_F(ControllerFleetTest, JobsThatWaitMayUseATypeThatIsAdded) {
  const auto types = [&](JobId id) {
    std::set<std::string> found;
    const State& state = controller_->state();
    for (const GangOption& option : state.job(id).submission->request.roles[0].options) {
      found.insert(state.setup().topology->accelerator(option.gang.type).id);
    }
    return found;
  };
  const auto alone = submit(job("alone"));
  const auto bound = submit(
      "apiVersion: orrery/v1\nkind: Batch\nname: bound\n"
      "roles: [{accelerators: 8, types: [h100]}]\nlaunch: {command: [sh]}\n");
  const auto array = submit(job("array", "array: {count: 70}\n"));
  ASSERT_TRUE(alone && bound && array) << (bound ? "" : bound.error().text());
  const std::set<std::string> before = types(alone->front());
  ASSERT_EQ(before.size(), 1U);
  ChangeJob change{array->back(), 50, Duration::hours(1), std::nullopt, ClassId()};
  controller_->submissions().classify(change);
  std::optional<Result<JobId>> changed;
  controller_->command(change, "", [&](Result<JobId> done) { changed = std::move(done); });
  await([&] { return changed.has_value(); });

  ASSERT_TRUE(apply(with_h200()));
  for (const bool restarted : {false, true}) {
    if (restarted) stop(), start();
    await([&] { return types(array->back()).size() == 2U; });
    EXPECT_EQ(types(alone->front()).size(), 2U);
    EXPECT_EQ(types(bound->front()), before);
    for (const JobId id : *array) EXPECT_EQ(types(id).size(), 2U);
    const JobRequest& last = controller_->state().job(array->back()).submission->request;
    EXPECT_EQ(last.name, "array[69]");
    EXPECT_EQ(last.priority, 50);
    EXPECT_EQ(last.time_limit, Duration::hours(1));
    EXPECT_NE(last.class_id, controller_->state().job(array->front()).submission->request.class_id);
  }

  Session session;
  join("node7", session, "h200");
  await([&] { return !session.orders<LaunchRanks>().empty(); });
}

// A group with count 0 keeps the type in the log's numbers, and has no nodes.
TEST_F(ControllerFleetTest, TheLastNodeOfATypeRetiresAndItsJobsWait) {
  const auto batch = [](const char* name) {
    return fmt::format(
        "apiVersion: orrery/v1\nkind: Batch\nname: {}\n"
        "roles: [{{accelerators: 8, types: [h200]}}]\nlaunch: {{command: [sh]}}\n",
        name);
  };
  ASSERT_TRUE(apply(with_h200()));
  const auto waits = submit(batch("waits"));
  ASSERT_TRUE(waits) << waits.error().text();
  std::string without = with_h200();
  const std::string one = "count: 1, names: node7";
  without.replace(without.find(one), one.size(), "count: 0");
  const Result<FleetChange> gone = apply(without);
  ASSERT_TRUE(gone) << gone.error().text();
  EXPECT_EQ(gone->retired, std::vector<std::string>{"node7"});
  for (const bool restarted : {false, true}) {
    if (restarted) stop(), start();
    EXPECT_EQ(controller_->state().setup().topology->node_count(), 2U);
    EXPECT_EQ(controller_->state().setup().topology->type_count(), 2U);
    EXPECT_EQ(controller_->state().job(waits->front()).phase, JobPhase::kQueued);
    const auto late = submit(batch("late"));
    ASSERT_FALSE(late);
    await([&] { return controller_->fleet().why_never(waits->front()).has_value(); });
    EXPECT_EQ(*controller_->fleet().why_never(waits->front()), late.error().message);
    EXPECT_NE(late.error().text().find("the fleet has no nvidia-h200"), std::string::npos)
        << late.error().text();
  }
  Session session;
  join("node0", session);
  ASSERT_TRUE(submit(job("other")));
  await([&] { return !session.orders<LaunchRanks>().empty(); });
  ASSERT_TRUE(apply(with_h200()));
  await([&] { return !controller_->fleet().why_never(waits->front()); });
}

TEST_F(ControllerFleetTest, ANewFleetIsCheckedAgainstTheGuaranteesInEffect) {
  const auto guaranteed = [](int devices) {
    return fmt::format(
        "apiVersion: orrery/v1\nkind: Tenants\nname: t\n"
        "tenants: [{{name: default, guarantee: {{h100: {}}}}}]\n",
        devices);
  };
  stop();
  std::filesystem::remove_all(directory_);
  tenants_ = guaranteed(16);
  start();
  std::string smaller = kLabFleet;
  const std::string two = "count: 2, names: \"node[0-1]\"";
  smaller.replace(smaller.find(two), two.size(), "count: 1, names: node0");
  for (const bool restarted : {false, true}) {
    if (restarted) stop(), start();
    const Result<FleetChange> early = apply(smaller);
    ASSERT_FALSE(early);
    EXPECT_NE(early.error().text().find("tenants.yaml:4"), std::string::npos)
        << early.error().text();
  }
  set_tenants(guaranteed(8));
  const Result<FleetChange> change = apply(smaller);
  ASSERT_TRUE(change) << change.error().text();
  for (const bool restarted : {false, true}) {
    if (restarted) stop(), start();
    EXPECT_EQ(controller_->state().setup().topology->node_count(), 1U);
    EXPECT_EQ(controller_->state().tenants().guarantee(TenantId(1), FleetTypeId(0)), 8);
  }
  Session session;
  join("node0", session);
  ASSERT_TRUE(submit(job("runs")));
  await([&] { return !session.orders<LaunchRanks>().empty(); });
}

TEST_F(ControllerFleetTest, AChangeThatWasShownForAnotherFleetIsRefused) {
  const Result<FleetChange> shown = apply(grown("node7"), FleetApply::kDryRun);
  ASSERT_TRUE(shown) << shown.error().text();
  ASSERT_TRUE(apply(grown("node8")));
  const Result<FleetChange> late = apply(grown("node7"), FleetApply::kApply, shown->from);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::kInfeasible);
  EXPECT_TRUE(node("node8").valid());
  const std::string from = apply(grown("node7"), FleetApply::kDryRun)->from;
  for (const bool repeated : {false, true}) {
    const Result<FleetChange> done = apply(grown("node7"), FleetApply::kApply, from);
    ASSERT_TRUE(done) << repeated << done.error().text();
    EXPECT_TRUE(done->applied);
  }
}

TEST_F(ControllerFleetTest, NodesWhoseRackGetsAnotherNameAreCounted) {
  std::string renamed = kLabFleet;
  renamed.insert(renamed.find("nodes: [{type"), "name: first\n        ");
  const Result<FleetChange> change = apply(renamed);
  ASSERT_TRUE(change) << change.error().text();
  EXPECT_EQ(change->moved, (std::vector<std::string>{"node0", "node1"}));
  EXPECT_TRUE(change->retired.empty());
  EXPECT_TRUE(apply(renamed + "# a comment\n")->moved.empty());
}

// The controller ends after the change is durable and before all jobs are resolved.
TEST_F(ControllerFleetTest, JobsAreResolvedAfterAStartBetween) {
  constexpr std::size_t kJobs = 3 * RequestRenewal::kTexts;
  std::vector<JobId> jobs;
  jobs.reserve(kJobs);
  for (std::size_t i = 0; i < kJobs; ++i) {
    jobs.push_back(submit(job(fmt::format("j{}", i)))->front());
  }
  ASSERT_TRUE(apply(with_h200()));
  const auto resolved = [&] {
    return std::ranges::count_if(jobs, [&](JobId id) {
      return controller_->state().job(id).submission->request.roles[0].options.size() > 1;
    });
  };
  EXPECT_LT(resolved(), std::ssize(jobs));
  stop();
  start();
  await([&] { return resolved() == std::ssize(jobs); });
}

// Only the fleets in use stay in memory; the log names them all.
TEST_F(ControllerFleetTest, ManyChangesAreReplayed) {
  for (const int number : {11, 12, 13, 14, 11, 15, 16, 12}) {
    ASSERT_TRUE(apply(grown(fmt::format("node{}", number))));
    ASSERT_TRUE(apply(grown("node99"), FleetApply::kDryRun));
  }
  stop();
  start();
  EXPECT_TRUE(node("node12").valid());
  EXPECT_FALSE(node("node16").valid());
  EXPECT_EQ(controller_->fleet().text(), grown("node12"));
}

TEST_F(ControllerFleetTest, AnAgentKeepsItsSessionAndItsNumberWhenItsNodeGetsAnotherId) {
  Session first;
  Session second;
  join("node0", first);
  join("node1", second);
  const NodeId number = std::get<AgentWelcome>(second.messages.at(0)).node;
  ASSERT_TRUE(submit(job("one")));
  ASSERT_TRUE(submit(job("two")));
  await([&] {
    return first.orders<LaunchRanks>().size() + second.orders<LaunchRanks>().size() == 2U;
  });
  const std::size_t asked = second.orders<Reconcile>().size();
  ASSERT_TRUE(apply(grown("node7")));
  EXPECT_EQ(node("node1"), NodeId(2));
  EXPECT_NE(node("node1"), number);
  EXPECT_EQ(second.closed, "");
  EXPECT_EQ(controller_->agents().of(node("node1")).session, &second);

  const AgentIdentity self{number, 7, 1};
  controller_->receive(number, Report{self, 0, Heartbeat{2, Instant::from_ns(9), {}}});
  await([&] { return second.orders<Reconcile>().size() > asked; });
  for (const NodeOrder& order : second.orders<Reconcile>()) {
    EXPECT_EQ(order.order.to.node, number);
  }
  EXPECT_EQ(controller_->state().running().size(), 2U);
  EXPECT_FALSE(apply(std::string(kLabFleet) + "x: y\n"));
}

TEST_F(ControllerFleetTest, ARetiredNodeLosesItsAgentAndABusyOneDoesNotRetire) {
  ASSERT_TRUE(apply(grown("node7")));
  Session added;
  join("node7", added);
  const Result<FleetChange> gone = apply(kLabFleet);
  ASSERT_TRUE(gone) << gone.error().text();
  EXPECT_TRUE(gone->applied);
  EXPECT_NE(added.closed.find("was retired"), std::string::npos) << added.closed;
  EXPECT_FALSE(node("node7").valid());
  // A report that was under way is ignored.
  const NodeId number = std::get<AgentWelcome>(added.messages.at(0)).node;
  controller_->receive(number, Report{{number, 7, 1}, 0, Heartbeat{9, Instant::from_ns(9), {}}});

  Session other;
  join("node0", other);
  ASSERT_TRUE(submit(job("one")));
  await([&] { return !other.orders<LaunchRanks>().empty(); });
  std::string without = kLabFleet;
  without.replace(without.find("count: 2, names: \"node[0-1]\""), 28, "count: 1, names: node1");
  const Result<FleetChange> busy = apply(without);
  ASSERT_TRUE(busy) << busy.error().text();
  EXPECT_FALSE(busy->applied);
  ASSERT_EQ(busy->busy.size(), 1U);
  EXPECT_EQ(busy->busy.front().node, "node0");
  EXPECT_EQ(busy->busy.front().jobs, std::vector{JobId(0)});
  EXPECT_EQ(controller_->fleet().text(), kLabFleet);
}

}  // namespace
}  // namespace orrery
