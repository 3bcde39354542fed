// tests/slurm/pilots_test.hpp - `orrery up` on a real Slurm of three nodes with eight emulated
// accelerators each, all of which Slurm lends. Ends with the test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/end_to_end/cli.hpp"
#include "tests/slurm/slurm_cluster_test.hpp"

namespace orrery {

class SlurmPilotTest : public Cli {
 protected:
  using Json = nlohmann::json;

  void SetUp() override {
    Cli::SetUp();
    if (const std::string missing = SlurmCluster::missing(); !missing.empty()) {
      GTEST_SKIP() << "SKIPPED: " << missing;
    }
    auto started = SlurmCluster::start(3);
    ASSERT_TRUE(started) << started.error().text();
    slurm_ = *std::move(started);
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
  /// Does what an administrator does after a crash of slurmctld. It saves its state every five
  /// seconds, so that it starts a job again that it had started just before, finds it on the node,
  /// and drains the node ("Duplicate jobid").
  void resume_nodes() const { (void)slurm_->run("scontrol update nodename=n[1-3] state=resume"); }
  [[nodiscard]] Json nodes_of(const std::string& job) const {
    const Json shown = Json::parse(live("-o json job " + job).out);
    return shown.at("attempts").back().at("nodes");
  }

  std::unique_ptr<SlurmCluster> slurm_;
};

}  // namespace orrery
