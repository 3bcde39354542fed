// Controllers of one shared log: which one leads, what a standby knows, and that none answers while
// the log cannot be written.
#include "executor/start/standby.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "executor/controller_test.hpp"
#include "store/memory/memory_shared_store_test.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

/// One of the controllers: a standby, and the controller once it leads.
struct Member {
  std::string directory;
  std::optional<ControllerOptions> options;
  std::unique_ptr<Standby> standby;
  std::unique_ptr<Controller> controller;
  MemorySharedStore* store = nullptr;  ///< once it is open
  std::string leader;                  ///< that the standby named last
  std::string failure;                 ///< why it ended
};

class StandbyTest : public ControllerFixture {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "orrery_standby_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    scratch_ = name;
    real_ = RealEnv::create().value();
  }
  void TearDown() override {
    members_.clear();
    stop();
    fs::remove_all(scratch_);
  }

  /// Starts a controller as a standby; `name` is its address.
  Member& start(const std::string& name, const SetupTexts& setup = lab_setup()) {
    Member& member = *members_.emplace_back(std::make_unique<Member>());
    member.directory = scratch_ + "/" + name;
    fs::create_directories(member.directory + "/store");
    const auto archive = [this]() -> StorageResult<std::unique_ptr<StoreReader>> {
      return std::make_unique<MemoryStore>(archive_);
    };
    member.options.emplace(ControllerOptions{
        .directory = member.directory,
        .setup = setup,
        .facts = lab_facts(),
        .settings = {.retain = Seconds(0)},
        .archived_form = [](const EndedJob& job) { return job.state.job(job.job).name; },
        .shared =
            SharedLog{.open = [this, &member]() -> StorageResult<std::unique_ptr<SharedStore>> {
                        auto store = std::make_unique<MemorySharedStore>(service_);
                        member.store = store.get();
                        return store;
                      },
                      .open_log = archive,
                      .open_archive = archive,
                      .writer = name,
                      .claims_after = Duration::milliseconds(300)},
        .failed = [&member](const Error& error) { member.failure = error.text(); }});
    auto standby = Standby::begin(
        real_->env(), Log(sink_), *member.options,
        {.texts = [](const StoreTexts&) {},
         .leader = [&member](const std::string& leader) { member.leader = leader; },
         .claimed = [](Store&, StoreTerm) {},
         .lead =
             [this, &member](LiveStart begun) {
               member.controller = std::make_unique<Controller>(real_->env(), Log(sink_),
                                                                *member.options, std::move(begun));
             },
         .failed = [&member](const Error& error) { member.failure = error.text(); }});
    if (!standby) member.failure = standby.error().text();
    if (standby) member.standby = *std::move(standby);
    return member;
  }
  Member& start_leader(const std::string& name) {
    Member& member = start(name);
    await([&] { return member.controller != nullptr; });
    return member;
  }
  static std::string job(const std::string& name) {
    return "apiVersion: orrery/v1\nkind: Batch\nname: " + name +
           "\nroles: [{accelerators: 8}]\nlaunch: {command: [sh, -c, \"exit 0\"]}\n";
  }
  void submit(Member& member, const std::string& name) {
    member.controller->submissions().submit(
        {job(name), "job.yaml"}, "",
        [this, name](const Result<std::vector<JobId>>& jobs) { answers_.emplace(name, jobs); });
  }
  /// Lets this much time pass on the loop.
  void pass(Duration time) {
    bool over = false;
    real_->env().timers.call_after(time, [&] { over = true; });
    await([&] { return over; });
  }

  std::string scratch_;
  MemoryService service_;
  MemoryDisk archive_;
  std::map<std::string, Result<std::vector<JobId>>> answers_;  ///< of submissions, by name
  std::vector<std::unique_ptr<Member>> members_;
};

TEST_F(StandbyTest, TheFirstLeadsAtOnceAndTheNextFollowsWithEveryJob) {
  Member& first = start_leader("a:1");
  Member& second = start("b:1");
  await([&] { return second.leader == "a:1"; });
  submit(first, "one");
  await([&] { return answers_.contains("one"); });
  ASSERT_TRUE(answers_.at("one")) << answers_.at("one").error().text();
  await([&] { return second.standby->newest() == service_.newest(); });
  ASSERT_NE(second.standby->state(), nullptr);
  EXPECT_EQ(second.standby->state()->job(JobId(0)).name, "one");
  await([&] { return second.store->noted == std::pair(service_.newest(), std::uint64_t{1}); });
  pass(Duration::milliseconds(600));
  EXPECT_EQ(second.controller, nullptr) << "an idle leader shows that it lives";
  EXPECT_EQ(first.failure, "");
}

