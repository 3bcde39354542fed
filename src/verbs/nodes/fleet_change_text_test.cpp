#include "verbs/nodes/fleet_change_text.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

NodeNames nodes_up_to(int count) {
  NodeNames names;
  for (int i = 0; i < count; ++i) *names.Add() = "n" + std::to_string(i);
  return names;
}

TEST(FleetChangeTextTest, TwentyNamesAreShownAndTheRestCounted) {
  EXPECT_EQ(list_text(nodes_up_to(0)), "");
  EXPECT_EQ(list_text(nodes_up_to(2)), "n0, n1");
  EXPECT_TRUE(list_text(nodes_up_to(20)).ends_with("n18, n19"));
  EXPECT_TRUE(list_text(nodes_up_to(21)).ends_with("n18, n19 and 1 more"));
}

TEST(FleetChangeTextTest, AChangeSaysWhatComesWhatGoesAndWhatIsBusy) {
  v1::FleetChange change;
  EXPECT_EQ(fleet_change_text(change), "");
  *change.mutable_added() = nodes_up_to(1);
  change.add_retired("old\x1b");
  v1::BusyNode& busy = *change.add_busy();
  busy.set_node("old\x1b");
  busy.add_jobs(7);
  change.add_changed("fleet.yaml:9: \"count: 2\" is now \"count: 4\"");
  EXPECT_EQ(fleet_change_text(change),
            "1 node added: n0\n1 node retired: old\\x1b\nold\\x1b is busy: job 7\n"
            "fleet.yaml:9: \"count: 2\" is now \"count: 4\"\n");
  change.add_moved("n7");
  EXPECT_NE(fleet_change_text(change).find("1 node in a rack of another name: n7\n"),
            std::string::npos);
  busy.add_jobs(12);
  EXPECT_NE(fleet_change_text(change).find("is busy: jobs 7, 12\n"), std::string::npos);
}

TEST(FleetChangeTextTest, ManyBusyNodesAreCounted) {
  v1::FleetChange change;
  for (int i = 0; i < 22; ++i) change.add_busy()->set_node("n" + std::to_string(i));
  const std::string text = fleet_change_text(change);
  EXPECT_EQ(text.find("n20 is busy"), std::string::npos);
  EXPECT_TRUE(text.ends_with("2 nodes more are busy\n")) << text;
}

TEST(FleetChangeTextTest, ADryRunSaysWhatWouldHappen) {
  v1::FleetChange change;
  EXPECT_EQ(fleet_dry_run_text(change), "the cluster has this fleet already\n");
  EXPECT_EQ(applied_fleet_text(change), "the cluster has this fleet already\n");
  change.add_changed("x");
  EXPECT_EQ(fleet_dry_run_text(change), "x\nnothing was changed (--dry-run)\n");
  EXPECT_EQ(applied_fleet_text(change), "the fleet is changed\n");
  change.add_busy()->set_node("n1");
  EXPECT_TRUE(fleet_dry_run_text(change).ends_with(
      "nothing was changed (--dry-run); nodes are busy, so the change is refused without --drain "
      "or --force\n"));
}

TEST(FleetChangeTextTest, ARefusalCountsTheBusyNodes) {
  v1::FleetChange change;
  change.add_busy();
  EXPECT_TRUE(busy_fleet_error(change).text().starts_with(
      "the fleet is not changed: 1 node of those retired is busy. --drain "));
  change.add_busy();
  EXPECT_TRUE(busy_fleet_error(change).text().starts_with(
      "the fleet is not changed: 2 nodes of those retired are busy. "));
  EXPECT_EQ(busy_fleet_error(change).kind, ErrorKind::kInfeasible);
}

TEST(FleetChangeTextTest, AWaitNamesTheJobs) {
  v1::Node node;
  node.set_name("n3");
  node.add_jobs(7);
  node.add_jobs(9);
  EXPECT_EQ(emptying_text(node),
            "waiting until n3 is empty: jobs 7, 9 on it. Ctrl-C ends the wait and leaves the "
            "retired nodes draining\n");
}

TEST(FleetChangeTextTest, EachAddedNodeHasItsCommands) {
  const FleetPlace place{"10.0.0.1:7000", "/lab"};
  EXPECT_EQ(join_text({}, place), "");
  const std::string text = join_text(nodes_up_to(23), place);
  EXPECT_NE(text.find("and a copy of /lab/tls/ca.pem, within an hour:\n"
                      "  orrery node token n0 > n0.token\n"
                      "  orrery-agent --node n0 --controller 10.0.0.1:7000 --ca ca.pem --dir "
                      "/var/lib/orrery/agent --join @n0.token\n  orrery node token n1 "),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("--node n20 "), std::string::npos);
  EXPECT_TRUE(text.ends_with("  and so on for 3 nodes\n"));
}

}  // namespace
}  // namespace orrery
