#include "node/agent/agent_spec.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Result<AgentSpec> read(const std::string& keys) {
  const Result<Document> text =
      Document::parse("apiVersion: orrery/v1\nkind: Agent\n" + keys, "agent.yaml");
  if (!text) return tl::unexpected(text.error());
  return read_agent_spec(*text);
}

std::string refusal(const std::string& keys) {
  const Result<AgentSpec> spec = read(keys);
  return spec ? "" : spec.error().text();
}

TEST(AgentSpecTest, SaysWhatRunsAndHowLong) {
  const Result<AgentSpec> spec = read(
      "telemetry: 5 s\n"
      "prologue: {command: [/etc/orrery/prepare, --all], timeout: 2 min}\n"
      "health: {command: [dcgmi, health], interval: 5 min, timeout: 20 s, failures: 2}\n");
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(spec->telemetry, Seconds(5));
  EXPECT_EQ(spec->prologue->command, (std::vector<std::string>{"/etc/orrery/prepare", "--all"}));
  EXPECT_EQ(spec->prologue->timeout, Seconds(120));
  EXPECT_FALSE(spec->epilogue);
  EXPECT_EQ(spec->health->interval, Seconds(300));
  EXPECT_EQ(spec->health->timeout, Seconds(20));
  EXPECT_EQ(spec->health->failures, 2u);
  EXPECT_EQ(spec->processes_max, 32'768u);
  const Result<AgentSpec> fences =
      read("devices: [{files: [/dev/a0, /dev/b0]}, {files: []}]\nprocesses_max: 100\n");
  ASSERT_TRUE(fences) << fences.error().text();
  ASSERT_EQ(fences->devices.size(), 2u);
  EXPECT_EQ(fences->devices[0].files, (std::vector<std::string>{"/dev/a0", "/dev/b0"}));
  EXPECT_EQ(fences->processes_max, 100u);
}

TEST(AgentSpecTest, SaysWhetherJobsMayRunAsTheAgentOrLeavesItOpen) {
  EXPECT_EQ(read("").value().allow_agent_user, std::nullopt);
  EXPECT_EQ(read("allow_agent_user: true\n").value().allow_agent_user, true);
  EXPECT_EQ(read("allow_agent_user: false\n").value().allow_agent_user, false);
  EXPECT_NE(refusal("allow_agent_user: perhaps\n").find("agent.yaml:3:19: "), std::string::npos)
      << refusal("allow_agent_user: perhaps\n");
}

TEST(AgentSpecTest, WhatMakesNoSenseIsRefusedWithItsPlace) {
  EXPECT_TRUE(refusal("prologe: {command: [true]}\n")
                  .starts_with("agent.yaml:3:1: unknown key \"prologe\", did you mean "
                               "\"prologue\"?"));
  EXPECT_EQ(refusal("epilogue: {command: []}\n"),
            "agent.yaml:3:11: command: expected a program and its arguments");
  EXPECT_EQ(refusal("burn_in: {command: [x], timeout: 1 ms}\n"),
            "agent.yaml:3:10: timeout: at least 100 ms");
  EXPECT_EQ(refusal("health: {command: [x], failures: 0}\n"),
            "agent.yaml:3:9: failures: at least 1");
  EXPECT_EQ(refusal("telemetry: 1 ms\n"), "agent.yaml:1:1: telemetry: at least 100 ms");
  EXPECT_NE(refusal("kind: Fleet\n"), "");
}

}  // namespace
}  // namespace orrery
