#include "workload/trace_input/trace_parts.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Instant at(std::int64_t seconds) { return Instant::from_ns(seconds * 1'000'000'000); }

struct PartTimes {
  std::int64_t submit;
  std::int64_t start;
  std::int64_t end;
};

TracePart part(std::string key, PartTimes times, std::uint32_t accelerators) {
  TracePart made;
  made.job.name = key;
  made.key = std::move(key);
  made.job.submit = at(times.submit);
  made.start = at(times.start);
  made.job.run = at(times.end) - at(times.start);
  made.job.accelerators = accelerators;
  made.job.cpu_millicores = 500 * accelerators;
  made.job.status = TraceStatus::kCompleted;
  return made;
}

TEST(TraceParts, AJobHasWhatItsPartsHadAtOneTime) {
  const std::vector<TraceJob> jobs =
      join_trace_parts({part("a", {10, 20, 50}, 8), part("b", {0, 1, 2}, 1),
                        part("a", {5, 25, 60}, 4), part("a", {12, 60, 90}, 8)},
                       JoinedStatus::kWorst);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].submit, at(5));
  EXPECT_EQ(jobs[0].run, Duration::seconds(70)) << "from 20 to 90";
  EXPECT_EQ(jobs[0].accelerators, 12u) << "the third began when the second had ended";
  EXPECT_EQ(jobs[0].cpu_millicores, 6000u);
  EXPECT_EQ(jobs[1].accelerators, 1u);
}

TEST(TraceParts, PartsOfAcceleratorsAreAddedAndRoundedUp) {
  TracePart half = part("a", {0, 0, 10}, 1);
  half.job.share = 500;
  TracePart other = half;
  other.job.share = 300;
  TraceJob together = join_trace_parts({half, other}, JoinedStatus::kWorst).front();
  EXPECT_EQ(together.accelerators, 1u);
  EXPECT_EQ(together.share, 800);
  other.job.share = 600;
  together = join_trace_parts({half, other}, JoinedStatus::kWorst).front();
  EXPECT_EQ(together.accelerators, 2u);
  EXPECT_EQ(together.share, 1000);
}

TEST(TraceParts, APartWithoutARunCountsAlone) {
  const TraceJob job =
      join_trace_parts({part("a", {0, 7, 7}, 4), part("a", {0, 7, 9}, 2)}, JoinedStatus::kWorst)
          .front();
  EXPECT_EQ(job.accelerators, 4u);
  EXPECT_EQ(job.run, Duration::seconds(2));
}

TEST(TraceParts, AJobHasNoMoreThanAReaderTakes) {
  TracePart half = part("a", {0, 0, 10}, 1);
  half.job.cpu_millicores = 600'000'000;
  half.job.memory_mib = kTraceMemoryMibMax - 1;
  const TraceJob job = join_trace_parts({half, half}, JoinedStatus::kWorst).front();
  EXPECT_EQ(job.cpu_millicores, kTraceMillicoresMax);
  EXPECT_EQ(job.memory_mib, kTraceMemoryMibMax);
}

TEST(TraceParts, StatusIsTheWorstOrTheLast) {
  TracePart failed = part("a", {0, 0, 10}, 1);
  failed.job.status = TraceStatus::kFailed;
  const TracePart retried = part("a", {0, 10, 30}, 1);
  const auto status = [&](JoinedStatus rule) {
    return join_trace_parts({failed, retried}, rule).front().status;
  };
  EXPECT_EQ(status(JoinedStatus::kWorst), TraceStatus::kFailed);
  EXPECT_EQ(status(JoinedStatus::kLast), TraceStatus::kCompleted);
}

TEST(TraceParts, TypesAreOfTheFirstPartWithAccelerators) {
  TracePart server = part("a", {0, 0, 10}, 0);
  server.job.types = "CPU";
  TracePart worker = part("a", {0, 0, 10}, 2);
  worker.job.types = "T4";
  EXPECT_EQ(join_trace_parts({server, worker}, JoinedStatus::kWorst).front().types, "T4");
}

TEST(TraceParts, ThousandthsHaveABound) {
  TraceJob job;
  EXPECT_TRUE(set_thousandths(job, 0));
  EXPECT_EQ(job.accelerators, 0u);
  EXPECT_EQ(job.share, 1000);
  EXPECT_TRUE(set_thousandths(job, std::uint64_t{kTraceAcceleratorsMax} * 1000));
  EXPECT_EQ(job.accelerators, kTraceAcceleratorsMax);
  EXPECT_FALSE(set_thousandths(job, std::uint64_t{kTraceAcceleratorsMax} * 1000 + 1));
}

}  // namespace
}  // namespace orrery
