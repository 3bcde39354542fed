#include "verbs/fork/what_if.hpp"

#include <gtest/gtest.h>

#include "scheduler/asked_policy.hpp"
#include "twin/facts_test.hpp"
#include "verbs/fork/fork_text.hpp"
#include "verbs/store/written_store_test.hpp"

namespace orrery {
namespace {

/// The state of four nodes, each with the health that a test gives it.
class WhatIfCommands : public testing::Test {
 protected:
  WhatIfCommands()
      : facts_(facts_of(lab_with_storage(1))),
        setup_(facts_->setup(*policy_named("fifo"), Instant())),
        state_(setup_) {}

  void set(std::uint32_t node, NodeHealth health) {
    state_.apply(Instant(), NodeChanged{NodeId(node), health, {}, false, ""});
  }
  [[nodiscard]] std::string name(std::uint32_t node) const {
    return facts_->topology().node_name(NodeId(node));
  }
  [[nodiscard]] std::vector<InputKind> commands(const WhatIfOptions& asked) const {
    Result<std::vector<InputKind>> read = commands_asked(asked, state_);
    EXPECT_TRUE(read) << (read ? "" : read.error().text());
    return read ? *std::move(read) : std::vector<InputKind>();
  }
  [[nodiscard]] std::string refusal(const WhatIfOptions& asked) const {
    const Result<std::vector<InputKind>> read = commands_asked(asked, state_);
    return read ? "accepted" : read.error().text();
  }

  std::unique_ptr<ControlFacts> facts_;
  ControlSetup setup_;
  State state_;
};

TEST_F(WhatIfCommands, ANodeComesInTheWayThatItsAbsenceNeeds) {
  const auto added = [&](NodeHealth health) {
    set(1, health);
    return commands({.add = {name(1)}});
  };
  std::vector<InputKind> of = added(NodeHealth::kDrained);
  ASSERT_EQ(of.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<ResumeNode>(of[0]));
  of = added(NodeHealth::kQuarantined);
  ASSERT_FALSE(of.empty());
  EXPECT_TRUE(std::holds_alternative<NodeRepaired>(of[0]));
  of = added(NodeHealth::kLost);
  ASSERT_FALSE(of.empty());
  const auto* joined = std::get_if<NodeJoined>(of.data());
  ASSERT_NE(joined, nullptr);
  EXPECT_EQ(joined->node, NodeId(1));
  EXPECT_EQ(joined->boot, state_.node(NodeId(1)).boot + 1) << "nothing of the old boot runs";
}

TEST_F(WhatIfCommands, ANodeThatIsThereCannotBeAdded) {
  set(2, NodeHealth::kReady);
  EXPECT_EQ(refusal({.add = {name(2)}}), "--add: \"" + name(2) + "\" is not away: it is ready");
}

TEST_F(WhatIfCommands, CommandsComeInTheOrderOfTheOptionsTable) {
  set(0, NodeHealth::kReady);
  set(1, NodeHealth::kDrained);
  const std::vector<InputKind> of =
      commands({.drain = {name(0)}, .at_once = true, .add = {name(1)}, .policy = "easy"});
  ASSERT_EQ(of.size(), 3U);
  ASSERT_TRUE(std::holds_alternative<SetPolicy>(of[0]));
  EXPECT_EQ(std::get<SetPolicy>(of[0]).yaml, "apiVersion: orrery/v1\nkind: Policy\nname: easy\n");
  EXPECT_TRUE(std::holds_alternative<ResumeNode>(of[1]));
  ASSERT_TRUE(std::holds_alternative<DrainNode>(of[2]));
  EXPECT_EQ(std::get<DrainNode>(of[2]).node, NodeId(0));
  EXPECT_TRUE(std::get<DrainNode>(of[2]).at_once);
}

TEST_F(WhatIfCommands, AnUnknownNodeIsNamedWithTheNearestOne) {
  const std::string near = name(3) + "x";
  EXPECT_EQ(refusal({.drain = {near}}),
            "--drain: no node \"" + near + "\", did you mean \"" + name(3) + "\"?");
  EXPECT_TRUE(refusal({.add = {"zzzzzzzzzzzzzzzzzzzzzzz"}}).starts_with("--add: no node \"zzz"));
}

TEST_F(WhatIfCommands, ACapIsAPowerOfADomainOrNone) {
  const std::string site = setup_.topology->power_name(PowerDomainId(0));
  std::vector<InputKind> of = commands({.caps = {site + "=400 kW", site + "=none"}});
  ASSERT_EQ(of.size(), 2U);
  EXPECT_DOUBLE_EQ(std::get<SetPowerCap>(of[0]).cap->value(), 4e5);
  EXPECT_EQ(std::get<SetPowerCap>(of[0]).domain, PowerDomainId(0));
  EXPECT_FALSE(std::get<SetPowerCap>(of[1]).cap);
  EXPECT_EQ(refusal({.caps = {"400 kW"}}),
            "--cap: expected NAME=POWER, such as \"site/power-cap=400 kW\", not \"400 kW\"");
  EXPECT_EQ(refusal({.caps = {site + "=0 W"}}), "--cap: 0 W: expected more than 0");
  EXPECT_TRUE(refusal({.caps = {"nowhere=1 kW"}}).starts_with("--cap: "));
}

TEST_F(WhatIfCommands, PoliciesAndTenantsAreReadBeforeTheyAreUsed) {
  const ScratchFiles files;
  EXPECT_TRUE(refusal({.policy = "esay"}).starts_with("--policy: ")) << refusal({.policy = "esay"});
  EXPECT_EQ(refusal({.policy = "fifo:blocking=true"}),
            "--policy: expected the name of a policy without options, or a Policy file with "
            "options");
  const std::string bad =
      files.write("p.yaml", "apiVersion: orrery/v1\nkind: Policy\nname: p\nordr: x\n");
  EXPECT_TRUE(refusal({.policy = bad}).starts_with(bad + ":4:1: ")) << refusal({.policy = bad});
  const std::string tenants =
      files.write("t.yaml", "apiVersion: orrery/v1\nkind: Tenants\nname: t\ntenants: 3\n");
  EXPECT_TRUE(refusal({.tenants = tenants}).starts_with(tenants + ":4:"))
      << refusal({.tenants = tenants});
}

/// A fork of two jobs that are not done, the second of which runs, with a third that is.
class ForkText : public WhatIfCommands {
 protected:
  ForkText() {
    submit("first");
    submit("second");
    submit("done");
    PlacedGang gang;
    gang.allocation.ranks = {{NodeId(0), 0xff}};
    apply(JobStarted{.job = JobId(1), .attempt = 1, .gangs = {gang}, .terms = {{}}});
    apply(JobEnded{JobId(2), JobPhase::kCancelled});
  }

