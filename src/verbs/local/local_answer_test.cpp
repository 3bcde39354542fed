#include "verbs/local/local_answer.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

RunningCluster two_nodes() {
  return {.directory = "/lab/.orrery",
          .asked = {},
          .address = "127.0.0.1:7000",
          .gateway = {},
          .nodes = {{"node-0", "h100", 4}, {"node-1", "h100", 4}},
          .processes = 3,
          .unknown = {},
          .started = {},
          .jobs_run_as_root = false};
}

TEST(LocalAnswerTest, WhatWasStartedIsTold) {
  RunningCluster cluster = two_nodes();
  const std::string where = "A local cluster of 2 nodes at 127.0.0.1:7000 (/lab/.orrery): ";
  EXPECT_EQ(running_text(cluster).head, where + "already running.\n");
  cluster.started = {"node-1"};
  EXPECT_EQ(running_text(cluster).head, where + "started node-1; the rest was already running.\n");
  cluster.started = {"orreryd", "node-0", "node-1"};
  EXPECT_EQ(running_text(cluster).head, where + "started.\n");
}

TEST(LocalAnswerTest, SeveralControllersAndTheirStoreAreTold) {
  RunningCluster cluster = two_nodes();
  cluster.controllers = 3;
  cluster.processes = 8;
  EXPECT_EQ(
      running_text(cluster).head,
      "A local cluster of 2 nodes with 3 controllers at 127.0.0.1:7000 (/lab/.orrery): already "
      "running.\n");
  EXPECT_EQ(running_json(cluster)["controllers"], 3);
}

TEST(LocalAnswerTest, TheDirectoryThatWasTypedIsInEachExample) {
  RunningCluster cluster = two_nodes();
  EXPECT_EQ(running_text(cluster).rest,
            "Each node has 4 x h100, emulated: programs run on this machine's CPU.\n\n"
            "  orrery submit -- python3 -c 'print(\"hello\")'\n  orrery jobs --all\n"
            "  orrery logs -f 0\n  orrery down\n");
  cluster.asked = "/elsewhere/x";
  EXPECT_TRUE(running_text(cluster).rest.ends_with("  orrery --dir /elsewhere/x down\n"));
}

TEST(LocalAnswerTest, TheAddressForClientsOfServicesIsTold) {
  RunningCluster cluster = two_nodes();
  EXPECT_EQ(running_json(cluster)["gateway"], "");
  cluster.gateway = "http://127.0.0.1:8100";
  EXPECT_NE(running_text(cluster).rest.find(
                "Services answer at http://127.0.0.1:8100: `orrery serve`.\n"),
            std::string::npos);
  EXPECT_EQ(running_json(cluster)["gateway"], "http://127.0.0.1:8100");
}

TEST(LocalAnswerTest, RootAndUnknownNodesAreTold) {
  RunningCluster cluster = two_nodes();
  EXPECT_EQ(running_text(cluster).note, "");
  cluster.unknown = {"n8", "n9"};
  cluster.jobs_run_as_root = true;
  EXPECT_EQ(running_text(cluster).note,
            "note: fleet.yaml names n8, n9, which this cluster does not have: `orrery fleet apply "
            "/lab/.orrery/fleet.yaml` adds them\n");
  EXPECT_NE(running_text(cluster).rest.find("WARNING: jobs run as root"), std::string::npos);
  const Json json = running_json(cluster);
  EXPECT_EQ(json["nodes"], Json::array({"node-0", "node-1"}));
  EXPECT_EQ(json["jobs_run_as_root"], true);
  EXPECT_EQ(json["unknown_nodes"].size(), 2u);
}

TEST(LocalAnswerTest, WhatWasEndedIsCounted) {
  const LocalCluster::Ended ended{.controllers = 1, .agents = 2, .keepers = 0};
  EXPECT_EQ(ended_answer(ended, LocalCluster::Keepers::kEnd).text,
            "stopped 1 controller, 2 agents and 0 keepers; jobs that have not ended restart with "
            "`orrery up`\n");
  const VerbAnswer kept = ended_answer(ended, LocalCluster::Keepers::kKeep);
  EXPECT_TRUE(kept.text.ends_with("; running jobs continue, and `orrery up` takes them over\n"));
  EXPECT_EQ(kept.json, Json::parse(R"({"controllers": 1, "gateways": 0, "agents": 2, "keepers": 0,
                            "stores": 0})"));
  EXPECT_TRUE(ended_answer({.controllers = 1, .agents = 2, .keepers = 0, .gateways = 1},
                           LocalCluster::Keepers::kEnd)
                  .text.starts_with("stopped 1 controller, 1 gateway, 2 agents and 0 keepers; "));
  EXPECT_TRUE(
      ended_answer({.controllers = 3, .agents = 2, .keepers = 0, .stores = 3},
                   LocalCluster::Keepers::kKeep)
          .text.starts_with("stopped 3 controllers, 2 agents and 0 keepers and 3 members of "
                            "etcd; "));
  EXPECT_TRUE(check_ended(ended));
  EXPECT_EQ(check_ended({.other_controller = 42}).error().text(),
            "a controller that `orrery up` did not start is still running: process 42; `kill 42` "
            "stops it");
}

}  // namespace
}  // namespace orrery
