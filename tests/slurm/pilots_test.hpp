// tests/slurm/pilots_test.hpp - `orrery up` on a real Slurm of three nodes with eight emulated
// accelerators each, which Slurm has, too. Ends with the test.
#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/end_to_end/cli.hpp"
#include "tests/slurm/slurm_cluster_test.hpp"

namespace orrery {

/// A Slurm, and a fleet of its nodes; a test begins the cluster.
class SlurmLiveTest : public Cli {
 protected:
  using Json = nlohmann::json;

  /// What managers.yaml says of nodes that are lent.
  struct Lent {
    std::string held = "pilots: {idle: 3 s}";
    std::string slurm = "";       ///< further keys of `slurm`, each after a comma
    std::string agents = "lent";  ///< directory of the agents, which is of one cluster
  };

  void SetUp() override {
    Cli::SetUp();
    if (const std::string missing = SlurmCluster::missing(); !missing.empty()) {
      GTEST_SKIP() << "SKIPPED: " << missing;
    }
    auto started = SlurmCluster::start(3);
    ASSERT_TRUE(started) << started.error().text();
    slurm_ = *std::move(started);
    // Scripts of other users lie there, too.
    std::filesystem::permissions(slurm_->path("."), std::filesystem::perms(0755));
    std::filesystem::create_directories(path("import"));
    // The nodes have accelerators for the import alone: Slurm lends whole nodes.
    (void)write("import/slurm.conf",
                "ClusterName=test\nNodeName=n[1-3] Gres=gpu:h100:8 CPUs=64 RealMemory=2000000\n");
    const CliRun fleet = orrery("fleet import slurm " + path("import"));
    ASSERT_EQ(fleet.code, 0) << fleet.err;
    fleet_ = fleet.out;
  }
  void TearDown() override {
    if (HasFailure() && slurm_ != nullptr) {
      std::cerr << slurp(path(cluster_ + "/orreryd.log")) << live("holds").out << live("nodes").out
                << slurm_->run("squeue -a --states=all; sinfo -N").output;
      for (const auto& entry : std::filesystem::directory_iterator(path(""))) {
        if (entry.path().extension() == ".log") std::cerr << slurp(entry.path());
      }
    }
    (void)live("down");
    slurm_.reset();
    Cli::TearDown();
  }

