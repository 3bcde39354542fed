// node/attempts/node_attempts_test.cpp - the life of attempts on a node whose keepers the test
// plays.
#include "node/attempts/node_attempts.hpp"

#include "base/set_time_test.hpp"
#include "node/agent/agent_parts_test.hpp"
#include "node/keeper/keeper_guard.hpp"

namespace orrery {
namespace {

constexpr AttemptId kAttempt{JobId(5), 1};
constexpr AttemptId kOther{JobId(6), 1};
constexpr AgentIdentity kIdentity{NodeId(3), 1, 1};
constexpr OrderStamp kStamp{1, 1};

/// A keeper of the test, and the attempt that hears what it says.
struct PlayedKeeper {
  KeptKeeper* keeper = nullptr;  ///< as long as the attempt is here
  KeeperEvents* events = nullptr;
};

class NodeAttemptsTest : public AgentPartTest {
 protected:
  void SetUp() override {
    AgentPartTest::SetUp();
    clocks_ = std::make_unique<NodeClocks>(
        real_->env(), log_, NodeClocks::Setup{.file = directory_ + "/clocks", .devices = 4},
        NodeClocks::Events{.set = [](const DeviceClocks::Change&,
                                     const Telemetry::ClockSetting& then) { then({}); },
                           .answered = [] {}});
    fitness_ = std::make_unique<NodeFitness>(
        *real_, log_, NodeFitness::Setup{{}, {"n3", directory_ + "/burn-in", {}}},
        NodeFitness::Events{.fault =
                                [this](const HealthFault& fault) {
                                  agent_.fault(fault);
                                  agent_.act();
                                },
                            .mended = [] {},
                            .changed = [] {},
                            .idle = [] { return false; }});
    relay_ = std::make_unique<CommandRelay>(*session_, "n3");
    make({});
  }
  void TearDown() override {
    attempts_.reset();
    AgentPartTest::TearDown();
  }

  /// Makes the attempts of an agent that has begun.
  void make(AttemptHooks::Setup hooks) {
    hooks.node = "n3";
    NodeAttempts::Setup setup{.directory = directory_ + "/attempts",
                              .run = directory_ + "/attempts",
                              .facts = {.agent = agent_user(AgentUserJobs::kAllowed)},
                              .hooks = std::move(hooks),
                              .make_keeper = {}};
    setup.make_keeper = [this](KeeperEvents& events, const AttemptId& id, const KeeperFiles&) {
      auto keeper = std::make_unique<KeptKeeper>();
      keeper->start_outcome = start_outcome_;
      played_[id] = {keeper.get(), &events};
      return keeper;
    };
    attempts_ = std::make_unique<NodeAttempts>(
        NodeAttempts::Parts{*real_, log_, *session_, agent_, *clocks_, *fitness_, *relay_},
        std::move(setup));
    if (!agent_.begun()) agent_.begin({.cluster = kCluster, .identity = kIdentity}, {});
  }
  [[nodiscard]] static HookSpec script(const std::string& text) {
    return {.command = {"/bin/sh", "-c", text}};
  }

