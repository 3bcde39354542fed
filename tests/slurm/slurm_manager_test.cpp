// tests/slurm/slurm_manager_test.cpp - a real Slurm lends nodes, loses what it acknowledged, and
// has other users.
#include "executor/slurm/slurm_manager.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "executor/slurm/slurm_names.hpp"
#include "tests/slurm/slurm_cluster_test.hpp"

namespace orrery {
namespace {

constexpr std::uint64_t kCluster = 0xab;

/// What is added to the reason of an end: the Slurm of these tests finds the processes of a job by
/// their parents, because control groups are not at hand on every machine that runs tests.
constexpr std::string_view kUntracked =
    "; Slurm does not track processes by control groups (ProctrackType)";

class RealSlurmTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = SlurmCluster::missing(); !missing.empty()) {
      GTEST_SKIP() << "SKIPPED: " << missing;
    }
  }
  void start(int nodes, const SlurmClusterOptions& options = {}) {
    auto started = SlurmCluster::start(nodes, options);
    ASSERT_TRUE(started) << started.error().text();
    slurm_ = *std::move(started);
    const std::string agent = slurm_->path("agent");
    std::ofstream(agent) << "#!/bin/sh\nprintf '%s ' \"$@\" > \"$4/words.new\"\n"
                            "mv \"$4/words.new\" \"$4/words\"\nexec sleep 600\n";
    ASSERT_EQ(::chmod(agent.c_str(), 0755), 0);
    setup_ = {.cluster = kCluster,
              .slurm_conf = slurm_->conf(),
              .agent = {.program = agent,
                        .directory = slurm_->path("pilots"),
                        .controllers = {"c1:7000"},
                        .authority = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"},
              .log_file = slurm_->path("pilot-%j.log")};
    manager_ = std::make_unique<SlurmManager>(
        *real_, setup_, [this](ManagerReport report) { reports_.push_back(std::move(report)); });
  }
  [[nodiscard]] static EnsureHold hold(std::uint64_t id, std::uint32_t nodes = 1) {
    return {.key = {.id = id, .epoch = 3},
            .nodes = nodes,
            .time = Duration::minutes(10),
            .join_token = "token"};
  }
  /// Carries out an order and returns its report.
  template <class Answer, class Order>
  Answer carry_out(const Order& order) {
    manager_->carry_out({.what = order});
    real_->run_until([&] { return !reports_.empty(); });
    return std::get<Answer>(std::exchange(reports_, {}).front().what);
  }
  ManagerListing list() { return carry_out<ManagerListing>(ListHolds{}); }
  /// Submits a job that is no hold; returns its id.
  [[nodiscard]] std::string submit_other(const std::string& options) const {
    const auto run =
        slurm_->run("sbatch --parsable --output=/dev/null --chdir=/ --wrap='sleep 600' " + options);
    EXPECT_EQ(run.status, 0) << run.output;
    return run.output.substr(0, run.output.find('\n'));
  }
  /// Lists with the work of others until there is as much of it; returns it by its ids.
  [[nodiscard]] std::map<std::string, ForeignWork> await_foreign(std::size_t works) {
    std::map<std::string, ForeignWork> found;
    EXPECT_TRUE(slurm_->await([&] {
      const auto listing = carry_out<ManagerListing>(ListHolds{.foreign = true});
      found.clear();
      if (!listing.complete || !listing.foreign) return false;
      for (const ForeignWork& each : *listing.foreign) found[each.id] = each;
      return found.size() == works;
    })) << slurm_->run("squeue --all --states=all").output;
    return found;
  }
  /// Returns a time that Slurm shows of a job.
  [[nodiscard]] Instant shown_time(const std::string& id, const std::string& key) const {
    const std::string shown = slurm_->run("TZ=UTC0 scontrol --oneliner show job " + id).output;
    const std::string before = " " + key + "=";
    const std::size_t at = shown.find(before);
    EXPECT_NE(at, shown.npos) << shown;
    const std::string rest = shown.substr(at + before.size());
    const auto time = Instant::parse(rest.substr(0, rest.find(' ')) + "Z");
    EXPECT_TRUE(time) << shown;
    return time ? *time : Instant();
  }
  /// Lists until a condition holds of the list.
  template <class Condition>
  ManagerListing await(Condition&& condition) {
    ManagerListing listing;
    EXPECT_TRUE(slurm_->await([&] {
      listing = list();
      return listing.complete && condition(listing);
    })) << listing.trouble
        << slurm_->run("squeue --all --states=all").output;
    return listing;
  }
  /// Lists until a job is in a phase; returns it.
  HoldSeen await(const std::string& id, HoldPhase phase) {
    HoldSeen found;
    (void)await([&](const ManagerListing& listing) {
      for (const HoldSeen& each : listing.holds) {
        if (each.id == id) found = each;
      }
      return found.id == id && found.phase == phase;
    });
    return found;
  }
  std::string submit(const EnsureHold& order) {
    const HoldAnswer answer = carry_out<HoldAnswer>(order);
    EXPECT_NE(answer.id, "") << answer.text;
    return answer.id;
  }
  [[nodiscard]] static std::string read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  /// Waits for the agent of a node; returns the words of its command.
  [[nodiscard]] std::string agent_words(const std::string& node) const {
    const std::string words = setup_.agent.directory + "/" + node + "/words";
    EXPECT_TRUE(slurm_->await([&] { return ::access(words.c_str(), F_OK) == 0; }))
        << slurm_->run("tail " + slurm_->path("pilot-*.log")).output;
    return read(words);
  }

  std::unique_ptr<RealEnv> real_ = *RealEnv::create();
  std::unique_ptr<SlurmCluster> slurm_;
  SlurmSetup setup_;
  std::vector<ManagerReport> reports_;
  std::unique_ptr<SlurmManager> manager_;
};

