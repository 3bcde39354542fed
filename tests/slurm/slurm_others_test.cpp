// tests/slurm/slurm_others_test.cpp - work of others on nodes that a real Slurm has: it is shown
// on lent nodes, a fault on owned ones, and makes room on shared ones. It is never ended.
#include <gtest/gtest.h>

#include <string>

#include "tests/slurm/pilots_test.hpp"

namespace orrery {
namespace {

class SlurmOthersTest : public SlurmLiveTest {
 protected:
  [[nodiscard]] bool nodes_say(const std::string& text) const {
    return slurm_->await([&] { return live("nodes").out.find(text) != std::string::npos; });
  }
};

TEST_F(SlurmOthersTest, OnLentNodesItIsShownWithItsUserAndItsEnd) {
  const std::string other = sbatch("--uid=nobody --nodes=1 --nodelist=n2 --time=30");
  ASSERT_TRUE(runs_in_slurm(other));
  (void)begin("c", managers(Lent{}));
  EXPECT_TRUE(nodes_say("used by nobody (" + other + ") of hpc")) << live("nodes").out;
  const std::string shown = live("holds").out;
  EXPECT_NE(shown.find("hpc: lends 0 of 3 nodes, at most 3; others use 1, the first until "),
            std::string::npos)
      << shown;
  EXPECT_NE(live("node n2").out.find("nobody (" + other + ") of hpc until "), std::string::npos)
      << live("node n2").out;
  const std::string job = submit("--accelerators 16 -- true");
  EXPECT_TRUE(finishes(job)) << live("explain " + job).out;
  EXPECT_EQ(nodes_of(job), (Json{"n1", "n3"}));
  const std::string large = submit("--accelerators 24 -- true");
  EXPECT_TRUE(slurm_->await([&] {
    return live("explain " + large)
               .out.find("others use 1 of the nodes of hpc, the first until ") != std::string::npos;
  })) << live("explain " + large).out;
  EXPECT_EQ(state_of(other), "RUNNING\n");
  (void)slurm_->run("scancel " + other);
  EXPECT_TRUE(finishes(large)) << live("explain " + large).out;
}

TEST_F(SlurmOthersTest, SharedNodesAreLeftToItAndTakenUpAgainWhenItHasEnded) {
  (void)begin("c", managers("shared"));
  const std::string job = submit("--accelerators 24 -- sh -c '" + until("go") + "'");
  ASSERT_TRUE(reaches(job, "running")) << live("explain " + job).out;
  EXPECT_NE(live("holds").out.find("hpc: its 3 nodes are shared"), std::string::npos)
      << live("holds").out;
  const std::string other = sbatch("--uid=nobody --nodes=1 --nodelist=n2 --time=30");
  ASSERT_TRUE(runs_in_slurm(other));
  ASSERT_TRUE(reaches(job, "queued")) << live("job " + job).out;
  EXPECT_TRUE(nodes_say("used by nobody (" + other + ") of hpc")) << live("nodes").out;
  // A job that fits beside it runs at once.
  const std::string small = submit("--accelerators 16 -- true");
  EXPECT_TRUE(finishes(small)) << live("explain " + small).out;
  EXPECT_EQ(nodes_of(small), (Json{"n1", "n3"}));
  EXPECT_EQ(phase(job), "queued");
  EXPECT_EQ(state_of(other), "RUNNING\n");
  (void)slurm_->run("scancel " + other);
  ASSERT_TRUE(reaches(job, "running")) << live("explain " + job).out;
  EXPECT_EQ(shown(job).at("attempt"), 2);
  (void)write("go", "");
  EXPECT_TRUE(finishes(job)) << live("explain " + job).out;
  EXPECT_EQ(slurp(path("doubled")), "");
  EXPECT_EQ(node_faults(), 0);
  const Json bill = shown(job).value("bill", Json::object());
  EXPECT_EQ(bill.value("faults", 0), 0) << bill;
  EXPECT_EQ(bill.value("program_faults", 0), 0) << bill;
  EXPECT_EQ(squeue("", "--states=all --format=' %j'").size(), 0u) << "nothing is asked of Slurm";
}

TEST_F(SlurmOthersTest, OnOwnedNodesItIsAFaultOfTheNodeAndNothingEnds) {
  (void)begin("c", managers("owned"));
  const std::string job = submit("--accelerators 24 -- sh -c '" + until("go") + "'");
  ASSERT_TRUE(reaches(job, "running")) << live("explain " + job).out;
  const std::string other = sbatch("--uid=nobody --nodes=1 --nodelist=n2 --time=30");
  ASSERT_TRUE(runs_in_slurm(other));
  EXPECT_TRUE(slurm_->await([&] { return node_faults() == 1; })) << live("nodes").out;
  EXPECT_TRUE(nodes_say("used by nobody (" + other + ") of hpc")) << live("nodes").out;
  EXPECT_EQ(phase(job), "running");
  EXPECT_EQ(state_of(other), "RUNNING\n");
  (void)write("go", "");
  EXPECT_TRUE(finishes(job)) << live("explain " + job).out;
  EXPECT_EQ(shown(job).at("attempt"), 1);
  const std::string next = submit("--accelerators 24 -- true");
  EXPECT_TRUE(finishes(next)) << "the node takes jobs" << live("explain " + next).out;
  EXPECT_EQ(node_faults(), 1) << "it is told once";
  EXPECT_NE(slurp(path("c/orreryd.log")).find("foreign work: nobody (" + other + ") of hpc"),
            std::string::npos);
  EXPECT_EQ(state_of(other), "RUNNING\n");
}

}  // namespace
}  // namespace orrery
