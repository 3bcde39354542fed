#include "twin/runs/run_progress.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

Duration seconds(std::int64_t count) { return Duration::seconds(count); }
Instant at(std::int64_t count) { return Instant() + seconds(count); }

/// A run of so much work that is up from time 0.
RunProgress running(std::int64_t work, const CheckpointPace& pace = {}, double rate = 1) {
  RunProgress progress(seconds(work));
  progress.begin(pace);
  progress.come_up(at(0));
  progress.set_rate(rate);
  return progress;
}

constexpr CheckpointPace kEveryMinute{Duration::seconds(50), Duration::seconds(10)};

TEST(RunProgress, WorkAdvancesAtTheRateWhileTheRanksAreUp) {
  RunProgress progress = running(100, {}, 0.5);
  EXPECT_EQ(progress.until_end(), seconds(200));
  progress.settle(at(40));
  EXPECT_EQ(progress.left(), seconds(80));
  EXPECT_EQ(progress.until_end(), seconds(160));
  progress.set_rate(2);
  progress.settle(at(60));
  EXPECT_EQ(progress.left(), seconds(40));
  progress.take_down();
  progress.settle(at(80));
  EXPECT_EQ(progress.left(), seconds(40));
}

TEST(RunProgress, WorkNeverFallsBelowNothing) {
  RunProgress progress = running(100);
  progress.settle(at(1000));
  EXPECT_EQ(progress.left(), Duration());
}

TEST(RunProgress, AServiceNeverEnds) {
  RunProgress progress(Duration::max());
  progress.begin({});
  progress.come_up(at(0));
  EXPECT_FALSE(progress.until_end());
}

TEST(RunProgress, CheckpointsSlowARunAndKeepWhatTheyCover) {
  RunProgress progress = running(1000, kEveryMinute);
  progress.settle(at(126));
  EXPECT_NEAR(progress.left().count_seconds(), 1000 - 126 * 50.0 / 60, 1e-6);
  EXPECT_TRUE(progress.has_state());
  const Progress report = progress.report(at(126));
  EXPECT_NEAR(report.done, 0.1, 1e-9) << "two copies of 50 s of work";
  EXPECT_NEAR(report.lost.count_seconds(), 6, 1e-6);
  EXPECT_EQ(report.saving, seconds(20));
  EXPECT_NEAR(progress.left().count_seconds(), 900, 1e-6);
  EXPECT_EQ(progress.report(at(126)).saving, Duration()) << "a cost is reported once";
}

TEST(RunProgress, WithoutCheckpointsAStopLosesAll) {
  RunProgress progress = running(1000);
  progress.settle(at(100));
  EXPECT_FALSE(progress.has_state());
  const Progress report = progress.report(at(100));
  EXPECT_EQ(report.done, 0);
  EXPECT_EQ(report.lost, seconds(100));
  EXPECT_EQ(progress.left(), seconds(1000));
}

TEST(RunProgress, ACopyInSharedStorageIsGoodOnlyWhenItsBytesAreThere) {
  RunProgress progress = running(1000, kEveryMinute);
  progress.set_copies(CopyMode::kStored);
  progress.settle(at(60));
  progress.count_stall();
  const Duration copied = progress.left();
  progress.settle(at(90));
  EXPECT_FALSE(progress.has_state());
  progress.complete_copy(copied, at(90));
  const Progress report = progress.report(at(90));
  EXPECT_NEAR(report.done, 0.05, 1e-9);
  EXPECT_NEAR(report.lost.count_seconds(), 30, 1e-6);
  EXPECT_EQ(report.saving, seconds(10));
}

TEST(RunProgress, TimeHaltedIsNoWorkAndIsReportedOnce) {
  RunProgress progress = running(1000);
  progress.settle(at(100));
  progress.halt(at(100));
  EXPECT_TRUE(progress.up());
  EXPECT_FALSE(progress.computes());
  progress.settle(at(130));
  EXPECT_EQ(progress.left(), seconds(900));
  const Progress report = progress.report(at(130));
  EXPECT_EQ(report.undetected, seconds(30));
  EXPECT_EQ(report.lost, seconds(100));
  EXPECT_EQ(progress.report(at(140)).undetected, Duration());
}

TEST(RunProgress, AJobThatGoesOnInAnotherEpochKeepsItsWorkInMemory) {
  RunProgress progress = running(1000, kEveryMinute);
  progress.settle(at(90));
  const Duration left = progress.left();
  EXPECT_FALSE(progress.report_epoch(at(90))) << "nothing went wrong";
  progress.halt(at(90));
  const std::optional<Progress> report = progress.report_epoch(at(100));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->lost, Duration());
  EXPECT_EQ(report->undetected, seconds(10));
  EXPECT_NEAR(report->done, 0.075, 1e-9);
  EXPECT_EQ(progress.left(), left);
  progress.begin(kEveryMinute);
  EXPECT_NEAR(progress.report(at(100)).done, 0.05, 1e-9) << "the copy in storage is as it was";
}

