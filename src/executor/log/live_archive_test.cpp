#include "executor/log/live_archive.hpp"

#include <optional>

#include "executor/log/live_log_test.hpp"

namespace orrery {
namespace {

class LiveArchiveTest : public LiveLogFixture {
 protected:
  void SetUp() override {
    settings_.retain = Seconds(3600);
    make_host();
    make_log();
    make_archive([](JobId job) { return "job " + std::to_string(job.value()); });
  }
  void make_archive(std::function<std::string(JobId)> form) {
    archive_.emplace(
        Log(sink_),
        LiveArchive::Options{.host = *host_,
                             .log = *log_,
                             .settings = settings_,
                             .inbox = real_->env().inbox,
                             .reader = std::make_unique<MemoryStore>(disk_),
                             .open = [this]() -> StorageResult<std::unique_ptr<StoreReader>> {
                               return std::make_unique<MemoryStore>(disk_);
                             },
                             .form = std::move(form)});
  }
  /// Submits a job that is cancelled at once.
  JobId ended_job() {
    const JobId job = submit();
    host_->handle(CancelJob{job});
    archive_->on_end(host_->now(), job);
    return job;
  }
  void pass(Duration time) { time_.run_until(time_.now + time); }
  /// Moves what is due, and waits until its rows are in the store.
  void move() {
    archive_->move_due();
    real_->run_until([this] { return !puts_.empty(); });
    puts_.clear();
  }

  std::optional<LiveArchive> archive_;
};

TEST_F(LiveArchiveTest, AJobLeavesTheStateOnceItsRowIsDurable) {
  EXPECT_EQ(archive_->next_due(), Instant::max());
  const JobId job = ended_job();
  EXPECT_EQ(archive_->next_due(), host_->now() + Duration::hours(1));
  pass(Duration::hours(1));
  move();
  EXPECT_TRUE(host_->state().has(job)) << "the archive was not told yet";
  EXPECT_EQ(archive_->next_due(), Instant::max()) << "one move at a time";
  archive_->on_put({});
  EXPECT_FALSE(host_->state().has(job));
  EXPECT_EQ(changes_, 1);
  EXPECT_EQ(archive_->next_due(), Instant::max());
  EXPECT_EQ(*archive_->archived(100, 10), (std::vector<ArchivedJob>{{job.value(), "job 0"}}));
  std::optional<LiveArchive::Rows> beside;
  archive_->read(100, 10, [&](LiveArchive::Rows rows) { beside = std::move(rows); });
  EXPECT_FALSE(beside) << "it is read beside the loop";
  real_->run_until([&] { return beside.has_value(); });
  EXPECT_EQ(**beside, *archive_->archived(100, 10));
}

TEST_F(LiveArchiveTest, WithoutSpaceAJobStaysAndIsMovedAMinuteLater) {
  const JobId job = ended_job();
  pass(Duration::hours(1));
  move();
  archive_->on_put(store_error(StorageFailure::kFull, "no space"));
  EXPECT_TRUE(host_->state().has(job));
  EXPECT_EQ(sink_.count("jobs not archived why=\"no space\""), 1U) << sink_.text();
  EXPECT_EQ(archive_->next_due(), host_->now() + Duration::minutes(1));
  pass(Duration::minutes(1));
  move();
  archive_->on_put({});
  EXPECT_FALSE(host_->state().has(job));
}

TEST_F(LiveArchiveTest, AShorterTimeInTheSettingsTakesEffect) {
  ended_job();
  settings_.retain = Seconds(60);
  EXPECT_EQ(archive_->next_due(), host_->now() + Duration::minutes(1));
}

TEST_F(LiveArchiveTest, TheEndedJobsOfARestoredStateAreMoved) {
  const JobId job = ended_job();
  make_archive([](JobId) { return "row"; });
  EXPECT_EQ(archive_->next_due(), host_->state().job(job).since + Duration::hours(1));
}

TEST_F(LiveArchiveTest, WithoutAFormOrWhileHaltedNothingIsMoved) {
  make_archive({});
  ended_job();
  EXPECT_EQ(archive_->next_due(), Instant::max());
  make_archive([](JobId) { return "row"; });
  EXPECT_LT(archive_->next_due(), Instant::max());
  host_->control().deliver(report_of(NodeId(0), {{JobId(9), 1}}), host_->now());
  ASSERT_TRUE(host_->is_halted());
  EXPECT_EQ(archive_->next_due(), Instant::max());
  pass(Duration::hours(1));
  archive_->move_due();
  EXPECT_EQ(*archive_->archived(100, 10), std::vector<ArchivedJob>());
}

}  // namespace
}  // namespace orrery