  void order(OrderKind what) {
    NodeProgram program{.job = "train", .tenant = "lab", .command = {"true"}};
    program.gangs = {{.gang = 0, .nodes = {{"a", {0}}}}};
    program.user = run_as_;
    sequence_ += 1;
    agent_.obey({{kCluster, {1, sequence_}, kIdentity, std::move(what)}, program});
  }
  void launch(const AttemptId& id = kAttempt, double clock = 1) {
    LaunchRanks ranks;
    ranks.token = {id, 1};
    ranks.shares = {{.gang = 0, .devices = 0b1010, .ranks = {0, 1}, .clock = clock}};
    ranks.lease.length = Duration::hours(24);
    ranks.heard = RealClock().now_boot();
    order(ranks);
  }
  [[nodiscard]] KeeperFiles files(const AttemptId& id = kAttempt) const {
    return KeeperFiles{fmt::format("{}/attempts/{}-{}", directory_, id.job.value(), id.attempt)};
  }
  /// The keeper says that its ranks are in this stage.
  void say(RankStage stage, const AttemptId& id = kAttempt) {
    KeeperStatus status;
    status.report.token = {id, 1};
    status.report.stage = stage;
    status.report.applied = kStamp;
    if (stage == RankStage::kGone) status.report.end = AttemptEnd{};
    played_.at(id).events->on_status(id, status);
  }
  void say_over(const std::string& failure = "", const AttemptId& id = kAttempt) {
    played_.at(id).events->on_over(id, failure);
  }
  [[nodiscard]] KeptKeeper& keeper(const AttemptId& id = kAttempt) {
    return *played_.at(id).keeper;
  }
  /// Returns the stages that the controller has heard of, in order.
  [[nodiscard]] std::vector<RankStage> stages() const {
    const std::vector<AttemptReport> reports = channel_.reports<AttemptReport>();
    std::vector<RankStage> stages;
    stages.reserve(reports.size());
    for (const AttemptReport& each : reports) stages.push_back(each.stage);
    return stages;
  }
  [[nodiscard]] AttemptReport last_report() const {
    const std::vector<AttemptReport> all = channel_.reports<AttemptReport>();
    EXPECT_FALSE(all.empty());
    return all.empty() ? AttemptReport() : all.back();
  }
  [[nodiscard]] bool here(const AttemptId& id = kAttempt) {
    return attempts_->living_keeper(id) != nullptr;
  }
  void carry_out(const AgentEffect& effect, const NodeProgram* program) {
    if (const auto* report = std::get_if<Report>(&effect)) {
      session_->send(*report);
    } else if (const auto* start = std::get_if<StartKeeper>(&effect)) {
      attempts_->carry_out(*start, *program);
    } else if (const auto* tell = std::get_if<TellKeeper>(&effect)) {
      attempts_->carry_out(*tell, program);
    }
  }