  /// Starts a cluster in a directory of that name; later calls of the program are for it.
  /// `managers`: the text of managers.yaml; empty: there is none.
  [[nodiscard]] CliRun begin(const std::string& name, const std::string& managers) {
    cluster_ = name;
    std::filesystem::create_directories(path(name));
    (void)write(name + "/fleet.yaml", fleet_);
    if (!managers.empty()) (void)write(name + "/managers.yaml", managers);
    CliRun up = live("up");
    EXPECT_EQ(up.code, 0) << up.err;
    return up;
  }
  [[nodiscard]] std::string managers(const Lent& lent) const {
    return fmt::format(
        "{}    slurm: {{config: {}, output: {}{}}}\n    {}\n    agent:\n      directory: {}\n"
        "      options: [--emulate, \"h100:8\", --allow-agent-user, --address, 127.0.0.1]\n",
        kManager, slurm_->conf(), path("pilot-%j.log"), lent.slurm, lent.held, path(lent.agents));
  }
  /// `use`: "owned" or "shared".
  [[nodiscard]] std::string managers(const std::string& use) const {
    return fmt::format("{}    use: {}\n    slurm: {{config: {}}}\n", kManager, use, slurm_->conf());
  }
  [[nodiscard]] CliRun live(const std::string& arguments) const {
    return orrery("--dir " + path(cluster_) + " " + arguments);
  }
  [[nodiscard]] std::string submit(const std::string& arguments) const {
    const CliRun run = live("-o json submit " + arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return Json::parse(run.out)["id"];
  }
  /// Writes the file of a job whose ranks run a script of a shell; returns its path.
  [[nodiscard]] std::string job_file(const std::string& name, int accelerators,
                                     const std::string& script) const {
    return write(name + ".yaml",
                 fmt::format("apiVersion: orrery/v1\nkind: Batch\nname: {}\n"
                             "time_limit: 10 min\nroles:\n- {{accelerators: {}, types: [h100]}}\n"
                             "launch:\n  command: [sh, -c, \"{}\"]\n",
                             name, accelerators, script));
  }
  [[nodiscard]] Json holds() const {
    const CliRun run = live("-o json holds");
    EXPECT_EQ(run.code, 0) << run.err;
    return Json::parse(run.out);
  }
  [[nodiscard]] Json shown(const std::string& job) const {
    return Json::parse(live("-o json job " + job).out);
  }
  [[nodiscard]] std::string phase(const std::string& job) const {
    return shown(job).value("phase", "");
  }
  /// Waits until a job is in a phase; returns whether it is.
  [[nodiscard]] bool reaches(const std::string& job, const std::string& wanted) const {
    return slurm_->await([&] { return phase(job) == wanted; });
  }
  [[nodiscard]] bool finishes(const std::string& job) const { return reaches(job, "finished"); }
  [[nodiscard]] Json nodes_of(const std::string& job) const {
    return shown(job).at("attempts").back().at("nodes");
  }
  /// Faults of the nodes together.
  [[nodiscard]] int node_faults() const {
    int faults = 0;
    const Json nodes = Json::parse(live("-o json nodes").out);
    for (const Json& node : nodes.at("nodes")) faults += node.value("faults", 0);
    return faults;
  }
  /// Does what an administrator does after a crash of slurmctld. It saves its state every five
  /// seconds, so that it starts a job again that it had started just before, finds it on the node,
  /// and drains the node ("Duplicate jobid").
  void resume_nodes() const { (void)slurm_->run("scontrol update nodename=n[1-3] state=resume"); }

  /// Kills the processes of Slurm that started the agent of a node and wait for it.
  void kill_slurmstepd(const std::string& node) const {
    (void)slurm_->run(
        "for agent in $(pgrep -f '[o]rrery-agent --node " + node + " --dir " + path("lent") +
        "'); do step=$(ps -o ppid= -p $agent); "
        "[ \"$(cat /proc/$((step))/comm)\" = slurmstepd ] && kill -KILL $((step)); done");
  }
  [[nodiscard]] pid_t controller() const {
    return std::stoi(slurp(path(cluster_ + "/orreryd.pid")));
  }
  void kill_controller_and_restart() const {
    EXPECT_EQ(::kill(controller(), SIGKILL), 0);
    const CliRun up = live("up");
    EXPECT_EQ(up.code, 0) << up.err;
  }

  /// Submits a job that is no hold; returns its id. It runs for ten minutes unless it is cancelled.
  [[nodiscard]] std::string sbatch(const std::string& options) const {
    const auto run = slurm_->run(
        "sbatch --parsable --exclusive --output=/dev/null --chdir=/ --wrap='sleep 600' " + options);
    EXPECT_EQ(run.status, 0) << run.output;
    return run.output.substr(0, run.output.find('\n'));
  }
  [[nodiscard]] std::string state_of(const std::string& slurm_job) const {
    return slurm_->run("squeue --noheader --states=all --format=%T --job=" + slurm_job).output;
  }
  [[nodiscard]] bool runs_in_slurm(const std::string& slurm_job) const {
    return slurm_->await([&] { return state_of(slurm_job) == "RUNNING\n"; });
  }
  /// Returns the lines of squeue, in that format, for jobs of this cluster whose names have a text.
  [[nodiscard]] std::vector<std::string> squeue(const std::string& text,
                                                const std::string& options) const {
    std::istringstream all(
        slurm_->run("TZ=UTC0 squeue --noheader " + options + " | grep -e ' orr-.*" + text + "'")
            .output);
    std::vector<std::string> lines;
    for (std::string line; std::getline(all, line);) lines.push_back(line);
    return lines;
  }
  /// Returns a script whose first rank notes when it runs although it runs already, and which ends
  /// when there is a file.
  [[nodiscard]] std::string until(const std::string& file) const {
    return fmt::format(
        "if [ $ORRERY_RANK = 0 ]; then exec 9>>{}; flock -n 9 || echo twice >>{}; fi; "
        "while [ ! -e {} ]; do sleep 0.1; done",
        path("lock-" + file), path("doubled"), path(file));
  }

  std::unique_ptr<SlurmCluster> slurm_;

 private:
  static constexpr const char* kManager =
      "apiVersion: orrery/v1\nkind: Managers\nmanagers:\n  - name: hpc\n    nodes: n[1-3]\n";

  std::string fleet_;
  std::string cluster_ = "c";
};

/// Slurm lends all nodes, by pilots that are idle for three seconds at most.
class SlurmPilotTest : public SlurmLiveTest {
 protected:
  void SetUp() override {
    SlurmLiveTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const CliRun up = begin("c", managers(Lent{}));
    ASSERT_EQ(up.code, 0) << up.err;
    EXPECT_NE(up.out.find("3 nodes are lent by resource managers when jobs need them"),
              std::string::npos)
        << up.out;
  }
};

}  // namespace orrery