TEST_F(StandbyTest, ALeaderThatIsCutOffIsReplacedAndItsJobsAreKept) {
  Member& first = start_leader("a:1");
  Member& second = start("b:1");
  submit(first, "one");
  await([&] { return answers_.contains("one"); });
  first.store->cut();
  await([&] { return second.controller != nullptr; });
  EXPECT_EQ(second.controller->state().job(JobId(0)).name, "one");
  submit(second, "two");
  await([&] { return answers_.contains("two"); });
  ASSERT_TRUE(answers_.at("two")) << answers_.at("two").error().text();
  EXPECT_EQ(answers_.at("two")->front(), JobId(1)) << "numbers go on";
  submit(first, "late");
  bool read = false;
  first.controller->after_durable([&] { read = true; });
  Member& third = start("a:1");
  await([&] { return third.leader == "b:1"; });
  pass(Duration::milliseconds(600));
  EXPECT_EQ(third.controller, nullptr);
  EXPECT_FALSE(answers_.contains("late")) << "the former leader is silent";
  EXPECT_FALSE(read);
}

TEST_F(StandbyTest, WhileTheStoreIsAwayNothingIsSaidAndNobodyTakesOver) {
  Member& first = start_leader("a:1");
  Member& second = start("b:1");
  await([&] { return second.leader == "a:1"; });
  service_.set(MemoryService::Reach::kAway);
  submit(first, "one");
  bool read = false;
  pass(Duration::milliseconds(150));  // it may no longer speak
  first.controller->after_durable([&] { read = true; });
  pass(Duration::milliseconds(700));  // and the standby would have claimed
  EXPECT_FALSE(answers_.contains("one"));
  EXPECT_FALSE(read) << "another controller might have changed what the reader asks for";
  EXPECT_NE(first.controller->store().log().silence(), "") << "/healthz says so";
  EXPECT_EQ(second.controller, nullptr);
  service_.set(MemoryService::Reach::kThere);
  await([&] { return answers_.contains("one") && read; });
  EXPECT_EQ(second.controller, nullptr) << "the leader has its time to write again";
  EXPECT_EQ(first.failure, "");
  EXPECT_EQ(second.failure, "");
}

TEST_F(StandbyTest, AStandbyThatGetsNoAnswerForNewTextsBeginsAnew) {
  Member& first = start_leader("a:1");
  Member& second = start("b:1");
  await([&] { return second.leader == "a:1"; });
  MemorySharedStore* const cut = second.store;
  cut->cut();
  ASSERT_TRUE(first.controller->store().log().put_texts_now({{"secret.a", "b"}}));
  submit(first, "one");
  await([&] { return second.store != cut || !second.failure.empty(); });
  EXPECT_EQ(second.failure, "");
  await([&] { return answers_.contains("one") && second.standby->newest() == service_.newest(); });
  ASSERT_NE(second.standby->state(), nullptr);
  EXPECT_EQ(second.standby->state()->job(JobId(0)).name, "one");
}

TEST_F(StandbyTest, AStandbyArchivesWhatTheLeaderArchives) {
  Member& first = start_leader("a:1");
  Member& second = start("b:1");
  submit(first, "one");
  await([&] { return answers_.contains("one"); });
  first.controller->command(CancelJob{JobId(0)}, "", [](const Result<JobId>&) {});
  await([&] { return !second.store->kept.empty(); });
  EXPECT_EQ(second.store->kept, (std::vector<ArchivedJob>{{0, "one"}}));
  Member& third = start("c:1");
  EXPECT_EQ(third.store->kept, second.store->kept) << "also from the log that it begins with";
}

TEST_F(StandbyTest, AWriterThatSpeaksLongerThanThisControllerWouldIsReplacedLater) {
  MemorySharedStore writer(service_);
  service_.speaks_for = MemorySharedStore::shared_traits().speaks_for + Duration::milliseconds(500);
  ASSERT_TRUE(writer.claim());
  Member& second = start("b:1");
  pass(Duration::milliseconds(600));
  EXPECT_EQ(second.controller, nullptr) << "its own patience of 0.3 s is over";
  await([&] { return second.controller != nullptr; });
}