  SetTime time_;
  AgentDriver agent_{time_, [this](const AgentEffect& effect, const NodeProgram* program) {
                       carry_out(effect, program);
                     }};
  std::unique_ptr<NodeClocks> clocks_;
  std::unique_ptr<NodeFitness> fitness_;
  std::unique_ptr<CommandRelay> relay_;
  Status start_outcome_;
  std::string run_as_;
  std::uint64_t sequence_ = 0;
  std::map<AttemptId, PlayedKeeper> played_;
  std::unique_ptr<NodeAttempts> attempts_;
};

// --- The beginning ------------------------------------------------------------------------------

TEST_F(NodeAttemptsTest, AnOrderToLaunchWritesTheLaunchAndStartsTheKeeper) {
  launch();
  ASSERT_TRUE(here());
  EXPECT_EQ(keeper().started, 1);
  const Result<KeeperLaunch> launch = read_keeper_launch(real_->env().storage, files());
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_EQ(launch->facts.job, "train");
  EXPECT_EQ(launch->ranks.token, (FenceToken{kAttempt, 1}));
  EXPECT_EQ(attempts_->size(), 1u);
}

TEST_F(NodeAttemptsTest, AKeeperThatCannotBeRunIsTheNodesFault) {
  start_outcome_ = environment_error("cannot run orrery-keeper: No space left on device");
  launch();
  EXPECT_FALSE(here());
  EXPECT_EQ(stages(), std::vector<RankStage>{RankStage::kGone});
  const AttemptReport report = last_report();
  ASSERT_TRUE(report.end);
  EXPECT_EQ(report.end->kind, ExitKind::kInfra);
  EXPECT_EQ(report.end->blame.layer, FaultLayer::kStorage) << "its text names the disk";
  EXPECT_EQ(report.end->blame.node, kNode);
  EXPECT_FALSE(std::filesystem::exists(files().launch())) << "sealed: no keeper can start late";
  EXPECT_TRUE(lines_.has("attempt did not start job=5 attempt=1")) << lines_.text;
}

TEST_F(NodeAttemptsTest, AKeeperThatDiesBeforeItLivesIsTheHostsFault) {
  launch();
  say_over("exit status 127");
  EXPECT_FALSE(here());
  const AttemptReport report = last_report();
  ASSERT_TRUE(report.end);
  EXPECT_EQ(report.end->blame.layer, FaultLayer::kHost);
  EXPECT_EQ(report.end->blame.evidence, "the keeper of its ranks did not start: exit status 127");
  EXPECT_EQ(report.applied, (OrderStamp{1, 1})) << "no older order can start it";
}

TEST_F(NodeAttemptsTest, AJobThatTheNodeMayNotRunIsRefusedWithoutBlame) {
  run_as_ = "nobody-of-this-name";
  launch();
  EXPECT_FALSE(here());
  const AttemptReport report = last_report();
  ASSERT_TRUE(report.end);
  EXPECT_EQ(report.end->kind, ExitKind::kRefused);
  EXPECT_TRUE(report.end->blame.evidence.starts_with("n3 refused it: "))
      << report.end->blame.evidence;
  EXPECT_EQ(report.end->blame.node, Blame().node);
  EXPECT_FALSE(std::filesystem::exists(files().directory));
}

TEST_F(NodeAttemptsTest, AttemptsOfAnEarlierAgentAreAdopted) {
  std::filesystem::create_directories(files().directory);
  std::filesystem::create_directories(files(kOther).directory);
  const Result<FileDescriptor> lock = lock_keeper_directory(files());
  ASSERT_TRUE(lock);
  const Result<std::vector<AttemptId>> living = attempts_->find_living();
  ASSERT_TRUE(living);
  EXPECT_EQ(*living, std::vector<AttemptId>{kAttempt});
  attempts_->adopt(*living);
  ASSERT_TRUE(here());
  EXPECT_EQ(keeper().adopted, 1);
  EXPECT_EQ(keeper().started, 0);
}

// --- While it runs ------------------------------------------------------------------------------

TEST_F(NodeAttemptsTest, WhatTheKeeperReportsReachesTheController) {
  launch();
  say(RankStage::kRunning);
  EXPECT_EQ(stages(), std::vector<RankStage>{RankStage::kRunning});
  KeeperStatus failed;
  failed.report.token = {kAttempt, 1};
  failed.report.stage = RankStage::kGone;
  failed.report.end = AttemptEnd{ExitKind::kProgram, {.layer = FaultLayer::kProgram}};
  played_.at(kAttempt).events->on_status(kAttempt, failed);
  EXPECT_EQ(last_report().end->blame.node, kNode);
}

TEST_F(NodeAttemptsTest, NotesAreSentWhenTheyChangeAndOnANewStream) {
  launch();
  say(RankStage::kRunning);
  EXPECT_TRUE(channel_.all<AttemptNotes>().empty()) << "most jobs have none";
  played_.at(kAttempt).events->on_paces(kAttempt, {{{.rank = 0, .seconds = 2}}});
  played_.at(kAttempt).events->on_paces(kAttempt, {{{.rank = 0, .seconds = 2}}});
  ASSERT_EQ(channel_.all<AttemptNotes>().size(), 1u);
  say(RankStage::kRunning);
  EXPECT_EQ(channel_.all<AttemptNotes>().size(), 1u) << "a status keeps the paces";
  attempts_->send_notes();
  const std::vector<AttemptNotes> notes = channel_.all<AttemptNotes>();
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[1], notes[0]);
  EXPECT_EQ(notes[1].attempt, kAttempt);
}

TEST_F(NodeAttemptsTest, ReportsHoldTheClocksOfTheDevices) {
  launch(kAttempt, 0.5);
  say(RankStage::kRunning);
  EXPECT_EQ(last_report().clocks, std::vector<double>{0.5});
  clocks_->want(kOther, {{.gang = 0, .devices = 0b10, .ranks = {0}, .clock = 0.25}});
  const std::size_t before = stages().size();
  attempts_->correct_clocks();
  EXPECT_EQ(stages().size(), before) << "a lower clock that another needs is as ordered";
  clocks_->want(kAttempt, {{.gang = 0, .devices = 0b1010, .ranks = {0, 1}, .clock = 0.75}});
  attempts_->correct_clocks();
  EXPECT_EQ(last_report().clocks, std::vector<double>{0.75});
}

TEST_F(NodeAttemptsTest, AClaimOfRanksIsPassedOnOnce) {
  launch();
  const WrongResults wrong{"rank 0 differs\nfrom rank 1"};
  played_.at(kAttempt).events->on_wrong(kAttempt, wrong);
  played_.at(kAttempt).events->on_wrong(kAttempt, wrong);
  const std::vector<HealthFault> faults = channel_.reports<HealthFault>();
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_TRUE(
      faults[0].evidence.starts_with("job 5 says that it computes wrong results here: rank 0"));
  EXPECT_EQ(faults[0].evidence.find('\n'), std::string::npos);
}

TEST_F(NodeAttemptsTest, QuestionsForOutputGoToTheKeeperOrToTheFiles) {
  launch();
  attempts_->answer({.id = 1, .attempt = kAttempt, .log = {0, 0, 0}});
  EXPECT_EQ(keeper().all<LogQuestion>().size(), 1u);
  attempts_->answer({.id = 2, .attempt = kOther, .log = {0, 0, 0}});
  ASSERT_EQ(channel_.all<AttemptLogPart>().size(), 1u);
  EXPECT_EQ(channel_.all<AttemptLogPart>()[0].id, 2u);
  EXPECT_FALSE(channel_.all<AttemptLogPart>()[0].found);
}

// --- The end ------------------------------------------------------------------------------------

TEST_F(NodeAttemptsTest, AKeeperIsReleasedOnceItsEndIsKnownAndThenItIsOver) {
  launch();
  say(RankStage::kGone);
  const std::vector<Report> reports = channel_.all<Report>();
  ASSERT_FALSE(reports.empty());
  EXPECT_TRUE(keeper().orders<ReleaseKeeper>().empty()) << "the controller does not know yet";
  order(Acknowledge{reports.back().number});
  EXPECT_EQ(keeper().orders<ReleaseKeeper>().size(), 1u);
  say_over();
  EXPECT_FALSE(here());
  EXPECT_TRUE(attempts_->empty());
  EXPECT_TRUE(lines_.has("attempt over job=5 attempt=1")) << lines_.text;
}

TEST_F(NodeAttemptsTest, AKeeperThatDiesIsReportedByTheAgentAndItsWordsAreLogged) {
  launch();
  say(RankStage::kRunning);
  ASSERT_TRUE(real_->env().storage.write_file(files().errors(), "out of\nmemory"));
  say_over();
  EXPECT_FALSE(here());
  EXPECT_EQ(last_report().stage, RankStage::kGone);
  EXPECT_EQ(last_report().end->blame.evidence, "the keeper of its ranks died");
  EXPECT_TRUE(lines_.has("a keeper complained")) << lines_.text;
}

TEST_F(NodeAttemptsTest, CommandsEndWithTheirAttempt) {
  launch();
  relay_->open({kAttempt, {.id = 8}}, attempts_->living_keeper(kAttempt));
  say_over();
  ASSERT_EQ(channel_.all<ExecEnd>().size(), 1u);
  EXPECT_EQ(channel_.all<ExecEnd>()[0].error, "the attempt has ended");
}

TEST_F(NodeAttemptsTest, CommandsEndWithTheConnectionToTheirKeeper) {
  launch();
  relay_->open({kAttempt, {.id = 8}}, attempts_->living_keeper(kAttempt));
  played_.at(kAttempt).events->on_break(kAttempt);
  ASSERT_EQ(channel_.all<ExecEnd>().size(), 1u);
  EXPECT_EQ(channel_.all<ExecEnd>()[0].error, "the keeper of its ranks was lost");
}

// --- Hooks --------------------------------------------------------------------------------------

TEST_F(NodeAttemptsTest, RanksStartAfterTheProloguesEnd) {
  make({.prologue = script("echo $ORRERY_JOB $ORRERY_JOB_ID $ORRERY_ATTEMPT $ORRERY_TENANT "
                           "$ORRERY_DEVICES $ORRERY_NODE >" +
                           directory_ + "/seen")});
  launch();
  EXPECT_EQ(keeper().started, 0);
  EXPECT_FALSE(std::filesystem::exists(files().launch()));
  await([&] { return keeper().started == 1; });
  EXPECT_EQ(read(directory_ + "/seen"), "train 5 1 lab 1,3 n3\n");
}

TEST_F(NodeAttemptsTest, AFailedPrologueIsAFaultOfTheNodeBeforeItIsTheEndOfTheAttempt) {
  make({.prologue = script("echo no disk; exit 1")});
  launch();
  await([&] { return !here(); });
  std::vector<std::string> order;
  for (const Report& each : channel_.all<Report>()) {
    if (std::holds_alternative<HealthFault>(each.what)) order.emplace_back("fault");
    if (std::holds_alternative<AttemptReport>(each.what)) order.emplace_back("report");
  }
  EXPECT_EQ(order, (std::vector<std::string>{"fault", "report"}))
      << "so that the job goes elsewhere";
  EXPECT_EQ(last_report().end->kind, ExitKind::kInfra);
  EXPECT_EQ(last_report().end->blame.evidence, "the prologue failed: exit status 1: no disk");
  EXPECT_EQ(fitness_->complaint(), "the prologue failed: exit status 1: no disk");
}

TEST_F(NodeAttemptsTest, AnOrderToEndStopsAPrologue) {
  make({.prologue = script("exec sleep 600")});
  launch();
  order(KillRanks{{kAttempt, 1}});
  EXPECT_FALSE(here());
  EXPECT_EQ(stages(), std::vector<RankStage>{RankStage::kGone});
  EXPECT_EQ(last_report().applied, (OrderStamp{1, 2}));
  EXPECT_EQ(last_report().end, std::nullopt) << "it ended as ordered";
  EXPECT_EQ(fitness_->complaint(), "");
}

TEST_F(NodeAttemptsTest, RanksAreReportedGoneAfterTheEpiloguesEnd) {
  make({.epilogue = script("echo x >>" + directory_ + "/cleaned")});
  launch();
  say(RankStage::kRunning);
  say(RankStage::kGone);
  EXPECT_EQ(stages(), std::vector<RankStage>{RankStage::kRunning}) << "the node is not clean yet";
  say(RankStage::kGone);
  await([&] { return stages().back() == RankStage::kGone; });
  EXPECT_EQ(read(directory_ + "/cleaned"), "x\n") << "once";
  say_over();
  EXPECT_FALSE(here());
  EXPECT_EQ(read(directory_ + "/cleaned"), "x\n");
}

TEST_F(NodeAttemptsTest, AKeeperThatEndsDuringTheEpilogueWaitsForIt) {
  make({.epilogue = script("exit 3")});
  launch();
  say(RankStage::kGone);
  say_over();
  EXPECT_EQ(attempts_->size(), 1u);
  EXPECT_FALSE(here()) << "no command can run beside it";
  EXPECT_TRUE(stages().empty());
  await([&] { return attempts_->empty(); });
  EXPECT_EQ(stages(), std::vector<RankStage>{RankStage::kGone});
  EXPECT_EQ(last_report().end->kind, ExitKind::kDone) << "its failure is the node's alone";
  EXPECT_EQ(fitness_->complaint(), "the epilogue failed: exit status 3");
}

TEST_F(NodeAttemptsTest, AfterAKeepersDeathTheEpilogueRunsBeforeTheAgentReportsIt) {
  make({.epilogue = script("true")});
  launch();
  say(RankStage::kRunning);
  say_over();
  EXPECT_EQ(stages(), std::vector<RankStage>{RankStage::kRunning});
  await([&] { return attempts_->empty(); });
  EXPECT_EQ(last_report().end->blame.evidence, "the keeper of its ranks died");
}

TEST_F(NodeAttemptsTest, AnEpilogueFollowsThePrologueThoughTheKeeperCannotBeRun) {
  const std::string seen = directory_ + "/seen";
  make({.prologue = script("echo before >>" + seen), .epilogue = script("echo after >>" + seen)});
  start_outcome_ = environment_error("cannot run orrery-keeper");
  launch();
  await([&] { return attempts_->empty(); });
  EXPECT_EQ(read(seen), "before\nafter\n");
  EXPECT_EQ(stages(), std::vector<RankStage>{RankStage::kGone});
  ASSERT_TRUE(last_report().end);
  EXPECT_EQ(last_report().end->blame.evidence,
            "the keeper of its ranks did not start: cannot run orrery-keeper");
  EXPECT_EQ(fitness_->complaint(), "");
}

TEST_F(NodeAttemptsTest, AnEpilogueRunsBeforeAKeeperThatNeverLivedIsReported) {
  make({.epilogue = script("exit 3")});
  launch();
  say_over("exit status 127");
  EXPECT_TRUE(stages().empty()) << "the node is not clean yet";
  EXPECT_FALSE(here());
  EXPECT_EQ(attempts_->size(), 1u);
  await([&] { return attempts_->empty(); });
  EXPECT_EQ(stages(), std::vector<RankStage>{RankStage::kGone});
  EXPECT_EQ(last_report().end->blame.evidence,
            "the keeper of its ranks did not start: exit status 127");
  EXPECT_EQ(last_report().end->blame.node, kNode);
  EXPECT_EQ(fitness_->complaint(), "the epilogue failed: exit status 3");
}

TEST_F(NodeAttemptsTest, NoEpilogueRunsForWhatTheNodeRefuses) {
  make({.epilogue = script("exec sleep 600")});
  run_as_ = "nobody-of-this-name";
  launch();
  EXPECT_TRUE(attempts_->empty());
  EXPECT_EQ(last_report().end->kind, ExitKind::kRefused);
}

TEST_F(NodeAttemptsTest, NoEpilogueRunsAfterAFailedPrologue) {
  make({.prologue = script("exit 1"), .epilogue = script("exec sleep 600")});
  launch();
  await([&] { return attempts_->empty(); });
  EXPECT_EQ(last_report().end->blame.evidence, "the prologue failed: exit status 1");
}

// --- Questions without a keeper that answers ----------------------------------------------------

TEST_F(NodeAttemptsTest, AQuestionDuringAPrologueIsAnsweredThoughNoKeeperCame) {
  make({.prologue = script("exec sleep 600")});
  launch();
  attempts_->answer({.id = 1, .attempt = kAttempt, .log = {0, 0, 0}});
  order(KillRanks{{kAttempt, 1}});
  ASSERT_EQ(channel_.all<AttemptLogPart>().size(), 1u) << "its reader would wait in vain";
  EXPECT_EQ(channel_.all<AttemptLogPart>()[0].id, 1u);
  EXPECT_FALSE(channel_.all<AttemptLogPart>()[0].found);
}

TEST_F(NodeAttemptsTest, AQuestionToAKeeperThatDoesNotStartIsAnswered) {
  launch();
  attempts_->answer({.id = 1, .attempt = kAttempt, .log = {0, 0, 0}});
  say_over("exit status 127");
  ASSERT_EQ(channel_.all<AttemptLogPart>().size(), 1u);
  EXPECT_EQ(channel_.all<AttemptLogPart>()[0].id, 1u);
}

TEST_F(NodeAttemptsTest, AQuestionDuringAnEpilogueIsAnsweredFromTheFiles) {
  make({.epilogue = script("exec sleep 600")});
  launch();
  ASSERT_TRUE(real_->env().storage.write_file(log_path(files(), {0, 0}), "output"));
  say(RankStage::kGone);
  attempts_->answer({.id = 1, .attempt = kAttempt, .log = {0, 0, 0}});
  EXPECT_TRUE(channel_.all<AttemptLogPart>().empty()) << "the keeper is still here";
  say_over();
  attempts_->answer({.id = 2, .attempt = kAttempt, .log = {0, 0, 0}});
  const std::vector<AttemptLogPart> parts = channel_.all<AttemptLogPart>();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].id, 1u);
  EXPECT_EQ(parts[1].id, 2u);
  EXPECT_EQ(parts[1].part.bytes, "output");
}

