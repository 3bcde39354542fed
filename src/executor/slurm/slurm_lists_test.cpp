// executor/slurm/slurm_lists_test.cpp - nodes as Slurm 22.05 printed them, lines of newer versions,
// and what they say of holds.
#include "executor/slurm/slurm_lists.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

// Printed by scontrol of Slurm 22.05.8, many fields left out.
constexpr std::string_view kNodes =
    "NodeName=r01 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 Gres=gpu:h100:8 "
    "OS=Linux 6.18.44 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=1000 State=IDLE ThreadsPerCore=1\n"
    "NodeName=r02 Arch=x86_64 State=ALLOCATED+NOT_RESPONDING ThreadsPerCore=1\n"
    "NodeName=r03 Arch=x86_64 State=IDLE+DRAIN ThreadsPerCore=1 "
    "Reason=Kill task failed [root@2026-11-28T17:58:42]\n"
    "NodeName=r04 Arch=x86_64 State=DOWN ThreadsPerCore=1 "
    "Reason=bad = fan State=UP [root@2026-11-28T17:58:41] Comment=free text Reason=q\n"
    "NodeName=r05 Arch=x86_64 State=IDLE+DRAIN ThreadsPerCore=1 "
    "Reason=line one [root@2026-11-28T17:44:55]        NodeName=zz State=DOWN\n";

TEST(SlurmListsTest, RecordedNodesHaveTheirServiceAndReason) {
  const auto nodes = read_slurm_nodes(kNodes);
  ASSERT_TRUE(nodes) << nodes.error().message;
  ASSERT_EQ(nodes->size(), 5u);
  const auto shown = [&](std::size_t i) {
    const SlurmNode& node = (*nodes)[i];
    return fmt::format("{}{}{}{} {}", node.name, node.out_of_service ? " out" : "",
                       node.drained ? " drained" : "", node.may_keep_processes ? " keeping" : "",
                       node.reason);
  };
  EXPECT_EQ(shown(0), "r01 ");
  EXPECT_EQ(shown(1), "r02 out keeping ALLOCATED+NOT_RESPONDING");
  EXPECT_EQ(shown(2), "r03 out drained keeping Kill task failed [root@2026-11-28T17:58:42]");
  EXPECT_EQ(shown(3), "r04 out keeping bad = fan State=UP [root@2026-11-28T17:58:41]");
  EXPECT_EQ(shown(4),
            "r05 out drained line one [root@2026-11-28T17:44:55]        NodeName=zz State=DOWN");
}

TEST(SlurmListsTest, TheStateOfANodeSaysWhetherItServes) {
  const auto serves = [](std::string_view state) {
    const auto nodes = read_slurm_nodes(fmt::format("NodeName=n1 State={} Weight=1\n", state));
    EXPECT_TRUE(nodes && nodes->size() == 1) << state;
    return nodes && !nodes->front().out_of_service;
  };
  for (const auto* state :
       {"IDLE", "MIXED", "ALLOCATED", "IDLE+CLOUD+POWERED_DOWN", "IDLE+PLANNED",
        "ALLOCATED+COMPLETING", "MIXED-", "IDLE~", "IDLE+RESERVED", "IDLE+MAINTENANCE"}) {
    EXPECT_TRUE(serves(state)) << state;
  }
  for (const auto* state : {"DOWN", "DOWN*", "IDLE*", "IDLE+DRAIN", "MIXED+DRAIN", "DRAINED",
                            "DRAINING*", "IDLE+FAIL", "DOWN+CLOUD+POWERED_DOWN", "UNKNOWN",
                            "FUTURE", "IDLE+INVALID_REG", "IDLE+REBOOT_ISSUED", "ERROR"}) {
    EXPECT_FALSE(serves(state)) << state;
  }
}