TEST_F(RealSlurmTest, AHoldRunsOnWholeNodesWithAnAgentOnEachUntilItIsReleased) {
  start(3);
  const std::string id = submit(hold(1, 2));
  const HoldSeen seen = await(id, HoldPhase::kRunning);
  EXPECT_EQ(seen.key, hold(1).key);
  EXPECT_EQ(seen.nodes, (std::vector<std::string>{"n1", "n2"}));
  ASSERT_TRUE(seen.left);
  EXPECT_GT(*seen.left, Duration::minutes(8));
  EXPECT_LE(*seen.left, Duration::minutes(10));
  for (const std::string node : {"n1", "n2"}) {
    const std::string words = agent_words(node);
    EXPECT_NE(words.find("--node " + node + " "), std::string::npos) << words;
    EXPECT_NE(words.find("--hold pilot-3-1:" + id + " "), std::string::npos) << words;
    EXPECT_EQ(read(setup_.agent.directory + "/" + node + "/pilot-join"), "token\n");
  }
  EXPECT_EQ(list().nodes.size(), 3u);
  const std::string queued = submit(hold(2, 3));
  const HoldSeen waits = await(queued, HoldPhase::kWaiting);
  EXPECT_TRUE(waits.nodes.empty());
  EXPECT_NE(waits.reason, "");
  manager_->carry_out({.what = ReleaseHold{.key = hold(1).key, .id = id}});
  EXPECT_EQ(await(id, HoldPhase::kEndedDirty).reason, fmt::format("CANCELLED{}", kUntracked));
  EXPECT_EQ(await(queued, HoldPhase::kRunning).nodes.size(), 3u);
}

TEST_F(RealSlurmTest, ASecondHoldOfAKeyWaitsForTheFirst) {
  start(2);
  const std::string first = submit(hold(1));
  (void)await(first, HoldPhase::kRunning);
  const std::string second = submit(hold(1));
  EXPECT_EQ(await(second, HoldPhase::kWaiting).reason, "Dependency");
  manager_->carry_out({.what = ReleaseHold{.key = hold(1).key, .id = first}});
  (void)await(second, HoldPhase::kRunning);
}

