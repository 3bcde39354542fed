// verbs/catalog/fleet_check_test.cpp - what differs between the machines of a running cluster.
#include "verbs/catalog/fleet_check.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

v1::Node node(const std::string& name, const std::string& kernel = "6.1") {
  v1::Node made;
  made.set_name(name);
  made.set_connected(true);
  made.set_version("1.0");
  made.set_kernel(kernel);
  made.set_accelerator("h100");
  return made;
}

v1::Cluster cluster() {
  v1::Cluster made;
  made.set_version("1.0");
  return made;
}

/// Returns the findings of one check.
std::vector<CheckFinding> of_check(const std::vector<CheckFinding>& all, std::string_view check) {
  std::vector<CheckFinding> found;
  std::ranges::copy_if(all, std::back_inserter(found),
                       [&](const CheckFinding& each) { return each.check == check; });
  return found;
}

TEST(FleetCheck, NodesThatAreAlikeAreFine) {
  const std::vector<CheckFinding> all = check_fleet(cluster(), {node("a"), node("b")});
  for (const CheckFinding& each : all) EXPECT_EQ(each.verdict, CheckVerdict::kOk) << each.check;
  EXPECT_EQ(of_check(all, "agents").at(0).found, "2 of 2 connected");
  EXPECT_EQ(of_check(all, "program").at(0).found, "1.0 on the controller and on 2 of 2 agents");
  EXPECT_EQ(of_check(all, "kernel").at(0).found, "6.1 on 2 of 2");
  EXPECT_TRUE(of_check(all, "driver").empty()) << "no node reports one";
}

TEST(FleetCheck, AClusterWithoutNodesIsFine) {
  for (const CheckFinding& each : check_fleet(cluster(), {})) {
    EXPECT_EQ(each.verdict, CheckVerdict::kOk) << each.check;
  }
}

TEST(FleetCheck, ANodeThatIsGoneIsAProblemUnlessItIsDrained) {
  v1::Node gone = node("gone");
  gone.set_connected(false);
  v1::Node drained = node("drained");
  drained.set_connected(false);
  drained.set_drain(true);
  const CheckFinding both =
      of_check(check_fleet(cluster(), {node("a"), gone, drained}), "agents")[0];
  EXPECT_EQ(both.verdict, CheckVerdict::kProblem);
  EXPECT_EQ(both.found, "1 of 3 connected, 1 of the others drained");
  EXPECT_EQ(both.nodes, std::vector<std::string>{"gone"});
  const CheckFinding one = of_check(check_fleet(cluster(), {node("a"), drained}), "agents")[0];
  EXPECT_EQ(one.verdict, CheckVerdict::kOk);
}

TEST(FleetCheck, AnotherVersionIsNamedWithItsNodes) {
  v1::Node old = node("old");
  old.set_version("0.9");
  v1::Node never = node("never");
  never.set_version("");
  const std::vector<CheckFinding> all = check_fleet(cluster(), {node("a"), old, never});
  const CheckFinding program = of_check(all, "program").at(0);
  EXPECT_EQ(program.verdict, CheckVerdict::kWarning);
  EXPECT_EQ(program.found, "1.0 on the controller and on 1 of 2 agents");
  EXPECT_EQ(program.nodes, std::vector<std::string>{"old"});
}

TEST(FleetCheck, DriversAreComparedAmongNodesOfOneType) {
  v1::Node a = node("a");
  a.set_driver("550");
  v1::Node b = node("b");
  b.set_driver("535");
  v1::Node c = node("c");
  c.set_driver("550");
  v1::Node amd = node("d");
  amd.set_accelerator("mi300x");
  amd.set_driver("6.2");
  const std::vector<CheckFinding> drivers =
      of_check(check_fleet(cluster(), {a, b, c, amd}), "driver");
  ASSERT_EQ(drivers.size(), 3u);
  EXPECT_EQ(drivers[0].found, "550 on 2 of 3 with h100");
  EXPECT_EQ(drivers[1].found, "535 on 1 with h100");
  EXPECT_EQ(drivers[1].verdict, CheckVerdict::kWarning);
  EXPECT_EQ(drivers[1].nodes, std::vector<std::string>{"b"});
  EXPECT_EQ(drivers[2].found, "6.2 on 1 of 1 with mi300x");
}

TEST(FleetCheck, ASharedLogThatIsTooLargeIsAWarning) {
  v1::Cluster large = cluster();
  large.set_log_bytes(std::uint64_t{600} << 20);
  large.set_log_warning("compact it");
  const CheckFinding log = of_check(check_fleet(large, {}), "log").at(0);
  EXPECT_EQ(log.verdict, CheckVerdict::kWarning);
  EXPECT_EQ(log.found, "the shared log has 600 MiB");
  EXPECT_EQ(log.advice, "compact it");
}

TEST(FleetCheck, AHaltedControllerAFileAndARootAgentAreReported) {
  v1::Cluster halted = cluster();
  halted.set_halted("the disk is full");
  halted.add_unknown_nodes("new");
  halted.add_missing_nodes("lost");
  halted.add_file_changes("tenants.yaml: changed");
  v1::Node root = node("a");
  root.set_job_users("any");
  const std::vector<CheckFinding> all = check_fleet(halted, {root});
  EXPECT_EQ(of_check(all, "log").at(0).verdict, CheckVerdict::kProblem);
  EXPECT_EQ(of_check(all, "log").at(0).advice, "the disk is full");
  const std::vector<CheckFinding> file = of_check(all, "fleet.yaml");
  ASSERT_EQ(file.size(), 2u);
  EXPECT_EQ(file[0].nodes, std::vector<std::string>{"new"});
  EXPECT_EQ(file[1].nodes, std::vector<std::string>{"lost"});
  EXPECT_EQ(of_check(all, "files").at(0).found, "tenants.yaml: changed");
  EXPECT_FALSE(of_check(all, "files").at(0).advice.empty());
  EXPECT_EQ(of_check(all, "users").at(0).nodes, std::vector<std::string>{"a"});
}

// Every node has the usual kernel or is named with another, once; the usual is nowhere in the
// minority.
TEST(FleetCheck, EveryNodeHasTheUsualKernelOrIsNamedOnce) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Rng rng(seed);
    std::vector<v1::Node> nodes;
    const std::size_t count = 1 + rng.below(12);
    nodes.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      nodes.push_back(node(fmt::format("n{}", i), fmt::format("6.{}", rng.below(3))));
    }
    const std::vector<CheckFinding> kernels = of_check(check_fleet(cluster(), nodes), "kernel");
    ASSERT_FALSE(kernels.empty());
    std::set<std::string> named;
    std::size_t others = 0;
    std::size_t largest = 0;
    for (std::size_t i = 1; i < kernels.size(); ++i) {
      others += kernels[i].nodes.size();
      largest = std::max(largest, kernels[i].nodes.size());
      named.insert(kernels[i].nodes.begin(), kernels[i].nodes.end());
    }
    EXPECT_EQ(named.size(), others);
    EXPECT_GE(count - others, largest);
    EXPECT_TRUE(kernels[0].found.ends_with(fmt::format(" on {} of {}", count - others, count)));
  }
}

}  // namespace
}  // namespace orrery
