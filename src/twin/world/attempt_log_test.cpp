#include "twin/world/attempt_log.hpp"

#include <gtest/gtest.h>

#include "fleet/fleet_test.hpp"

namespace orrery {
namespace {

Instant hour(std::int64_t h) { return Instant() + Duration::hours(h); }

/// A gang on whole nodes of 8, starting at node `first`.
std::vector<PlacedGang> on_nodes(std::uint32_t first, std::uint32_t count) {
  PlacedGang gang;
  for (std::uint32_t n = 0; n < count; ++n) {
    gang.allocation.ranks.push_back({NodeId(first + n), 0xff});
  }
  return {gang};
}

JobStarted start_of(std::uint32_t job, std::vector<PlacedGang> gangs) {
  JobStarted started;
  started.job = JobId(job);
  started.gangs = std::move(gangs);
  return started;
}

GanttNames named() {
  return {.job = [](JobId id) { return "job-" + std::to_string(id.value()); },
          .group = [](JobId id) { return std::string(id.value() < 2 ? "few" : "many"); },
          .grouped_by = "tenant"};
}

void look(AttemptLog& log, Instant at, const Event& event) { log.look(at, std::span(&event, 1)); }

TEST(AttemptLog, ASpanEndsWhenDevicesAreBackOrTheJobIsPlacedAnew) {
  const Topology topology = built(small_h100());
  AttemptLog log(topology);
  ASSERT_EQ(log.rows().size(), 16u);
  EXPECT_EQ(log.rows()[5].devices, 8u);
  look(log, hour(0), start_of(0, on_nodes(2, 4)));
  JobResized resized;
  resized.job = JobId(0);
  resized.gangs = on_nodes(2, 2);
  look(log, hour(2), resized);
  look(log, hour(3),
       JobStopping{.job = JobId(0), .reason = StopReason::kPreempted, .in_favour_of = JobId(1)});
  look(log, hour(4), JobRequeued{.job = JobId(0)});
  look(log, hour(6), start_of(0, on_nodes(0, 1)));
  ASSERT_EQ(log.spans().size(), 3u);
  EXPECT_EQ(log.spans()[0].to, hour(2));
  EXPECT_EQ(log.spans()[0].devices, 32u);
  EXPECT_EQ(log.spans()[1].to, hour(4));
  EXPECT_EQ(log.spans()[2].to, Instant::max());
  const auto name = [](JobId id) { return "job-" + std::to_string(id.value()); };
  const std::vector<std::string> course = log.course(JobId(0), name);
  ASSERT_EQ(course.size(), 4u);
  EXPECT_NE(course[0].find("starts: 32 x nvidia-h100-sxm5-80g on 4 nodes"), std::string::npos)
      << course[0];
  EXPECT_NE(course[2].find("stops: preempted in favour of job-1"), std::string::npos) << course[2];
  EXPECT_TRUE(log.course(JobId(7), name).empty());
}

TEST(AttemptLog, UseIsTheMeanShareOfARowsDevices) {
  const Topology topology = built(small_h100());
  AttemptLog log(topology);
  PlacedGang half;
  half.allocation.ranks.push_back({NodeId(3), 0x0f});
  look(log, hour(30), start_of(0, {half}));
  look(log, hour(90), JobEnded{.job = JobId(0)});
  const RowMap use = log.use(hour(0), hour(120));
  ASSERT_EQ(use.columns, 120u);
  ASSERT_EQ(use.shares.size(), 16u * 120);
  for (std::size_t c = 0; c < use.columns; ++c) {
    EXPECT_DOUBLE_EQ(use.shares[360 + c], c >= 30 && c < 90 ? 0.5 : 0.0) << c;
    EXPECT_DOUBLE_EQ(use.shares[480 + c], 0.0) << c;
  }
  EXPECT_TRUE(log.use(hour(5), hour(5)).shares.empty());
}

TEST(AttemptLog, ASharedDeviceCountsByItsShare) {
  const Topology topology = built(small_h100());
  AttemptLog log(topology);
  PlacedGang quarter;
  quarter.allocation.share = kWholeDevice / 4;
  quarter.allocation.ranks.push_back({NodeId(3), 0x01});
  look(log, hour(0), start_of(0, {quarter}));
  look(log, hour(0), start_of(1, {quarter}));
  const RowMap use = log.use(hour(0), hour(120));
  EXPECT_DOUBLE_EQ(use.shares[360], 2 * 0.25 / 8);
  const GanttChart chart = log.chart(named(), hour(120));
  ASSERT_EQ(chart.bars.size(), 2u);
  EXPECT_DOUBLE_EQ(chart.bars[0].devices, 0.25);
}

TEST(AttemptLog, AChartHasTheAttemptsWithTheMostWork) {
  const Topology topology = built(small_h100());
  AttemptLog log(topology);
  for (std::uint32_t job = 0; job < 2100; ++job) {
    look(log, hour(job), start_of(job, on_nodes(job % 16, 1)));
    JobStopping stopping{.job = JobId(job), .reason = StopReason::kInfra};
    if (job == 1000) look(log, hour(job + 1), stopping);
    look(log, hour(job + 1 + (job == 7 ? 5 : 0)), JobEnded{.job = JobId(job)});
  }
  const GanttChart chart = log.chart(named(), hour(3000));
  EXPECT_EQ(chart.bars.size(), AttemptLog::kBarsMax);
  EXPECT_EQ(chart.left_out, 2100 - AttemptLog::kBarsMax);
  EXPECT_EQ(chart.groups, (std::vector<std::string>{"many", "few"}));
  EXPECT_TRUE(std::ranges::is_sorted(chart.bars, {}, &GanttBar::from));
  EXPECT_EQ(std::ranges::count(chart.bars, true, &GanttBar::fault), 1);
  const auto longest = std::ranges::find(chart.bars, "job-7", &GanttBar::job);
  ASSERT_NE(longest, chart.bars.end());
  EXPECT_EQ(longest->to - longest->from, Duration::hours(6));
}

TEST(AttemptLog, ALargeFleetIsDrawnByPods) {
  const Topology topology = built(
      one_hall("    - name: su\n      count: 3\n      racks:\n      - count: 30\n        cooling: "
               "in-row-or-dense-air\n        nodes: [{type: dgx-h100, count: 4}]\n"));
  AttemptLog log(topology);
  EXPECT_EQ(log.rows().size(), 90u);
  look(log, hour(0), start_of(0, on_nodes(118, 4)));  // the last two nodes of a pod and two more
  const GanttChart chart = log.chart(named(), hour(1));
  ASSERT_EQ(chart.rows.size(), 3u);
  EXPECT_EQ(chart.rows[0].devices, 960u);
  ASSERT_EQ(chart.bars.size(), 2u);
  EXPECT_EQ(chart.bars[0].devices, 16u);
  EXPECT_EQ(chart.bars[1].row, 1u);
}

}  // namespace
}  // namespace orrery