TEST_F(RealSlurmTest, JobsOfOthersAreNeitherListedNorReleased) {
  start(2);
  const std::string name = slurm_job_name(kCluster, hold(7).key);
  const std::string forged = "x\n18" + slurm_job_comment(kCluster, hold(7).key);
  const std::vector<std::string> labels = {
      "--job-name=other", "--job-name=" + name,
      fmt::format("--job-name={} --comment='{}'", name, forged),
      "--job-name='orr|%j' --comment=" + slurm_job_comment(kCluster, hold(7).key)};
  std::vector<std::string> others;
  others.reserve(labels.size());
  for (const std::string& each : labels) {
    const auto run = slurm_->run(
        fmt::format("sbatch --parsable --output=/dev/null --wrap='sleep 600' {}", each));
    ASSERT_EQ(run.status, 0) << run.output;
    others.push_back(run.output.substr(0, run.output.find('\n')));
  }
  const std::string id = submit(hold(7));
  const ManagerListing listing = list();
  ASSERT_TRUE(listing.complete) << listing.trouble;
  ASSERT_EQ(listing.holds.size(), 1u);
  EXPECT_EQ(listing.holds[0].id, id);
  manager_->carry_out({.what = ReleaseHold{.key = hold(7).key, .id = others[0]}});
  manager_->carry_out({.what = ReleaseHold{.key = hold(8).key, .id = others[1]}});
  EXPECT_TRUE(list().complete);
  const std::string jobs = slurm_->run("squeue --noheader --format=%i.%T --states=all").output;
  for (const std::string& each : others) {
    EXPECT_EQ(jobs.find(each + ".CANCELLED"), jobs.npos) << jobs;
    EXPECT_NE(jobs.find(each + "."), jobs.npos) << jobs;
  }
}

TEST_F(RealSlurmTest, TheWorkOfOthersIsListedWithItsNodesAndItsTime) {
  start(4);
  // Scripts of other users lie there, too.
  std::filesystem::permissions(slurm_->path("."), std::filesystem::perms(0755));
  const std::string id = submit(hold(7));
  (void)await(id, HoldPhase::kRunning);
  // Another user's job with the name and the comment of a hold, an array, and a job that waits.
  const std::string two = submit_other("--uid=nobody --exclusive --nodes=2 --time=30 --job-name=" +
                                       slurm_job_name(kCluster, hold(7).key) +
                                       " --comment=" + slurm_job_comment(kCluster, hold(7).key));
  const std::string array = submit_other("--uid=nobody --ntasks=1 --array=3,5");
  (void)submit_other("--exclusive --nodes=4");
  const auto works = await_foreign(3);
  ASSERT_TRUE(works.contains(two) && works.contains(array + "_3") && works.contains(array + "_5"));
  const ForeignWork& work = works.at(two);
  EXPECT_EQ(work.user, "nobody");
  EXPECT_EQ(work.nodes, (std::vector<std::string>{"n2", "n3"}));
  ASSERT_TRUE(work.left);
  EXPECT_GT(*work.left, Duration::minutes(28));
  EXPECT_LE(*work.left, Duration::minutes(30));
  EXPECT_EQ(works.at(array + "_3").nodes, std::vector<std::string>{"n4"});
  EXPECT_EQ(works.at(array + "_5").left, std::nullopt);
  const auto listing = carry_out<ManagerListing>(ListHolds{.foreign = true});
  ASSERT_EQ(listing.holds.size(), 1u);
  EXPECT_EQ(listing.holds[0].id, id);
  EXPECT_FALSE(list().foreign);
  (void)slurm_->run("scontrol suspend " + two + "; scancel " + array);
  EXPECT_TRUE(await_foreign(1).contains(two)) << "it keeps its nodes";
}

TEST_F(RealSlurmTest, AHoldStartsAndEndsWhenSlurmSaysSo) {
  start(1);
  const std::string id = submit(hold(1));
  const HoldSeen running = await(id, HoldPhase::kRunning);
  EXPECT_EQ(running.started, shown_time(id, "StartTime"));
  EXPECT_EQ(running.ended, std::nullopt);
  const std::string queued = submit(hold(2));
  EXPECT_EQ(await(queued, HoldPhase::kWaiting).started, std::nullopt);
  EXPECT_NE(agent_words("n1"), "");
  EXPECT_TRUE(slurm_->await([&] {
    return slurm_->run("squeue --noheader --format=%M --job=" + id).output != "0:00\n";
  })) << "times are in whole seconds";
  for (const auto& [key, job] : {std::pair(hold(2).key, queued), std::pair(hold(1).key, id)}) {
    manager_->carry_out({.what = ReleaseHold{.key = key, .id = job}});
  }
  const HoldSeen ended = await(id, HoldPhase::kEndedDirty);
  ASSERT_TRUE(ended.started && ended.ended);
  EXPECT_EQ(ended.started, running.started);
  EXPECT_EQ(*ended.started, shown_time(id, "StartTime"));
  EXPECT_EQ(*ended.ended, shown_time(id, "EndTime"));
  EXPECT_GE(*ended.ended - *ended.started, Duration::seconds(1));
  const HoldSeen never = await(queued, HoldPhase::kEndedDirty);
  EXPECT_EQ(never.started, std::nullopt) << "it was never lent a node";
  EXPECT_EQ(never.ended, std::nullopt);
}