  void apply(const Event& event) { state_.apply(now_, event); }
  /// Returns a job of eight accelerators.
  [[nodiscard]] Submission job(const std::string& named) const {
    Submission submission;
    submission.request.name = named;
    submission.request.tenant = facts_->tenants().find("default").value();
    RoleRequest& role = submission.request.roles.emplace_back();
    role.devices_min = role.devices_max = 8;
    role.options.push_back(
        {{.type = FleetTypeId(0), .devices = 8, .node_devices = 8}, 1, std::nullopt});
    return submission;
  }
  void submit(const std::string& named) {
    const JobId id = JobId::at(state_.jobs());
    apply(JobSubmitted{id, job(named), ""});
    apply(JobReleased{id});
  }
  [[nodiscard]] JobFate fate(std::size_t id, int start_min, int end_min) const {
    return {JobId::at(id), now_ + Duration::minutes(start_min), now_ + Duration::minutes(end_min)};
  }
  /// Returns the fate of a job that runs now.
  [[nodiscard]] JobFate ends(std::size_t id, int end_min) const {
    return {.job = JobId::at(id), .end = now_ + Duration::minutes(end_min)};
  }

  const Instant now_ = Instant() + Duration::hours(1);
};

TEST_F(ForkText, HasARowForEachJobThatHasNotEndedAndASumOverThoseThatWait) {
  const ForkChange change{.jobs = {{job("third"), "", "", ""}}, .commands = {}};
  const ForkPair pair{.state = state_,
                      .change = change,
                      .now = now_,
                      .span = Duration::hours(24),
                      .as_is = {fate(0, 60, 120), ends(1, 30), ends(2, -1)},
                      .changed = {fate(0, 30, 90), ends(1, 45), ends(2, -1), {JobId(3)}}};
  EXPECT_EQ(fork_text(pair),
            "ID  NAME    STATE     STARTS IN  ENDS IN  NEW START IN  NEW END IN\n"
            " 0  first   queued          1 h      2 h        30 min  1 h 30 min  30 min sooner\n"
            " 1  second  starting              30 min                    45 min  15 min later\n"
            "    third   new                                      -           -\n\n"
            "Waiting jobs: 1, of which 1 would start sooner and 0 later; mean time to start 1 h, "
            "with the "
            "change 30 min.\n(-: not within 1 d)\n");
  const Json json = fork_json(pair);
  EXPECT_EQ(json["now"], now_.text());
  EXPECT_EQ(json["span_s"], 86'400.0);
  ASSERT_EQ(json["jobs"].size(), 3U) << "the one that has ended is left out";
  EXPECT_EQ(json["jobs"][0], Json({{"id", "0"},
                                   {"name", "first"},
                                   {"state", "queued"},
                                   {"as_is", {{"start_s", 3600.0}, {"end_s", 7200.0}}},
                                   {"changed", {{"start_s", 1800.0}, {"end_s", 5400.0}}}}));
  EXPECT_EQ(json["jobs"][2], Json({{"id", nullptr},
                                   {"name", "third"},
                                   {"state", "new"},
                                   {"as_is", nullptr},
                                   {"changed", {{"start_s", nullptr}, {"end_s", nullptr}}}}));
  EXPECT_EQ(json["waiting"], Json({{"jobs", 1},
                                   {"sooner", 1},
                                   {"later", 0},
                                   {"start_s", 3600.0},
                                   {"start_changed_s", 1800.0}}));
}

TEST_F(ForkText, AJobThatDoesNotStartWithinTheSpanHasNoPartInTheMean) {
  const ForkChange change;
  ForkPair pair{.state = state_,
                .change = change,
                .now = now_,
                .span = Duration::hours(2),
                .as_is = {fate(0, 60, 120), ends(1, 30), ends(2, -1)},
                .changed = {{JobId(0)}, {JobId(1)}, ends(2, -1)}};
  std::string text = fork_text(pair);
  EXPECT_TRUE(
      text.ends_with("\nWaiting jobs: 1, of which 0 would start sooner and 1 later.\n"
                     "(-: not within 2 h)\n"))
      << text;
  EXPECT_NE(text.find("  does not end\n"), std::string::npos) << text;
  std::swap(pair.as_is, pair.changed);
  text = fork_text(pair);
  EXPECT_NE(text.find("of which 1 would start sooner and 0 later.\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  ends\n"), std::string::npos) << text;
  EXPECT_EQ(fork_json(pair)["waiting"]["start_s"], 0.0);
}

TEST(WhatIf, NeedsAStoreASpanAndAChange) {
  const WrittenStore store;
  const auto refusal = [&](const WhatIfOptions& asked) {
    const Result<VerbAnswer> answer = what_if({}, asked);
    return answer ? "accepted" : answer.error().text();
  };
  EXPECT_EQ(refusal({.span = "0 s", .store = store.path()}), "--span: 0 s: expected more than 0");
  EXPECT_EQ(refusal({.store = store.path()}),
            "nothing to change: expected --submit, --drain, --add, --policy, --tenants or --cap");
  const Result<VerbAnswer> none =
      what_if({}, {.policy = "easy", .store = store.files().path("none")});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::kInput);
}

TEST(WhatIf, AnIdleClusterStaysIdleAndItsStoreAsItIs) {
  const WrittenStore store;
  const std::string before = store.files().read("store/store.db");
  const Result<VerbAnswer> answer =
      what_if({}, {.policy = "easy", .span = "1 h", .store = store.path()});
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->json["jobs"], Json::array());
  EXPECT_EQ(answer->json["span_s"], 3600.0);
  EXPECT_EQ(answer->json["waiting"]["jobs"], 0);
  EXPECT_TRUE(answer->text.ends_with("(-: not within 1 h)\n")) << answer->text;
  EXPECT_EQ(store.files().read("store/store.db"), before);
}

TEST(WhatIf, CopiesOfAJobRunOneAfterTheOtherOnTheOnlyAccelerator) {
  const WrittenStore store({{NodeChanged{NodeId(0), NodeHealth::kReady, {}, false, ""}}});
  const std::string job =
      store.files().write("job.yaml",
                          "apiVersion: orrery/v1\nkind: Batch\nname: short\nestimate: 10 min\n"
                          "roles: [{accelerators: 1}]\nlaunch: {command: [\"true\"]}\n");
  WhatIfOptions options{.files = {job}, .copies = 2, .span = "1 h", .store = store.path()};
  const Result<VerbAnswer> answer = what_if({}, options);
  ASSERT_TRUE(answer) << answer.error().text();
  const Json& jobs = answer->json["jobs"];
  ASSERT_EQ(jobs.size(), 2U);
  for (const Json& each : jobs) {
    EXPECT_TRUE(each["id"].is_null());
    EXPECT_EQ(each["name"], "short");
    EXPECT_EQ(each["state"], "new");
    EXPECT_TRUE(each["as_is"].is_null());
  }
  // Launches take seconds.
  ASSERT_TRUE(jobs[1]["changed"]["end_s"].is_number()) << jobs.dump(2);
  EXPECT_NEAR(jobs[0]["changed"]["start_s"].get<double>(), 0, 5);
  EXPECT_NEAR(jobs[0]["changed"]["end_s"].get<double>(), 600, 60);
  EXPECT_GE(jobs[1]["changed"]["start_s"], jobs[0]["changed"]["end_s"]);
  EXPECT_NEAR(jobs[1]["changed"]["end_s"].get<double>(), 1200, 120);
  EXPECT_EQ(answer->json["waiting"]["jobs"], 0) << "jobs of the change are not those that wait";
  options.files = {job, job};
  options.copies = 1;
  const Result<VerbAnswer> twice = what_if({}, options);
  ASSERT_TRUE(twice) << twice.error().text();
  EXPECT_EQ(twice->json["jobs"].size(), 2U);
}

TEST(WhatIf, AJobThatTheControllerWouldRefuseIsNamedWithItsLine) {
  const WrittenStore store;
  const std::string job = store.files().write(
      "job.yaml", "apiVersion: orrery/v1\nkind: Batch\nname: short\nrole: []\n");
  const Result<VerbAnswer> answer = what_if({}, {.files = {job}, .store = store.path()});
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().text().starts_with(job + ":4:1: ")) << answer.error().text();
}

}  // namespace
}  // namespace orrery
