// tests/slurm/slurm_pilot_test.cpp - `orrery up` on a real Slurm: pilots are asked for when jobs
// wait, gangs run on the lent nodes, and what is killed or cancelled comes back.
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "tests/slurm/pilots_test.hpp"

namespace orrery {

std::string program() { return ORRERY_PROGRAM; }

namespace {

TEST_F(SlurmPilotTest, LendsWhatAGangNeedsAndTakesItBackWhenItIsIdle) {
  EXPECT_EQ(holds(), Json::array());
  const std::string job = submit("--accelerators 16 -- sh -c 'echo here $SLURMD_NODENAME'");
  EXPECT_TRUE(finishes(job)) << live("explain " + job).out;
  EXPECT_NE(live("logs " + job).out.find("here"), std::string::npos);
  EXPECT_EQ(nodes_of(job).size(), 2u);
  EXPECT_TRUE(slurm_->await([&] { return holds().empty(); })) << holds();
  EXPECT_TRUE(slurm_->await([&] { return slurm_->run("squeue -h").output.empty(); }));
}

TEST_F(SlurmPilotTest, GoesOnElsewhereWhenAPilotIsCancelled) {
  const std::string job = submit("--accelerators 8 -- sleep 20");
  ASSERT_TRUE(slurm_->await([&] { return phase(job) == "running"; })) << live("explain " + job).out;
  const Json hold = holds().at(0);
  EXPECT_EQ(hold.at("state"), "granted");
  (void)slurm_->run("scancel " + hold.at("manager_id").get<std::string>());
  EXPECT_TRUE(finishes(job)) << live("explain " + job).out;
  const Json shown = Json::parse(live("-o json job " + job).out);
  EXPECT_EQ(shown.at("phase"), "finished");
  const Json nodes = Json::parse(live("-o json nodes").out);
  for (const Json& node : nodes.at("nodes")) EXPECT_EQ(node.value("faults", 0), 0) << node;
}

TEST_F(SlurmPilotTest, ADrainOnEitherSideLetsTheJobEndAndIsAvoided) {
  const std::string first = submit("--accelerators 8 -- sleep 6");
  ASSERT_TRUE(slurm_->await([&] { return phase(first) == "running"; }))
      << live("explain " + first).out;
  const std::string there = nodes_of(first).at(0);
  EXPECT_EQ(slurm_->run("scontrol update state=drain reason=fan nodename=" + there).status, 0);
  EXPECT_TRUE(slurm_->await([&] {
    return live("nodes").out.find("hpc: fan") != std::string::npos;
  })) << live("nodes").out;
  const std::string second = submit("--accelerators 8 -- sleep 6");
  ASSERT_TRUE(slurm_->await([&] { return phase(second) == "running"; }))
      << live("explain " + second).out;
  const std::string here = nodes_of(second).at(0);
  EXPECT_NE(here, there);
  const CliRun drain = live("drain " + here + " --why disk");
  EXPECT_EQ(drain.code, 0) << drain.err;
  const std::string third = submit("--accelerators 8 -- true");
  EXPECT_TRUE(finishes(third)) << live("explain " + third).out;
  EXPECT_NE(nodes_of(third).at(0), there);
  EXPECT_NE(nodes_of(third).at(0), here);
  EXPECT_TRUE(finishes(first));
  EXPECT_TRUE(finishes(second));
  EXPECT_EQ(Json::parse(live("-o json job " + second).out).at("attempt"), 1);
}

TEST_F(SlurmPilotTest, SaysInSlurmsWordsWhyAJobWaits) {
  // Others have all nodes.
  (void)slurm_->run("sbatch -N 3 --exclusive -o /dev/null --wrap 'sleep 600'");
  ASSERT_TRUE(slurm_->await([&] {
    return slurm_->run("squeue -h -t RUNNING").output.find("wrap") != std::string::npos;
  }));
  const std::string job = submit("--accelerators 8 -- true");
  EXPECT_TRUE(slurm_->await([&] {
    return live("explain " + job)
               .out.find("hpc lends 0 of 3 nodes; pilot-1-1 waiting (Resources)") !=
           std::string::npos;
  })) << live("explain " + job).out;
  (void)slurm_->run("scancel -n wrap");
  EXPECT_TRUE(finishes(job)) << live("explain " + job).out;
}

TEST_F(SlurmPilotTest, KeepsItsHoldsAndJobsWhenTheControllerIsKilled) {
  const std::string job = submit("--accelerators 8 -- sleep 15");
  ASSERT_TRUE(slurm_->await([&] { return phase(job) == "running"; })) << live("explain " + job).out;
  const Json before = holds();
  const std::string pid = slurp(path("c/orreryd.pid"));
  ASSERT_EQ(::kill(std::stoi(pid), SIGKILL), 0);
  ASSERT_EQ(live("up").code, 0);
  EXPECT_TRUE(slurm_->await([&] {
    const Json now = holds();
    return now.size() == 1 && now[0].at("manager_id") == before[0].at("manager_id") &&
           now[0].at("agents") == 1;
  })) << holds();
  EXPECT_TRUE(finishes(job)) << live("explain " + job).out;
  EXPECT_EQ(Json::parse(live("-o json job " + job).out).at("attempt"), 1);
}

TEST_F(SlurmPilotTest, RunsOnWhileSlurmIsAwayAndAsksAgainForWhatItForgot) {
  const std::string job = submit("--accelerators 8 -- sleep 5");
  ASSERT_TRUE(slurm_->await([&] { return phase(job) == "running"; })) << live("explain " + job).out;
  slurm_->kill_controller();
  EXPECT_TRUE(finishes(job));
  const std::string next = submit("--accelerators 24 -- true");
  EXPECT_TRUE(slurm_->await([&] {
    return live("holds").out.find("cannot be asked") != std::string::npos;
  })) << live("holds").out;
  const Status again = slurm_->start_controller();
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_TRUE(slurm_->await([&] {
    resume_nodes();
    return phase(next) == "finished";
  })) << live("explain " + next).out
      << live("holds").out;
}

TEST_F(SlurmPilotTest, StartsAnAgentAgainThatWasKilled) {
  const std::string job = submit("--accelerators 8 -- sleep 12");
  ASSERT_TRUE(slurm_->await([&] { return phase(job) == "running"; })) << live("explain " + job).out;
  const std::string node = nodes_of(job).at(0);
  const Json before = holds();
  ASSERT_EQ(
      slurm_->run("pkill -KILL -f '[o]rrery-agent --node " + node + " --dir " + path("lent") + "'")
          .status,
      0);
  EXPECT_TRUE(finishes(job)) << live("explain " + job).out;
  EXPECT_EQ(Json::parse(live("-o json job " + job).out).at("attempt"), 1);
  EXPECT_EQ(holds().at(0).at("manager_id"), before.at(0).at("manager_id"));
}

TEST_F(SlurmPilotTest, GoesOnWithoutMungeAndAsksAgainWhenItIsBack) {
  const std::string job = submit("--accelerators 8 -- sleep 4");
  ASSERT_TRUE(reaches(job, "running")) << live("explain " + job).out;
  slurm_->kill_munge();
  const std::string next = submit("--accelerators 24 -- true");
  EXPECT_TRUE(finishes(job)) << live("explain " + job).out;
  EXPECT_EQ(phase(next), "queued") << "Slurm lends nothing more without munge";
  const Status again = slurm_->start_munge();
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_TRUE(finishes(next)) << live("explain " + next).out << live("holds").out;
}

TEST_F(SlurmPilotTest, AJobIsDoneOnceWhenTheSlurmstepdOfItsPilotIsKilled) {
  const std::string script = "if [ $RANK = 0 ]; then exec 9>>" + path("lock") +
                             "; flock -n 9 || echo twice >>" + path("doubled") +
                             "; fi; sleep 6; echo done >>" + path("done");
  const std::string job = submit("--accelerators 8 -- sh -c '" + script + "'");
  ASSERT_TRUE(reaches(job, "running")) << live("explain " + job).out;
  kill_slurmstepd(nodes_of(job).at(0));
  EXPECT_TRUE(slurm_->await([&] {
    resume_nodes();
    return phase(job) == "finished";
  })) << live("explain " + job).out
      << live("holds").out;
  EXPECT_EQ(slurp(path("doubled")), "");
  EXPECT_NE(slurp(path("done")), "");
}

}  // namespace
}  // namespace orrery
