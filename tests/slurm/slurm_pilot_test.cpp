// tests/slurm/slurm_pilot_test.cpp - `orrery up` on a real Slurm: pilots are asked for when jobs
// wait, gangs run on the lent nodes, and what is killed or cancelled comes back.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/end_to_end/cli.hpp"
#include "tests/slurm/slurm_cluster_test.hpp"

namespace orrery {

std::string program() { return ORRERY_PROGRAM; }

namespace {

using Json = nlohmann::json;

class SlurmPilotTest : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    if (const std::string missing = SlurmCluster::missing(); !missing.empty()) {
      GTEST_SKIP() << "SKIPPED: " << missing;
    }
    slurm_ = SlurmCluster::start(3);
    ASSERT_NE(slurm_, nullptr);
    std::filesystem::create_directories(path("c"));
    std::filesystem::create_directories(path("import"));
    // The nodes have accelerators for the import alone: Slurm lends whole nodes.
    (void)write("import/slurm.conf",
                "ClusterName=test\nNodeName=n[1-3] Gres=gpu:h100:8 CPUs=64 RealMemory=2000000\n");
    const CliRun fleet = orrery("fleet import slurm " + path("import"));
    ASSERT_EQ(fleet.code, 0) << fleet.err;
    (void)write("c/fleet.yaml", fleet.out);
    (void)write("c/managers.yaml", managers());
    const CliRun up = live("up");
    ASSERT_EQ(up.code, 0) << up.err;
    EXPECT_NE(up.out.find("3 nodes are lent by resource managers when jobs need them"),
              std::string::npos)
        << up.out;
  }
  void TearDown() override {
    if (HasFailure() && slurm_ != nullptr) {
      std::cerr << slurp(path("c/orreryd.log")) << live("holds").out << live("nodes").out
                << slurm_->run("squeue -a; sinfo -N").output;
      for (const auto& entry : std::filesystem::directory_iterator(path(""))) {
        if (entry.path().extension() == ".log") std::cerr << slurp(entry.path());
      }
    }
    (void)live("down");
    slurm_.reset();
    Cli::TearDown();
  }

  [[nodiscard]] std::string managers() const {
    return "apiVersion: orrery/v1\nkind: Managers\nmanagers:\n"
           "  - name: hpc\n    nodes: n[1-3]\n"
           "    slurm: {config: " +
           slurm_->conf() + ", output: " + path("pilot-%j.log") +
           "}\n"
           "    pilots: {idle: 3 s}\n"
           "    agent:\n      directory: " +
           path("lent") +
           "\n      options: [--emulate, \"h100:8\", --allow-agent-user, --address, 127.0.0.1]\n";
  }
  [[nodiscard]] CliRun live(const std::string& arguments) const {
    return orrery("--dir " + path("c") + " " + arguments);
  }
  [[nodiscard]] std::string submit(const std::string& arguments) const {
    const CliRun run = live("-o json submit " + arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return Json::parse(run.out)["id"];
  }
  [[nodiscard]] Json holds() const {
    const CliRun run = live("-o json holds");
    EXPECT_EQ(run.code, 0) << run.err;
    return Json::parse(run.out);
  }
  [[nodiscard]] std::string phase(const std::string& job) const {
    return Json::parse(live("-o json job " + job).out).value("phase", "");
  }
  [[nodiscard]] bool finishes(const std::string& job) const {
    return slurm_->await([&] { return phase(job) == "finished"; });
  }
  [[nodiscard]] Json nodes_of(const std::string& job) const {
    const Json shown = Json::parse(live("-o json job " + job).out);
    return shown.at("attempts").back().at("nodes");
  }

  std::unique_ptr<SlurmCluster> slurm_;
};

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
  slurm_->start_controller();
  EXPECT_TRUE(finishes(next)) << live("explain " + next).out << live("holds").out;
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

}  // namespace
}  // namespace orrery