TEST(RunProgress, ResultsKnownToBeWrongAreUndone) {
  RunProgress progress = running(1000, kEveryMinute);
  progress.settle(at(70));
  progress.corrupt_results(at(200));
  progress.corrupt_results(at(100));  // adds nothing
  progress.settle(at(150));
  EXPECT_TRUE(progress.corrupt());
  EXPECT_FALSE(progress.known_wrong(at(199)));
  EXPECT_TRUE(progress.known_wrong(at(200)));
  progress.settle(at(200));
  const Progress report = progress.report(at(200));
  EXPECT_NEAR(report.done, 0.05, 1e-9) << "the copy of before";
  EXPECT_TRUE(progress.newest_copy_wrong());
  EXPECT_FALSE(progress.corrupt()) << "that copy is right";
  progress.begin(kEveryMinute);
  progress.come_up(at(300));
  EXPECT_FALSE(progress.newest_copy_wrong());
}

TEST(RunProgress, WrongResultsThatNobodyKnowsOfGoIntoTheCopies) {
  RunProgress progress = running(1000, kEveryMinute);
  progress.settle(at(70));
  progress.corrupt_results(at(5000));
  progress.settle(at(130));
  EXPECT_NEAR(progress.report(at(130)).done, 0.1, 1e-9);
  EXPECT_TRUE(progress.corrupt()) << "the copy at 120 s was made of wrong results";
}

TEST(RunProgress, ARestartFromBeforeAnUnknownCorruptionIsCorrect) {
  RunProgress progress = running(1000, kEveryMinute);
  progress.settle(at(70));
  progress.corrupt_results(at(5000));
  progress.settle(at(100));
  EXPECT_NEAR(progress.report(at(100)).done, 0.05, 1e-9);
  EXPECT_FALSE(progress.corrupt());
}

TEST(RunProgress, AnEndReportsAllWorkDoneAndTheCostOfItsCopies) {
  RunProgress progress = running(100, kEveryMinute);
  progress.settle(at(120));
  const Progress report = progress.finish();
  EXPECT_EQ(report.done, 1);
  EXPECT_EQ(report.saving, seconds(20));
  EXPECT_EQ(report.lost, Duration());
  EXPECT_EQ(progress.left(), Duration());
}

TEST(RunProgress, ARequestedStopSavesWhatWasDone) {
  RunProgress progress = running(1000);
  progress.settle(at(250));
  progress.save_all();
  progress.take_down();
  const Progress report = progress.report(at(250));
  EXPECT_NEAR(report.done, 0.25, 1e-9);
  EXPECT_EQ(report.lost, Duration());
  progress.begin({});
  progress.rewind();
  EXPECT_EQ(progress.left(), seconds(750));
}

TEST(RunProgress, ASnapshotsRunGoesOnFromTheRecordedWork) {
  RunProgress progress(seconds(1000));
  progress.restore(0.4);
  EXPECT_EQ(progress.left(), seconds(600));
  progress.begin({seconds(100), Duration()});
  progress.come_up(at(1000));
  progress.set_rate(0.5);
  progress.adopt(seconds(500), seconds(30));
  EXPECT_EQ(progress.until_end(), seconds(500));
  const Progress report = progress.report(at(1000));
  EXPECT_NEAR(report.lost.count_seconds(), 30, 1e-9);
  EXPECT_NEAR(report.done, 0.735, 1e-9);
}

// Whatever the order of events, the work that is done, lost and left adds up.
TEST(RunProgress, WorkIsNeitherMadeNorForgotten) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng = Rng::stream(seed, "progress");
    RunProgress progress(seconds(100'000));
    double computed = 0;
    double lost = 0;
    std::int64_t now = 0;
    for (int attempt = 0; attempt < 8; ++attempt) {
      const double rate = 0.25 + rng.uniform();
      progress.begin(rng.below(2) == 0 ? CheckpointPace{seconds(60), Duration()}
                                       : CheckpointPace());
      progress.rewind();
      progress.come_up(at(now));
      progress.set_rate(rate);
      for (int span = 0; span < 5; ++span) {
        const auto length = static_cast<std::int64_t>(rng.below(500));
        now += length;
        progress.settle(at(now));
        computed += static_cast<double>(length) * rate;
      }
      if (rng.below(3) == 0) progress.halt(at(now));
      if (rng.below(3) == 0) progress.save_all();
      const Progress report = progress.report(at(now));
      lost += report.lost.count_seconds() * rate;
      EXPECT_NEAR(report.done * 100'000, computed - lost, 1e-3);
      EXPECT_NEAR(progress.left().count_seconds(), 100'000 - computed + lost, 1e-3);
      progress.take_down();
    }
  }
}

}  // namespace
}  // namespace orrery
