// The agent as seen by a controller: the real program with real keepers and ranks, over gRPC, and
// what is left when one of them is killed.
#include "base/numbers/rng.hpp"
#include "tests/end_to_end/agent_fixture.hpp"
#include "tests/end_to_end/test_seed.hpp"

namespace orrery {

std::string agent_program() { return ORRERY_AGENT; }

namespace {

TEST_F(AgentTest, RunsRanksAndKeepsWhatTheyWroteWhenTheyAreDone) {
  start();
  const AgentOpening& agent = controller_->told.openings.back();
  EXPECT_EQ(agent.node, "n3");
  EXPECT_EQ(agent.inventory.accelerators, 4u);
  EXPECT_TRUE(agent.inventory.emulated);
  EXPECT_EQ(controller_->told.hellos.back().attempts.size(), 0u);
  launch(
      "echo rank $RANK of $WORLD_SIZE on $CUDA_VISIBLE_DEVICES for $ORRERY_TENANT; "
      "echo '{\"step\":5,\"checkpoint\":\"c\"}' >$ORRERY_PROGRESS",
      2);
  await_stage(RankStage::kGone);
  EXPECT_EQ(report()->end->kind, ExitKind::kDone) << report()->end->blame.evidence;
  EXPECT_EQ(report()->up_epoch, 1u);
  EXPECT_EQ(report()->progress.done, 0.5);
  EXPECT_EQ(controller_->told.notes[kAttempt].progress.checkpoint, "c");
  const std::string wrote = "rank 1 of 2 on 0,1 for a/b\n";
  EXPECT_EQ(read_log(1, kFromTail).part.bytes, wrote);
  EXPECT_TRUE(controller_->told.kept.empty());
  acknowledge();
  EXPECT_EQ(controller_->told.kept[1], wrote);
  EXPECT_EQ(controller_->told.kept.size(), 2u);
  // The keeper is gone, but its files remain.
  const AttemptLogPart part = read_log(1, 5);
  EXPECT_EQ(part.part.bytes, wrote.substr(5));
  EXPECT_EQ(part.part.from, 5u);
  EXPECT_EQ(part.size, wrote.size());
  EXPECT_FALSE(read_log(2, 0).found);
  controller_->order(MendNode{FaultLayer::kHost});
  await([&] { return controller_->told.mended > 0; });
  EXPECT_EQ(finish(SIGTERM), 0);
}

TEST_F(AgentTest, IsKilledAndReplacedAndNoRankNotices) {
  start();
  launch(kSaysWho);
  await_step(1);
  const Witness rank(std::stoi(read_log(0, 0).part.bytes));
  EXPECT_EQ(finish(SIGKILL), 128 + SIGKILL);
  start();
  EXPECT_EQ(controller_->told.openings.back().incarnation, 2u);
  ASSERT_EQ(controller_->told.hellos.back().attempts.size(), 1u);
  EXPECT_EQ(controller_->told.hellos.back().attempts[0].report.token.id, kAttempt);
  // What it finds it reports as it is, and it obeys the new one as it did the old one.
  controller_->told.attempts.clear();
  await_stage(RankStage::kRunning);
  EXPECT_TRUE(rank.alive());
  EXPECT_FALSE(read_log(0, 0).part.bytes.empty());
  controller_->order(EndRanks{{kAttempt, 1}, Duration::seconds(30)});
  await_stage(RankStage::kGone);
  EXPECT_FALSE(rank.alive());
  acknowledge();
}

TEST_F(AgentTest, SaysAgainWhatAControllerThatIsGoneDidNotAcknowledge) {
  start();
  launch("exit 3");
  await_stage(RankStage::kGone);
  controller_->told.attempts.clear();
  const std::size_t before = controller_->told.openings.size();
  controller_->restart();
  await([&] { return controller_->told.openings.size() > before; });
  await_stage(RankStage::kGone);
  EXPECT_EQ(report()->end->kind, ExitKind::kProgram);
  EXPECT_EQ(report()->end->blame.evidence, "exit status 3 of rank 0");
  acknowledge();
  // The agent refuses another cluster.
  controller_->cluster = 8;
  controller_->restart();
  await([&] { return controller_->told.openings.size() > before + 1; });
  EXPECT_EQ(end_of(std::exchange(agent_, 0)), 1);
  EXPECT_NE(slurp(log()).find("takes this agent for node 3 of cluster 0000000000000008"),
            std::string::npos);
}

TEST_F(AgentTest, ReportsAKilledKeeperWithItsRanks) {
  start();
  launch(kSaysWho);
  await_step(1);
  const Witness rank(std::stoi(read_log(0, 0).part.bytes));
  // The agent's child is the guard, the keeper is the guard's.
  const std::vector<pid_t> guards = children_of(agent_);
  ASSERT_EQ(guards.size(), 1u);
  const std::vector<pid_t> keepers = children_of(guards[0]);
  ASSERT_EQ(keepers.size(), 1u);
  ASSERT_EQ(::kill(keepers[0], SIGKILL), 0);
  await_stage(RankStage::kGone);
  EXPECT_FALSE(rank.alive());
  EXPECT_EQ(report()->end->kind, ExitKind::kInfra);
  EXPECT_EQ(report()->end->blame.evidence, "the keeper of its ranks died");
  EXPECT_EQ(report()->end->blame.node, kNode);
  acknowledge();
  EXPECT_FALSE(read_log(0, 0).part.bytes.empty());
}

TEST_F(AgentTest, AGuardThatDiesAfterItsAgentIsReportedByTheNext) {
  start();
  launch(kSaysWho);
  await_step(1);
  const Witness rank(std::stoi(read_log(0, 0).part.bytes));
  const std::vector<pid_t> guards = children_of(agent_);
  ASSERT_EQ(guards.size(), 1u);
  EXPECT_EQ(finish(SIGKILL), 128 + SIGKILL);
  start();
  ASSERT_EQ(controller_->told.hellos.back().attempts.size(), 1u);
  // The keeper is no child of the new agent: it ends the ranks, and its lock shows when all is
  // over.
  ASSERT_EQ(::kill(guards[0], SIGKILL), 0);
  await_stage(RankStage::kGone);
  EXPECT_FALSE(rank.alive());
  acknowledge();
}

TEST_F(AgentTest, FindsTwoAcceleratorsAndSaysWhatTheyRead) {
  libraries_ = std::filesystem::path(ORRERY_FAKE_NVML).parent_path();
  write_spec("telemetry: 100 ms\n");
  start();
  const NodeInventory& found = controller_->told.openings.back().inventory;
  EXPECT_EQ(found.accelerator, "nvidia-h100-sxm5-80g");
  EXPECT_EQ(found.accelerators, 2u);
  EXPECT_EQ(found.driver, "NVML, driver 550.54");
  EXPECT_FALSE(found.emulated);
  await([&] { return controller_->told.readings.size() >= 2; });
  const NodeReading& reading = controller_->told.readings.back();
  EXPECT_GT(reading.memory_used_bytes, 0u);
  ASSERT_EQ(reading.accelerators.size(), 2u);
  EXPECT_DOUBLE_EQ(reading.accelerators[1].power_w.value(), 301.5);
  launch("echo on $CUDA_VISIBLE_DEVICES", 2);
  await_stage(RankStage::kGone);
  EXPECT_EQ(read_log(0, kFromTail).part.bytes, "on 0,1\n");
  acknowledge();
  EXPECT_EQ(finish(SIGTERM), 0);

  const std::string out = directory_ + "/found.json";
  EXPECT_EQ(end_of(spawn_program({ORRERY_AGENT, "--discover", "-o", "json"}, out)), 0);
  const auto printed = nlohmann::json::parse(slurp(out));
  EXPECT_EQ(printed["accelerator"], "nvidia-h100-sxm5-80g");
  EXPECT_EQ(printed["devices"][1]["serial"], "GPU-1");
  EXPECT_EQ(printed["notes"].size(), 0u);
  EXPECT_EQ(end_of(spawn_program({ORRERY_AGENT, "--node", "n3"}, out)), 2) << "no controller";
}

TEST_F(AgentTest, AClockIsHeldByTheDriverAndARefusalIsSaidUntilItDoes) {
  libraries_ = directory_ + "/libraries";
  std::filesystem::create_directory(libraries_);
  std::filesystem::copy(ORRERY_FAKE_NVML, libraries_);
  const std::string refuses = libraries_ + "/refuses-limits";
  std::ofstream(refuses) << "";
  write_spec("telemetry: 100 ms\n");
  start();
  const auto reading = [&] {
    return controller_->told.readings.empty() ? NodeReading{.accelerators = {{}, {}}}
                                              : controller_->told.readings.back();
  };
  const auto runs_at = [&](double clock) {
    return report() != nullptr && report()->stage == RankStage::kRunning &&
           report()->clocks == std::vector<double>{clock};
  };
  clock_ = 0.7;
  launch(kSaysWho);
  await([&] { return runs_at(1) && !reading().clock_refusal.empty(); });
  EXPECT_NE(reading().clock_refusal.find("Insufficient Permissions"), std::string::npos);
  EXPECT_FALSE(reading().accelerators.at(0).clock);
  // The controller says again what is not so; now the driver lets the agent.
  std::filesystem::remove(refuses);
  launch(kSaysWho);
  await([&] { return runs_at(0.7) && reading().accelerators.at(0).clock == 0.7; });
  EXPECT_EQ(reading().clock_refusal, "");
  EXPECT_FALSE(reading().accelerators.at(1).clock) << "it is on the first alone";
  // The agent's successor lifts the cap once no attempt asks for it.
  EXPECT_EQ(finish(SIGKILL), 128 + SIGKILL);
  start();
  await([&] { return reading().accelerators.at(0).clock == 0.7; });
  controller_->order(KillRanks{{kAttempt, 1}});
  await_stage(RankStage::kGone);
  acknowledge();
  await([&] { return !reading().accelerators.at(0).clock; });
}

TEST_F(AgentTest, APrologueThatFailsIsTheNodesFaultAndTheRanksNeverBegin) {
  write_spec(
      "prologue: {command: [sh, -c, \"echo for $ORRERY_JOB on $ORRERY_DEVICES of $ORRERY_NODE; "
      "test -e " +
      directory_ +
      "/fit || exit 3\"]}\n"
      "epilogue: {command: [touch, " +
      directory_ + "/cleaned]}\n");
  start();
  launch("touch " + directory_ + "/began", 2);
  await_stage(RankStage::kGone);
  const std::string evidence = "the prologue failed: exit status 3: for train on 0,1 of n3";
  EXPECT_EQ(report()->end->kind, ExitKind::kInfra);
  EXPECT_EQ(report()->end->blame.evidence, evidence);
  EXPECT_EQ(report()->end->blame.node, kNode);
  ASSERT_EQ(controller_->told.faults.size(), 1u) << "told before the attempt's end";
  EXPECT_EQ(controller_->told.faults[0].evidence, evidence);
  EXPECT_TRUE(controller_->told.faults[0].repair);
  EXPECT_FALSE(controller_->told.faults[0].stops_jobs);
  acknowledge();
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/began"));
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/cleaned")) << "there was nothing to clean";
  // Only an operator can mend it, which shows when it works again.
  controller_->order(MendNode{FaultLayer::kHost});
  reconcile();
  EXPECT_EQ(controller_->told.mended, 0);
  std::ofstream(directory_ + "/fit") << "";
  controller_->told.attempts.clear();
  launch("touch " + directory_ + "/began");
  await_stage(RankStage::kGone);
  EXPECT_EQ(report()->end->kind, ExitKind::kDone) << report()->end->blame.evidence;
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/began"));
  EXPECT_GT(controller_->told.mended, 0);
  acknowledge();
  EXPECT_EQ(finish(SIGTERM), 0);
}

TEST_F(AgentTest, AnOrderToEndDoesNotWaitForAPrologueAndOneThatIsLateIsKilled) {
  write_spec("prologue: {command: [sleep, 1000]}\n");
  start();
  launch("true");
  await([&] { return !children_of(agent_).empty(); });
  const Witness hook(children_of(agent_).at(0));
  controller_->order(EndRanks{{kAttempt, 1}, Duration::seconds(30)});
  await_stage(RankStage::kGone);
  EXPECT_FALSE(report()->end) << "it was asked for";
  EXPECT_TRUE(hook.ends());
  acknowledge();
  EXPECT_EQ(finish(SIGTERM), 0);

  write_spec("prologue: {command: [sh, -c, \"echo stuck; sleep 1000\"], timeout: 100 ms}\n");
  start();
  controller_->told.attempts.clear();
  launch("true");
  await_stage(RankStage::kGone);
  EXPECT_EQ(report()->end->blame.evidence, "the prologue failed: not done after 100 ms: stuck");
  acknowledge();
}

TEST_F(AgentTest, AnEpilogueEndsBeforeTheAttemptIsReportedGone) {
  write_spec(
      fmt::format("prologue: {{command: [touch, {0}/prepared]}}\n"
                  "epilogue: {{command: [sh, -c, \"test -e {0}/ran && "
                  "echo $ORRERY_TENANT >{0}/cleaned; echo worn; exit 1\"]}}\n",
                  directory_));
  start();
  launch("test -e " + directory_ + "/prepared && touch " + directory_ + "/ran");
  await_stage(RankStage::kGone);
  EXPECT_EQ(report()->end->kind, ExitKind::kDone) << report()->end->blame.evidence;
  EXPECT_EQ(slurp(directory_ + "/cleaned"), "a/b\n");
  ASSERT_EQ(controller_->told.faults.size(), 1u);
  EXPECT_EQ(controller_->told.faults[0].evidence, "the epilogue failed: exit status 1: worn");
  acknowledge();
  EXPECT_EQ(controller_->told.kept.size(), 1u);
  EXPECT_LE(controller_->told.times_noted, 1) << "what cannot be set up here, if anything, once";
}

TEST_F(AgentTest, AHealthCheckThatFailsMakesTheNodeUnwellUntilItPasses) {
  const std::string well = directory_ + "/well";
  std::ofstream(well) << "";
  write_spec("telemetry: 100 ms\nhealth: {command: [cat, " + well +
             "], interval: 100 ms, failures: 2}\n");
  start();
  await([&] { return !controller_->told.readings.empty(); });
  EXPECT_EQ(controller_->told.readings.back().unwell, "");
  std::filesystem::remove(well);
  await([&] { return !controller_->told.faults.empty(); });
  const std::string evidence =
      fmt::format("exit status 1: cat: {}: No such file or directory", well);
  EXPECT_EQ(controller_->told.faults[0].evidence, "health check failed 2 times: " + evidence);
  await([&] { return controller_->told.readings.back().unwell.ends_with(evidence); });
  controller_->order(MendNode{FaultLayer::kHost});
  reconcile();
  EXPECT_EQ(controller_->told.mended, 0);
  std::ofstream(well) << "";
  await([&] { return controller_->told.mended > 0; });
  await([&] { return controller_->told.readings.back().unwell.empty(); });
  EXPECT_EQ(controller_->told.faults.size(), 1u);
}

struct BadStart {
  std::vector<std::string> arguments;
  std::string user;
  std::string evidence;
  ExitKind kind = ExitKind::kInfra;
};

TEST_F(AgentTest, ABurnInSaysHowItEndsAndWorkComesBeforeIt) {
  const std::string good = directory_ + "/good";
  write_spec("telemetry: 100 ms\nburn_in: {command: [sh, -c, \"test -e " + directory_ +
             "/long && sleep 1000; test -e " + good + " || { echo CPU 7 is wrong; exit 1; }\"]}\n");
  start();
  const auto said = [&](const std::string& start) {
    return controller_->told.readings.back().burn_in.starts_with(start);
  };
  await([&] { return !controller_->told.readings.empty(); });
  controller_->burn_in();
  await([&] { return said("failed after ") && !controller_->told.faults.empty(); });
  EXPECT_EQ(controller_->told.faults.back().evidence,
            "the burn-in failed: exit status 1: CPU 7 is wrong");
  EXPECT_TRUE(controller_->told.faults.back().repair);
  EXPECT_EQ(controller_->told.readings.back().unwell, controller_->told.faults.back().evidence);
  // An empty node stays unwell while it has failed, whichever agent reports.
  EXPECT_EQ(finish(SIGKILL), 128 + SIGKILL);
  const std::size_t before = controller_->told.readings.size();
  start();
  await([&] { return controller_->told.readings.size() > before; });
  EXPECT_EQ(controller_->told.readings.back().unwell,
            "the burn-in failed: exit status 1: CPU 7 is wrong");
  controller_->order(MendNode{FaultLayer::kHost});
  reconcile();
  EXPECT_EQ(controller_->told.mended, 0);
  std::ofstream(good) << "";
  controller_->burn_in();
  await([&] { return said("passed, in "); });
  await([&] { return controller_->told.faults.back().layer == FaultLayer::kNone; });
  EXPECT_EQ(controller_->told.readings.back().unwell, "");
  std::ofstream(directory_ + "/long") << "";
  controller_->burn_in();
  await([&] { return said("runs"); });
  launch("sleep 1000");
  await_stage(RankStage::kRunning);
  await([&] { return said("stopped after "); });
  controller_->burn_in();
  await([&] { return said("not begun: work is here"); });
}

TEST_F(AgentTest, WhereRanksComputeWrongABurnInMustPass) {
  const std::string good = directory_ + "/good";
  write_spec("telemetry: 100 ms\nburn_in: {command: [test, -e, " + good + "]}\n");
  start();
  launch(R"(echo '{"wrong": "shard 3 of step 9"}' >$ORRERY_PROGRESS; sleep 1000)");
  await([&] { return !controller_->told.faults.empty(); });
  const HealthFault fault = controller_->told.faults.back();
  EXPECT_EQ(fault.layer, FaultLayer::kAccelerator);
  EXPECT_NE(fault.evidence.find("computes wrong results here: shard 3 of step 9"),
            std::string::npos)
      << fault.evidence;
  EXPECT_TRUE(fault.repair);
  EXPECT_FALSE(fault.stops_jobs) << "whom it stops is for the controller to say";
  EXPECT_EQ(fault.claimed_by, kAttempt) << "a program's word, not the node's";
  EXPECT_EQ(controller_->told.readings.back().unwell, "") << "before the controller believes it";
  controller_->order(EndRanks{{kAttempt, 1}, Duration::seconds(30)});
  await_stage(RankStage::kGone);
  acknowledge();
  const std::ofstream mended(good);
  controller_->order(MendNode{});
  await([&] { return controller_->told.mended > 0; });
  EXPECT_EQ(controller_->told.readings.back().unwell, "");
  // The end of the rank that said so is the program's claim.
  controller_->told.attempts.clear();
  launch(R"(echo '{"wrong": "shard 4", "rank": 0}' >$ORRERY_PROGRESS; exit 1)");
  await_stage(RankStage::kGone);
  EXPECT_EQ(report()->end->kind, ExitKind::kClaim);
  EXPECT_EQ(report()->end->blame.layer, FaultLayer::kAccelerator);
}

TEST_F(AgentTest, AnAttemptThatCannotStartSaysWhy) {
  const std::vector<BadStart> starts{
      {{"--keeper", "/no/such/keeper"},
       "",
       "the keeper of its ranks did not start: cannot run /no/such/keeper: No such file or "
       "directory"},
      {{"--keeper", "/bin/false"}, "", "the keeper of its ranks did not start: exit status 1"},
      {{},
       "no-such-user",
       "n3 refused it: no user \"no-such-user\" on this node",
       ExitKind::kRefused}};
  for (const BadStart& bad : starts) {
    start(bad.arguments);
    controller_->told.attempts.clear();
    launch("true", 1, bad.user);
    await_stage(RankStage::kGone);
    EXPECT_EQ(report()->end->kind, bad.kind);
    EXPECT_EQ(report()->end->blame.evidence, bad.evidence);
    EXPECT_EQ(report()->end->blame.node.valid(), bad.kind == ExitKind::kInfra);
    acknowledge();
    EXPECT_EQ(finish(SIGTERM), 0);
  }
}

TEST_F(AgentTest, ThatIsRootRefusesAJobWithoutAUserUnlessItsOperatorAllowsIt) {
  ASSERT_EQ(::geteuid(), 0U) << "this test needs root: another user runs as itself in any case";
  write_spec("allow_agent_user: false\n");
  start();  // The file takes precedence over the option that allows it.
  EXPECT_EQ(controller_->told.openings.back().user, "root");
  EXPECT_EQ(controller_->told.openings.back().job_users, JobUsers::kMapped);
  launch("id -u");
  await_stage(RankStage::kGone);
  EXPECT_EQ(report()->end->kind, ExitKind::kRefused);
  EXPECT_EQ(report()->end->blame.layer, FaultLayer::kNone);
  EXPECT_FALSE(report()->end->blame.node.valid());
  EXPECT_NE(report()->end->blame.evidence.find("Expected run_as of its tenant"), std::string::npos)
      << report()->end->blame.evidence;
  acknowledge();
  EXPECT_EQ(finish(SIGTERM), 0);
  write_spec("telemetry: 1 s\n");
  start();
  EXPECT_EQ(controller_->told.openings.back().job_users, JobUsers::kAny);
  controller_->told.attempts.clear();
  launch("id -u");
  await_stage(RankStage::kGone);
  EXPECT_EQ(report()->end->kind, ExitKind::kDone) << report()->end->blame.evidence;
  // A user named root is refused, whatever the controller orders.
  acknowledge();
  controller_->told.attempts.clear();
  launch("id -u", 1, "root");
  await_stage(RankStage::kGone);
  EXPECT_EQ(report()->end->kind, ExitKind::kRefused);
  EXPECT_NE(report()->end->blame.evidence.find("user 0"), std::string::npos);
}

TEST_F(AgentTest, EndsWellWhereverItsConnectionIs) {
  // What a thread of gRPC that is left behind in a handshake allocates is lost; slow allocations
  // keep it there for long.
  sanitizer_ = "fast_unwind_on_malloc=0";
  Rng rng(test_seed());
  for (int run = 0; run < 8; ++run) {
    agent_ = spawn();
    bool over = false;
    const auto later = Duration::milliseconds(200 + static_cast<std::int64_t>(rng.below(250)));
    real_->env().timers.call_after(later, [&] { over = true; });
    real_->run_until([&] { return over; });
    const int status = finish(SIGTERM);
    const std::string words = slurp(log());
    // A process that does not ignore signals yet ends by this one.
    EXPECT_TRUE(status == 0 || status == 128 + SIGTERM)
        << status << ": " << words.substr(std::min(words.rfind("SUMMARY"), words.size()));
  }
}

TEST_F(AgentTest, WhatAKeeperComplainedOfIsInTheLogWhenItIsGone) {
  const std::string keeper = directory_ + "/keeper";
  std::ofstream(keeper) << "#!/bin/sh\necho something is odd here >&2\nexec "
                        << std::filesystem::path(agent_program()).parent_path().string()
                        << "/orrery-keeper \"$@\"\n";
  std::filesystem::permissions(keeper, std::filesystem::perms::owner_all);
  start({"--keeper", keeper});
  launch("true");
  await_stage(RankStage::kGone);
  EXPECT_EQ(report()->end->kind, ExitKind::kDone) << report()->end->blame.evidence;
  acknowledge();
  const std::string words = slurp(log());
  EXPECT_NE(words.find("a keeper complained"), std::string::npos) << words;
  EXPECT_NE(words.find("something is odd here"), std::string::npos) << words;
}

TEST_F(AgentTest, IsTheOnlyOneOfItsDirectoryAndSaysWhatIsWrong) {
  start();
  EXPECT_EQ(end_of(spawn()), 1);
  EXPECT_NE(slurp(log()).find("/node/lock: another agent holds it"), std::string::npos);
  node_directory_ += std::string(100, 'x');
  EXPECT_EQ(end_of(spawn()), 2);
  EXPECT_NE(slurp(log()).find("so that sockets may be in it"), std::string::npos);
}

}  // namespace
}  // namespace orrery
