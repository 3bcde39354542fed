#include "executor/live/live_counts.hpp"

#include <gtest/gtest.h>

#include "control/scripted_cluster_test.hpp"

namespace orrery {
namespace {

TEST(TimeHistogram, CountsUpToEachBoundAndAboveTheLast) {
  TimeHistogram times({1, 10});
  times.observe(Duration::milliseconds(500));
  times.observe(Duration::seconds(1));
  times.observe(Duration::seconds(2));
  times.observe(Duration::seconds(60));
  EXPECT_EQ(times.up_to(0), 2U) << "a bound counts itself";
  EXPECT_EQ(times.up_to(1), 3U);
  EXPECT_EQ(times.up_to(2), 4U);
  EXPECT_EQ(times.count(), 4U);
  EXPECT_DOUBLE_EQ(times.sum(), 63.5);
}

TEST(LiveCounts, AJobWaitsInTheQueueOnceUntilItsFirstStart) {
  ScriptedCluster cluster;
  LiveCounts counts;
  const JobId first = cluster.run(cluster.job(32));
  const JobId second = cluster.submit(cluster.job(32));
  cluster.wait(Duration::minutes(5));
  cluster.end(first);
  cluster.tick();
  cluster.up(second);
  cluster.decide({PreemptJob{second, JobId()}});
  cluster.gone(second);
  cluster.tick();
  ASSERT_EQ(cluster.job(second).attempt, 2U);
  EXPECT_EQ(counts.queue_wait.count(), 0U);
  for (const TimedEvent& event : cluster.log()) {
    const auto* start = std::get_if<JobStarted>(&event.what);
    if (start == nullptr || start->job != second) continue;
    State then(cluster.setup());
    for (const TimedEvent& before : cluster.log()) {
      then.apply(before.at, before.what);
      if (&before == &event) break;
    }
    counts.note(event.what, then);
  }
  EXPECT_EQ(counts.queue_wait.count(), 1U) << "a restart is not counted";
  EXPECT_DOUBLE_EQ(counts.queue_wait.sum(), 300);
}

}  // namespace
}  // namespace orrery