TEST_F(StandbyTest, AStandbyThatHearsNothingClaimsNothing) {
  Member& first = start_leader("a:1");
  Member& second = start("b:1");
  await([&] { return second.leader == "a:1"; });
  EXPECT_EQ(second.standby->progress().leader, "a:1");
  EXPECT_EQ(second.standby->progress().term,
            static_cast<std::uint64_t>(first.controller->store().log().term()));
  service_.set(MemoryService::Followers::kDeaf);
  pass(Duration::milliseconds(900));
  EXPECT_EQ(second.controller, nullptr) << "the writer has written since it was heard last";
  EXPECT_GE(second.standby->progress().behind, Duration::milliseconds(800));
  service_.set(MemoryService::Followers::kHear);
  submit(first, "one");
  await([&] { return second.standby->newest() == service_.newest(); });
  await(
      [&] { return second.standby->progress().batch == first.controller->store().log().newest(); });
  EXPECT_EQ(second.standby->progress().behind_batches, 0u);
  EXPECT_EQ(first.failure, "");
  EXPECT_EQ(second.failure, "");
}

TEST_F(StandbyTest, LostAnswersOfTheStoreLoseAndDoubleNothing) {
  Member& first = start_leader("a:1");
  service_.lose_answers(3);
  submit(first, "one");
  await([&] { return answers_.contains("one"); });
  ASSERT_TRUE(answers_.at("one"));
  EXPECT_EQ(first.controller->state().jobs(), 1u);
  EXPECT_EQ(first.failure, "");
}

TEST_F(StandbyTest, ALogThatIsTooLargeTakesNoNewJobsAndEverythingElse) {
  Member& first = start_leader("a:1");
  submit(first, "one");
  await([&] { return answers_.contains("one"); });
  EXPECT_TRUE(first.controller->submissions().admission(""));
  first.store->held = std::uint64_t{1025} << 20;
  const Status refused = first.controller->submissions().admission("");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("the shared log has 1025 MiB"), std::string::npos)
      << refused.error().text();
  EXPECT_NE(refused.error().text().find("orrery store compact"), std::string::npos);
  std::optional<Result<JobId>> cancelled;
  first.controller->command(CancelJob{JobId(0)}, "",
                            [&](const Result<JobId>& done) { cancelled = done; });
  await([&] { return cancelled.has_value(); });
  EXPECT_TRUE(*cancelled) << cancelled->error().text();
  first.store->held = std::uint64_t{1000} << 20;
  EXPECT_TRUE(first.controller->submissions().admission(""));
  EXPECT_NE(first.controller->store().room().warning(), "") << "it is still large";
}

TEST_F(StandbyTest, ALeaderThatWasReplacedSaysSoAndEnds) {
  Member& first = start_leader("a:1");
  MemorySharedStore other(service_);
  ASSERT_TRUE(other.claim());
  await([&] { return !first.failure.empty(); });
  EXPECT_NE(first.failure.find("may write no more"), std::string::npos) << first.failure;
}

TEST_F(StandbyTest, AStandbyWithTheFilesOfAnotherClusterIsRefusedWithBothNames) {
  start_leader("a:1");
  SetupTexts other = lab_setup();
  other.fleet.replace(other.fleet.find("name: lab"), 9, "name: oslo");
  EXPECT_EQ(start("b:1", other).failure,
            "fleet.yaml: it is of the cluster \"oslo\", and the log of the cluster \"lab\": start "
            "the controller with the log or the files of the other one");
  other.fleet = "not a fleet";
  EXPECT_EQ(start("c:1", other).failure, "") << "the log has the fleet";
}

TEST_F(StandbyTest, AStandbyThatCannotReadTheLogNeverLeads) {
  start_leader("a:1");
  Member& second = start("b:1");
  await([&] { return second.leader == "a:1"; });
  MemorySharedStore other(service_);
  const StoreTerm term = other.claim().value();
  ASSERT_TRUE(other.append(term, {service_.newest() + 1, "of a newer release"}));
  await([&] { return !second.failure.empty(); });
  EXPECT_NE(second.failure.find("batch"), std::string::npos) << second.failure;
  pass(Duration::milliseconds(600));
  EXPECT_EQ(second.controller, nullptr);
}

}  // namespace
}  // namespace orrery