TEST_F(RealSlurmTest, ARefusalHasSlurmsWordsAndAHoldTooLargeWaitsWithItsReason) {
  start(1);
  const std::string large = submit(hold(1, 9));
  const std::string reason = await(large, HoldPhase::kWaiting).reason;
  EXPECT_TRUE(reason.starts_with("Partition")) << reason;
  setup_.partition = "nowhere";
  manager_ = std::make_unique<SlurmManager>(
      *real_, setup_, [this](ManagerReport report) { reports_.push_back(std::move(report)); });
  const HoldAnswer answer = carry_out<HoldAnswer>(hold(2));
  EXPECT_EQ(answer.refused, HoldRefusal::kNever);
  EXPECT_NE(answer.text.find("Invalid partition name specified"), std::string::npos) << answer.text;
}

TEST_F(RealSlurmTest, WithoutASlurmctldNoListIsCompleteAndNoHoldIsAccepted) {
  start(1);
  const std::string id = submit(hold(1));
  (void)await(id, HoldPhase::kRunning);
  slurm_->kill_controller();
  const ManagerListing listing = list();
  EXPECT_FALSE(listing.complete);
  EXPECT_NE(listing.trouble.find("Unable to contact slurm controller"), std::string::npos)
      << listing.trouble;
  const HoldAnswer answer = carry_out<HoldAnswer>(hold(2));
  EXPECT_EQ(answer.id, "");
  EXPECT_EQ(answer.refused, HoldRefusal::kBusy) << answer.text;
}

TEST_F(RealSlurmTest, WhatSlurmForgetsVanishesAndItsIdsAreGivenToOthers) {
  start(1);
  constexpr std::uint64_t kHolds = 20;
  (void)submit(hold(1));
  std::map<std::string, HoldKey> lost;
  for (std::uint64_t id = 2; id <= kHolds; ++id) lost[submit(hold(id))] = hold(id).key;
  slurm_->kill_controller();
  const Status again = slurm_->start_controller();
  ASSERT_TRUE(again) << again.error().text();
  const ManagerListing listing = await([](const ManagerListing&) { return true; });
  for (const HoldSeen& seen : listing.holds) {
    EXPECT_TRUE(seen.phase == HoldPhase::kWaiting || seen.phase == HoldPhase::kRunning)
        << text_of(seen.key) << " " << seen.reason;
    lost.erase(seen.id);
  }
  ASSERT_FALSE(lost.empty()) << "this Slurm wrote all of it in time";
  const auto other = slurm_->run("sbatch --parsable --output=/dev/null --wrap='sleep 600'");
  const std::string id = other.output.substr(0, other.output.find('\n'));
  ASSERT_TRUE(lost.contains(id)) << other.output;
  manager_->carry_out({.what = ReleaseHold{.key = lost[id], .id = id}});
  EXPECT_TRUE(list().complete);
  const std::string state =
      slurm_->run("squeue --noheader --states=all --format=%T --job=" + id).output;
  EXPECT_TRUE(state == "PENDING\n" || state == "RUNNING\n") << state;
}

