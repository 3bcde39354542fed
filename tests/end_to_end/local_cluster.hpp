// tests/end_to_end/local_cluster.hpp - a cluster of `orrery up`, with two nodes of two
// accelerators, in a directory that is gone with the test.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/end_to_end/cli.hpp"

namespace orrery {

using Json = nlohmann::json;

class LocalClusterTest : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    bring_up();
  }
  virtual void bring_up() {
    const CliRun up = live("up --nodes 2 --accelerators 2");
    ASSERT_EQ(up.code, 0) << up.err;
  }
  void TearDown() override {
    if (HasFailure()) {
      std::cerr << slurp(path("c/orreryd.log")) << slurp(path("c/nodes/node-0/agent.log"));
    }
    const CliRun down = live("down");
    EXPECT_EQ(down.code, 0) << down.err;
    EXPECT_EQ(processes_here(), "");
    Cli::TearDown();
  }
  [[nodiscard]] CliRun live(const std::string& arguments) const {
    return orrery("--dir " + path("c") + " " + arguments);
  }
  [[nodiscard]] std::string submitted(const std::string& arguments) const {
    const CliRun run = live("-o json submit " + arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return Json::parse(run.out)["id"];
  }
  /// Command lines of all processes that name this test's directory.
  [[nodiscard]] std::string processes_here() const {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string line = slurp(entry.path() / "cmdline");
      if (line.find(path("")) != std::string::npos) found += entry.path().string() + " " + line;
    }
    return found;
  }
  /// What the first rank of a job with this role reads in ORRERY_PLAN of its gang.
  [[nodiscard]] Json plan_of(const std::string& role) const {
    const std::string job = write("planned.yaml", R"(apiVersion: orrery/v1
kind: Train
name: planned
restart: {policy: at-once}
launch: {command: [sh, -c, 'echo "$ORRERY_PLAN"']}
roles: [{)" + role + "}]\n");
    const std::string id = submitted(job);
    EXPECT_EQ(live("wait " + id).code, 0);
    const std::string said = live("logs " + id).out;
    const Json plan = Json::parse(said.substr(said.find('{'), said.find('\n') - said.find('{')));
    return plan.at("gangs").at(0);
  }
  void expect_plans() const {
    const Json bends = plan_of("accelerators_min: 1, accelerators_max: 2, node_accelerators: 1");
    EXPECT_EQ(bends.at("accelerators"), 2);
    EXPECT_EQ(bends.at("fallback"), Json::parse(R"([{"lost": 1, "accelerators": 1, "wait_s": 0},
                              {"lost": 2, "restart": true}])"))
        << bends;
    EXPECT_FALSE(bends.contains("plan"));
    const Json stated = plan_of("accelerators: 4, layout: {tp: 2, zero: 1, micro_batch: 3}");
    EXPECT_EQ(stated.at("plan").at("tp"), 2);
    EXPECT_EQ(stated.at("plan").at("dp"), 2);
    EXPECT_EQ(stated.at("plan").at("micro_batch"), 3);
    EXPECT_EQ(stated.at("fallback"), Json::parse(R"([{"lost": 1, "restart": true}])"));
  }
  void kill_dead(const std::string& pid_file) const {
    const int pid = std::stoi(slurp(path(pid_file)));
    const auto handle = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    ASSERT_GE(handle, 0);
    ASSERT_EQ(::syscall(SYS_pidfd_send_signal, handle, SIGKILL, nullptr, 0), 0);
    ::close(handle);
  }
};

}  // namespace orrery