// --- The end of work here -----------------------------------------------------------------------

TEST_F(NodeAttemptsTest, AnAbandonedNodeIsClearOnceNoRankRuns) {
  launch();
  launch(kOther);
  say(RankStage::kRunning);
  say(RankStage::kRunning, kOther);
  int clear = 0;
  attempts_->abandon([&] { ++clear; });
  EXPECT_EQ(keeper().orders<KillRanks>().size(), 1u);
  EXPECT_EQ(keeper(kOther).orders<KillRanks>().size(), 1u);
  say(RankStage::kGone);
  EXPECT_EQ(clear, 0);
  EXPECT_TRUE(keeper().orders<ReleaseKeeper>().empty());
  say(RankStage::kGone, kOther);
  EXPECT_EQ(clear, 1);
  EXPECT_EQ(keeper().orders<ReleaseKeeper>().size(), 1u);
  EXPECT_EQ(keeper(kOther).orders<ReleaseKeeper>().size(), 1u);
  say_over();
  EXPECT_EQ(clear, 1) << "once";
}

TEST_F(NodeAttemptsTest, AnAbandonedNodeWithoutAttemptsIsClearAtOnce) {
  bool clear = false;
  attempts_->abandon([&] { clear = true; });
  EXPECT_TRUE(clear);
}

}  // namespace
}  // namespace orrery