TEST_F(RealSlurmTest, ANodeThatAnAdministratorDrainsIsListedAndAHoldAvoidsWhatItIsToldTo) {
  start(3);
  setup_.sbatch_options = {"--exclude=n3"};
  manager_ = std::make_unique<SlurmManager>(
      *real_, setup_, [this](ManagerReport report) { reports_.push_back(std::move(report)); });
  EnsureHold order = hold(1);
  order.avoid = {"n1"};
  const std::string id = submit(order);
  EXPECT_EQ(await(id, HoldPhase::kRunning).nodes, std::vector<std::string>{"n2"});
  EXPECT_EQ(slurm_->run("scontrol update nodename=n2 state=drain reason='fan broken'").status, 0);
  const ManagerListing listing = list();
  ASSERT_EQ(listing.nodes.size(), 3u);
  EXPECT_FALSE(listing.nodes[0].drained);
  EXPECT_TRUE(listing.nodes[1].drained);
  EXPECT_TRUE(listing.nodes[1].reason.starts_with("fan broken")) << listing.nodes[1].reason;
  ASSERT_EQ(listing.holds.size(), 1u);
  EXPECT_EQ(listing.holds[0].phase, HoldPhase::kRunning) << "its jobs are to end first";
}

TEST_F(RealSlurmTest, AHoldWaitsForItsReservationAndIsRefusedOnceThatHasVanished) {
  start(1);
  const std::string reserve =
      "scontrol create reservation reservationname=r1 starttime=now+60minutes duration=60 "
      "users=root nodes=n1";
  EXPECT_EQ(slurm_->run(reserve).status, 0);
  setup_.reservation = "r1";
  manager_ = std::make_unique<SlurmManager>(
      *real_, setup_, [this](ManagerReport report) { reports_.push_back(std::move(report)); });
  const std::string id = submit(hold(1));
  EXPECT_EQ(await(id, HoldPhase::kWaiting).reason, "Reservation");
  manager_->carry_out({.what = ReleaseHold{.key = hold(1).key, .id = id}});
  (void)await(id, HoldPhase::kEndedDirty);
  const SlurmCluster::Run deleted = slurm_->run("scontrol delete reservation=r1");
  EXPECT_EQ(deleted.status, 0) << deleted.output;
  const HoldAnswer answer = carry_out<HoldAnswer>(hold(2));
  EXPECT_EQ(answer.refused, HoldRefusal::kNever);
  EXPECT_NE(answer.text.find("reservation"), std::string::npos) << answer.text;
}

TEST_F(RealSlurmTest, AHoldWhoseAgentsEndIsSeenAsEnded) {
  start(1);
  setup_.agent.program = "false";
  manager_ = std::make_unique<SlurmManager>(
      *real_, setup_, [this](ManagerReport report) { reports_.push_back(std::move(report)); });
  const std::string id = submit(hold(1));
  const HoldSeen ended = await(id, HoldPhase::kEndedDirty);
  EXPECT_EQ(ended.reason, fmt::format("FAILED: NonZeroExitCode{}", kUntracked));
  EXPECT_EQ(ended.nodes, std::vector<std::string>{"n1"});
}

TEST_F(RealSlurmTest, ANodeThatFailsLeavesTheHoldAndTheOthersStay) {
  start(2, {.slurmd_timeout = 3});
  const std::string id = submit(hold(1, 2));
  (void)await(id, HoldPhase::kRunning);
  for (const char* node : {"n1", "n2"}) EXPECT_NE(agent_words(node), "");
  slurm_->kill_slurmd("n2");
  const ManagerListing listing = await([](const ManagerListing& each) {
    return each.holds.size() == 1 && each.holds[0].nodes == std::vector<std::string>{"n1"};
  });
  EXPECT_EQ(listing.holds[0].phase, HoldPhase::kRunning);
  ASSERT_EQ(listing.nodes.size(), 2u);
  EXPECT_FALSE(listing.nodes[0].out_of_service);
  EXPECT_TRUE(listing.nodes[1].out_of_service);
  EXPECT_TRUE(listing.nodes[1].reason.starts_with("Not responding")) << listing.nodes[1].reason;
}

TEST_F(RealSlurmTest, AHoldThatEndsOnANodeWithoutAnAnswerIsNotProvedGone) {
  start(1, {.slurmd_timeout = 3});
  const std::string id = submit(hold(1));
  (void)await(id, HoldPhase::kRunning);
  EXPECT_NE(agent_words("n1"), "");
  slurm_->kill_slurmd("n1");
  manager_->carry_out({.what = ReleaseHold{.key = hold(1).key, .id = id}});
  const HoldSeen ended = await(id, HoldPhase::kEndedDirty);
  EXPECT_EQ(ended.nodes, std::vector<std::string>{"n1"}) << ended.reason;
}

}  // namespace
}  // namespace orrery