// With PrivateData=jobs, squeue of an unprivileged user leaves out the jobs of others.
TEST(SlurmListsTest, AUsedNodeWithoutAListedJobHasHiddenWork) {
  const auto hidden_on = [](std::string_view state, bool foreign) {
    SqueueList jobs{.holds = {{.key = {1, 3}, .phase = HoldPhase::kRunning, .nodes = {"n2"}},
                              {.key = {2, 3}, .phase = HoldPhase::kEnded, .nodes = {"n1"}}},
                    .foreign = {}};
    const ForeignWork work{.id = "19", .user = "ann", .nodes = {"n3"}, .left = {}};
    if (foreign) jobs.foreign = std::vector<ForeignWork>{work};
    const auto nodes = read_slurm_nodes(
        fmt::format("NodeName=n1 State={0} Weight=1\nNodeName=n2 State={0} Weight=1\n"
                    "NodeName=n3 State={0} Weight=1\n",
                    state));
    EXPECT_TRUE(nodes) << state;
    const ManagerListing listing = join_slurm_lists(std::move(jobs), *nodes);
    EXPECT_EQ(listing.foreign.has_value(), foreign);
    if (!foreign || listing.foreign->size() == 1) return std::string();
    const ForeignWork& hidden = listing.foreign->back();
    EXPECT_EQ(hidden.user, "unknown");
    EXPECT_EQ(hidden.left, std::nullopt);
    return fmt::format("{}", fmt::join(hidden.nodes, ","));
  };
  for (const auto* state : {"ALLOCATED", "MIXED", "ALLOCATED+DRAIN", "IDLE+COMPLETING", "MIXED-",
                            "DRAINING", "ALLOCATED*"}) {
    EXPECT_EQ(hidden_on(state, true), "n1") << state << ": the hold there has ended";
    EXPECT_EQ(hidden_on(state, false), "") << state << ": squeue was not asked for others";
  }
  for (const auto* state : {"IDLE", "IDLE+PLANNED", "DOWN*", "DRAINED", "IDLE+RESERVED"}) {
    EXPECT_EQ(hidden_on(state, true), "") << state;
  }
}

TEST(SlurmListsTest, NodesThatAreCutOffOrOfAnotherFormAreNoList) {
  EXPECT_FALSE(read_slurm_nodes(""));
  EXPECT_FALSE(read_slurm_nodes("No nodes in the system\n"));
  EXPECT_FALSE(read_slurm_nodes(kNodes.substr(0, kNodes.size() - 1)));
  EXPECT_FALSE(read_slurm_nodes("NodeName=n1 Arch=x86_64\n"));
  EXPECT_FALSE(read_slurm_nodes("NodeName= State=IDLE\n"));
  const auto more = read_slurm_nodes(
      "NodeName=n1 State=IDLE Comment=a\nb State=DOWN\n\n"
      "NodeName=n2/x State=IDLE\nNodeName=n3 State=IDLE\n");
  ASSERT_TRUE(more);
  ASSERT_EQ(more->size(), 2u) << "a comment may have lines, a name no slash";
  EXPECT_FALSE(more->front().out_of_service);
  EXPECT_EQ(more->back().name, "n3");
}

TEST(SlurmListsTest, ANodeWithoutAnAnswerSpoilsTheProofOfAnEnd) {
  const auto ended = [](std::string_view state) {
    return HoldSeen{.key = {1, 3},
                    .phase = *hold_phase(state),
                    .reason = std::string(state),
                    .nodes = {"r01", "r02"}};
  };
  const auto phases = [&](const SlurmNode& node) {
    const ManagerListing listing = join_slurm_lists(
        {.holds = {ended("CANCELLED"), ended("RUNNING")}, .foreign = {{{.id = "19"}}}}, {node});
    EXPECT_TRUE(listing.complete);
    EXPECT_TRUE(listing.foreign && listing.foreign->size() == 1) << "passed on";
    EXPECT_EQ(listing.nodes.size(), 1u);
    EXPECT_EQ(listing.holds[1].phase, HoldPhase::kRunning);
    return std::pair(listing.holds[0].phase, listing.holds[0].reason);
  };
  EXPECT_EQ(phases({{"r02", true, false, "bad fan"}, false}),
            std::pair(HoldPhase::kEnded, std::string("CANCELLED")));
  EXPECT_EQ(phases({{"r03", true, false, "DOWN"}, true}).first, HoldPhase::kEnded);
  EXPECT_EQ(phases({{"r02", true, false, "DOWN"}, true}),
            std::pair(HoldPhase::kEndedDirty,
                      std::string("CANCELLED; Slurm cannot end processes on r02")));
}

TEST(SlurmConfig, SaysWhetherTheEndOfAJobIsProof) {
  const std::string before =
      "Configuration data as of 2026-11-28\nPrologFlags             = (null)\n";
  EXPECT_TRUE(tracks_all_processes(before + "ProctrackType           = proctrack/cgroup\nX = y\n"));
  EXPECT_FALSE(tracks_all_processes(before + "ProctrackType           = proctrack/linuxproc\n"));
  EXPECT_FALSE(tracks_all_processes(before));
  EXPECT_FALSE(tracks_all_processes(""));
  std::vector<HoldSeen> holds{{.phase = HoldPhase::kEnded, .reason = "CANCELLED"},
                              {.phase = HoldPhase::kRunning}};
  doubt_ends(holds);
  EXPECT_EQ(holds[0].phase, HoldPhase::kEndedDirty);
  EXPECT_EQ(holds[1].phase, HoldPhase::kRunning);
}

}  // namespace
}  // namespace orrery
