// What the controller keeps of its jobs, and what it sends to agents.
#include "executor/controller_test.hpp"

#include "control/state/snapshot.hpp"

namespace orrery {
namespace {

TEST_F(ControllerTest, WhatIsAcknowledgedIsThereAfterAStartAndAskedAgainItIsTheSame) {
  const Result<std::vector<JobId>> first = submit(job("one"), "r1");
  ASSERT_TRUE(first) << first.error().text();
  const ClassId its_class = controller_->state().job(JobId(0)).submission->request.class_id;
  stop();
  start();
  ASSERT_EQ(controller_->state().jobs(), 1U);
  EXPECT_EQ(controller_->state().job(JobId(0)).spec, job("one"));
  EXPECT_EQ(submit(job("one"), "r1").value(), *first);
  EXPECT_EQ(controller_->state().jobs(), 1U);
  // A class in the log is recognized, and a new request gets another class.
  (void)submit(job("two"), "r2");
  (void)submit(job("three", "time_limit: 10 min\n"), "r3");
  const auto class_of = [&](std::uint32_t id) {
    return controller_->state().job(JobId(id)).submission->request.class_id;
  };
  EXPECT_EQ(class_of(1), its_class);
  EXPECT_NE(class_of(2), its_class);
}

TEST_F(ControllerTest, KnowsTheWorkOfItsLogAfterAStart) {
  const std::string train =
      "apiVersion: orrery/v1\nkind: Train\nname: train\n"
      "roles: [{accelerators: 8, work: {model: llama-3.1-8b, steps: 10}}]\n"
      "launch: {command: [train]}\n";
  ASSERT_TRUE(submit(train)) << submit(train).error().text();
  const auto work_of = [&](std::size_t id) {
    return controller_->state().job(JobId::at(id)).submission->request.roles[0].work;
  };
  // Work that only a refused text brought counts as well.
  const std::string refused =
      "apiVersion: orrery/v1\nkind: Train\nname: train\nafter: [nobody]\n"
      "roles: [{accelerators: 8, work: {model: llama-3.1-8b, sequence: 1024, steps: 10}}]\n"
      "launch: {command: [train]}\n";
  ASSERT_FALSE(submit(refused));
  std::string longer = train;
  longer.replace(longer.find("steps"), 5, "sequence: 2048, steps");
  ASSERT_TRUE(submit(longer));
  const std::optional<WorkId> work = work_of(1);
  ASSERT_TRUE(work);
  await([&] { return controller_->state().plans().size() > 0; });
  stop();
  start();
  EXPECT_GT(controller_->state().plans().size(), 0U);
  ASSERT_TRUE(submit(longer));
  EXPECT_EQ(work_of(controller_->state().jobs() - 1), work);
}

/// Replays a record, and returns how many events equal the recorded ones.
std::size_t replayed(const std::string& record) {
  const Result<RecordedBegin> begin = open_live_record(record, lab_facts());
  EXPECT_TRUE(begin) << begin.error().text();
  if (!begin) return 0;
  const std::string inputs = read_file(record + "/inputs.log", 1U << 30U).value();
  const std::string events = read_file(record + "/events.log", 1U << 30U).value();
  const PlanSource& plans = begin->setup->control().plans;
  auto input_log = JournalReader<Input>::open(inputs, {"inputs", &plans}).value();
  auto event_log = JournalReader<TimedEvent>::open(events, {"events", &plans}).value();
  Journal decided({.before = event_log.head().before});
  std::size_t count = 0;
  while (const std::optional<Input> input = input_log.next().value()) {
    for (const Event& event : begin->core->handle(*input).events) {
      decided.append(input->at, event);
      EXPECT_TRUE(event_log.next().value()) << "event " << count;
      EXPECT_EQ(decided.history_hash(), event_log.history_hash()) << "event " << count;
      ++count;
    }
  }
  EXPECT_FALSE(event_log.next().value());
  return count;
}

TEST_F(ControllerTest, WhatIsRecordedLeadsToTheSameEventsAgain) {
  stop();
  record_ = directory_ + "/record";
  start();
  Session session;
  join("node0", session);
  ASSERT_TRUE(submit(job("one"), "r1"));
  ASSERT_TRUE(
      submit("apiVersion: orrery/v1\nkind: Train\nname: train\n"
             "roles: [{accelerators: 8, work: {model: llama-3.1-8b, steps: 10}}]\n"
             "launch: {command: [train]}\n"));
  await([&] { return controller_->state().plans().size() > 0; });
  const std::uint64_t before = controller_->state().version();
  stop();
  start();
  ASSERT_TRUE(submit(job("two"), "r2"));
  const std::uint64_t after = controller_->state().version();
  stop();
  // The store was already claimed once before there was a record.
  EXPECT_EQ(replayed(record_ + "/0000000002"), before);
  EXPECT_EQ(replayed(record_ + "/0000000003"), after - before);
}

TEST_F(ControllerTest, WhatEndedLongAgoIsInTheArchiveAlone) {
  const auto cancelled = [&](const std::string& name) {
    const JobId id = submit(job(name)).value().front();
    bool done = false;
    controller_->command(CancelJob{id}, {}, [&](const Result<JobId>&) { done = true; });
    await([&] { return done; });
    return id;
  };
  const JobId first = cancelled("first");
  ControllerSettings settings;
  controller_->set_limits(settings);
  EXPECT_TRUE(controller_->state().has(first)) << "it is to stay for a while";
  settings.retain = Seconds(0);
  controller_->set_limits(settings);
  const JobId waits = submit(job("waits")).value().front();
  const JobId second = cancelled("second");
  await([&] { return !controller_->state().has(first) && !controller_->state().has(second); });
  stop();
  start();
  EXPECT_EQ(controller_->state().jobs(), 3U);
  EXPECT_FALSE(controller_->state().has(first));
  EXPECT_TRUE(controller_->state().has(waits));
  EXPECT_NE(submit(job("late", "after: ['0']\n")).error().text().find("in the archive"),
            std::string::npos);
  EXPECT_TRUE(submit(job("cleanup", "after: [{job: '0', when: any}]\n")));
  const StorageResult<std::vector<ArchivedJob>> kept =
      controller_->store().archive().archived(100, 10);
  ASSERT_TRUE(kept);
  EXPECT_EQ(*kept,
            (std::vector<ArchivedJob>{{second.value(), "second"}, {first.value(), "first"}}));
}

TEST_F(ControllerTest, TakesNoMoreThanItsLimits) {
  ControllerSettings settings;
  settings.jobs_max = 1;
  settings.submit_rate = 1;
  settings.submit_burst = 1;
  controller_->set_limits(settings);
  EXPECT_TRUE(controller_->submissions().admission("a"));
  EXPECT_NE(controller_->submissions().admission("a").error().text().find(
                "tenant a is above 1 submissions a second"),
            std::string::npos);
  ASSERT_TRUE(submit(job("one")));
  EXPECT_EQ(controller_->submissions().admission("b").error().text(),
            "jobs_max is reached: 1 have not ended");
}

TEST_F(ControllerTest, AnArrayIsManyJobsOfOneText) {
  const Result<std::vector<JobId>> jobs =
      submit(job("many", "array: {count: 3, parallel: 1}\n"), "r");
  ASSERT_TRUE(jobs);
  ASSERT_EQ(jobs->size(), 3U);
  EXPECT_EQ(controller_->state().job(jobs->at(2)).name, "many[2]");
  EXPECT_EQ(controller_->state().waiting().size(), 1U);
  const JobId after = submit(job("next", "after: ['1']\n")).value().at(0);
  const auto waits_for = [&](JobId id) { return controller_->state().job(id).submission->after; };
  EXPECT_EQ(waits_for(after), std::vector{jobs->at(1)});
  EXPECT_EQ(waits_for(submit(job("1", "after: ['0']\n")).value().at(0)), *jobs);
  EXPECT_EQ(waits_for(submit(job("last", "after: ['1']\n")).value().at(0)),
            std::vector{jobs->at(1)});
  EXPECT_EQ(waits_for(submit(job("all", "after: [many]\n")).value().at(0)), *jobs);
  EXPECT_EQ(waits_for(submit(job("third", "after: ['many[2]']\n")).value().at(0)),
            std::vector{jobs->at(2)});
  EXPECT_NE(submit(job("x", "after: [{job: many, when: notok}]\n"))
                .error()
                .text()
                .find("\"many\" is an array"),
            std::string::npos);
  EXPECT_EQ(submit(job("many", "array: {count: 3, parallel: 1}\n"), "r").value(), *jobs);
}

TEST_F(ControllerTest, SaysWhereATextIsWrong) {
  const auto refused = [&](const std::string& text) { return submit(text).error().text(); };
  EXPECT_EQ(refused("apiVersion: orrery/v1\nkind: Batch\nname: x\nroles: [{accelerators: 1}]\n"),
            "job.yaml:1:1: the job has nothing to start, expected launch");
  EXPECT_NE(refused(job("x", "after: [nobody]\n")).find("no job \"nobody\""), std::string::npos);
  EXPECT_NE(refused(job("x", "tenant: nobody\n")).find("job.yaml:"), std::string::npos);
  EXPECT_NE(refused(job("x", "softwear: {}\n")).find("software"), std::string::npos);
  EXPECT_EQ(controller_->state().jobs(), 0U);
}

TEST_F(ControllerTest, RefusesKeysThatNoAgentActsOn) {
  const auto refused = [&](const std::string& keys) {
    const Result<std::vector<JobId>> jobs = submit(job("x", keys));
    return jobs ? "accepted" : jobs.error().text();
  };
  EXPECT_NE(refused("data: [{site: here, size: 1 TB}]\n").find("data: agents copy no data"),
            std::string::npos);
  EXPECT_NE(refused("compile: {time: 5 min}\n").find("compile: agents compile nothing"),
            std::string::npos);
  EXPECT_NE(refused("checkpoint: {peer_copy: true}\n").find("checkpoint.peer_copy: no copy"),
            std::string::npos);
  EXPECT_NE(refused("software: {image: nvcr.io/nvidia/pytorch}\n").find("software.image:"),
            std::string::npos);
  EXPECT_EQ(controller_->state().jobs(), 0U);
  EXPECT_EQ(refused("checkpoint: {peer_copy: false}\n"), "accepted");
}

TEST_F(ControllerTest, AgentsAreWhoTheFleetSays) {
  Session unknown;
  controller_->sessions().open(opening("node9"), unknown);
  EXPECT_EQ(unknown.closed, "the fleet has no node \"node9\"");
  Session fewer;
  AgentOpening short_of_one = opening("node0");
  short_of_one.inventory.accelerators = 7;
  controller_->sessions().open(short_of_one, fewer);
  EXPECT_EQ(fewer.closed, "node \"node0\" has 7 x h100, the fleet says 8 x nvidia-h100-sxm5-80g");
  Session first;
  Session second;
  controller_->sessions().open(opening("node0"), first);
  AgentOpening other = opening("node0");
  other.incarnation = 2;
  controller_->sessions().open(other, second);
  EXPECT_NE(second.closed.find("another agent speaks for \"node0\""), std::string::npos);
  EXPECT_TRUE(first.closed.empty());
  // An agent may reconnect at once if its stream was lost silently.
  Session again;
  controller_->sessions().open(opening("node0"), again);
  EXPECT_FALSE(first.closed.empty());
  EXPECT_TRUE(again.closed.empty());
  // Once that session is closed the other agent may connect.
  controller_->sessions().close(again);
  Session late;
  controller_->sessions().open(other, late);
  EXPECT_TRUE(late.closed.empty());
}

TEST_F(ControllerTest, LaunchesAGangWhereAllNodesKnowOfEachOther) {
  Session sessions[2];
  join("node0", sessions[0]);
  join("node1", sessions[1]);
  const std::string gang =
      "apiVersion: orrery/v1\nkind: Batch\nname: gang\n"
      "roles: [{accelerators: 16, host: {cpu: 1.5, memory: 4 GiB}}]\n"
      "launch: {command: [prog, \"--fast\"], environment: {A: b}, directory: /tmp}\n"
      "software: {framework: flax}\n";
  ASSERT_TRUE(submit(gang));
  await([&] {
    return !sessions[0].orders<LaunchRanks>().empty() && !sessions[1].orders<LaunchRanks>().empty();
  });
  for (std::uint32_t here = 0; here < 2; ++here) {
    const NodeProgram program = sessions[here].orders<LaunchRanks>().back().program;
    EXPECT_EQ(program.job, "gang");
    EXPECT_EQ(program.tenant, "default");
    EXPECT_EQ(program.command, (std::vector<std::string>{"prog", "--fast"}));
    EXPECT_EQ(program.directory, "/tmp");
    EXPECT_EQ(program.framework, "jax");
    ASSERT_EQ(program.needs.size(), 1U);
    EXPECT_EQ(program.needs[0].cpu, 1500U);
    EXPECT_EQ(program.needs[0].memory, 4096U);
    ASSERT_EQ(program.gangs.size(), 1U);
    const GangLayout& layout = program.gangs[0];
    ASSERT_EQ(layout.nodes.size(), 2U);
    EXPECT_EQ(layout.here, here);
    EXPECT_EQ(layout.nodes[0].address, "10.0.0.0");
    EXPECT_EQ(layout.nodes[1].address, "10.0.0.1");
    EXPECT_EQ(layout.nodes[1].ranks.front(), 8U);
  }
}

TEST_F(ControllerTest, KnowsTheFurthestThatTheNewestAttemptHasSaid) {
  AgentBook agents(*controller_->state().setup().topology);
  const auto say = [&](std::uint32_t attempt, std::uint64_t step) {
    agents.note(NodeId(0), AttemptNotes{{JobId(0), attempt}, {.step = step}, {}, {}});
    return agents.notes_of(JobId(0))->progress.step;
  };
  EXPECT_EQ(say(1, 5), 5U);
  EXPECT_EQ(say(1, 4), 5U);
  EXPECT_EQ(say(2, 3), 3U);
  EXPECT_EQ(say(1, 9), 3U);
}

TEST_F(ControllerTest, KnowsOfAllNodesHowFastTheRanksOfTheNewestAttemptCompute) {
  AgentBook agents(*controller_->state().setup().topology);
  const auto say = [&](std::uint32_t node, std::uint32_t attempt, std::vector<RankPace> paces) {
    agents.note(NodeId(node), AttemptNotes{{JobId(0), attempt}, {}, {}, std::move(paces)});
  };
  say(0, 1, {{0, 9.0}});
  say(0, 2, {{0, 1.0}, {1, 1.1}});
  say(1, 2, {{2, 1.0}, {3, 1.5}});
  say(1, 1, {{2, 7.0}});
  say(0, 2, {});
  EXPECT_TRUE(agents.paces_of({JobId(0), 1}).empty());
  const std::vector<NodePaces> paces = agents.paces_of({JobId(0), 2});
  ASSERT_EQ(paces.size(), 2U);
  const std::vector<Straggler> slow = find_stragglers(paces);
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_EQ(slow[0].node, NodeId(1));
  EXPECT_EQ(slow[0].pace, (RankPace{3, 1.5}));
  EXPECT_EQ(slow[0].usual, 1.0);
}

TEST(Stragglers, AreFarFromTheMedianAndFromWhatIsUsualBetweenRanks) {
  const auto slow = [](const std::vector<double>& seconds) {
    NodePaces node;
    for (const double each : seconds) {
      node.paces.push_back({static_cast<std::uint32_t>(node.paces.size()), each});
    }
    std::vector<std::uint32_t> ranks;
    for (const Straggler& each : find_stragglers({node})) ranks.push_back(each.pace.rank);
    return ranks;
  };
  using Ranks = std::vector<std::uint32_t>;
  EXPECT_EQ(slow({}), Ranks{});
  EXPECT_EQ(slow({1, 5}), Ranks{}) << "of two nobody can say which";
  EXPECT_EQ(slow({1, 1, 1.19}), Ranks{}) << "within a fifth";
  EXPECT_EQ(slow({1, 1.3, 1, 2}), (Ranks{3, 1})) << "slowest first";
  EXPECT_EQ(slow({0.5, 0.7, 1, 1.3, 1.5}), Ranks{}) << "they differ that much anyhow";
}

TEST_F(ControllerTest, OnlyANodeThatIsDrainedAndConnectedIsTriedOut) {
  Session session;
  join("node0", session);
  EXPECT_EQ(controller_->sessions().burn_in(NodeId(0)).error().message,
            "node0 is ready: a burn-in needs a node that is drained and empty");
  bool drained = false;
  controller_->command(DrainNode{NodeId(0)}, "", [&](const Result<JobId>&) { drained = true; });
  await([&] { return drained; });
  ASSERT_TRUE(controller_->sessions().burn_in(NodeId(0)));
  EXPECT_TRUE(std::holds_alternative<BurnIn>(session.messages.back()));
  controller_->sessions().close(session);
  EXPECT_EQ(controller_->sessions().burn_in(NodeId(0)).error().message, "node0 is not connected");
}

TEST_F(ControllerTest, KeepsTheEndOfALogWhenItsNodeIsNotThere) {
  Session session;
  join("node0", session);
  ASSERT_TRUE(submit(job("one")));
  await([&] { return !session.orders<LaunchRanks>().empty(); });
  const AttemptId id{JobId(0), 1};
  controller_->receive(NodeId(0), KeptLog{id, 0, 0, {100, "the end"}});
  controller_->sessions().close(session);
  std::optional<RankLogs::Answer> answer;
  const auto keep = [&](const RankLogs::Answer& said) { answer = said; };
  controller_->sessions().logs().ask({id, {0, 0, 104}}, keep);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->source, RankLogs::Source::kAbsent);
  EXPECT_TRUE(answer->part.found);
  EXPECT_EQ(answer->part.part.from, 104U);
  EXPECT_EQ(answer->part.part.bytes, "end");
  controller_->sessions().logs().ask({id, {0, 1, 0}}, keep);
  EXPECT_EQ(answer->source, RankLogs::Source::kAbsent);
  const std::vector<RankLogs::Place> places = controller_->sessions().logs().places(id);
  ASSERT_EQ(places.size(), 8U);
  EXPECT_EQ(places[7].rank, 7U);
}

TEST_F(ControllerTest, ACompactedLogIsTheSameHistoryAndState) {
  ASSERT_TRUE(submit(job("one")));
  ASSERT_TRUE(submit(job("two")));
  const auto digest = [&] { return digest_of(controller_->state()); };
  const std::uint64_t before = digest();
  std::optional<Result<CompactedLog>> done;
  controller_->compact([&](Result<CompactedLog> log) { done = std::move(log); });
  await([&] { return done.has_value(); });
  ASSERT_TRUE(*done) << done->error().text();
  EXPECT_GE((*done)->dropped, 2U);
  EXPECT_EQ((*done)->covers, (*done)->dropped);
  EXPECT_GT((*done)->snapshot_bytes, 100U);
  EXPECT_EQ(digest(), before);
  ASSERT_TRUE(submit(job("three"))) << "it serves on";
  const std::uint64_t after = digest();
  stop();
  {
    const auto store = SqliteStore::open_to_read(directory_ + "/store").value();
    EXPECT_TRUE(verify_history(*store)) << "the chain of checksums runs through it";
    EXPECT_EQ(store->extent()->oldest, (*done)->covers + 1);
  }
  start();
  EXPECT_EQ(controller_->state().jobs(), 3U);
  EXPECT_EQ(digest(), after);
}

}  // namespace
}  // namespace orrery
