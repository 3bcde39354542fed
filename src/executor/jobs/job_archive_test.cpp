#include "executor/jobs/job_archive.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

constexpr Duration kDay = Duration::hours(24);

TEST(JobArchive, AnEndIsDueAfterItsTimeAndWhoStayedAMinuteLater) {
  JobArchive archive;
  EXPECT_EQ(archive.next_due(kDay), Instant::max());
  const Instant end = Instant::from_ns(5);
  archive.on_end(end, JobId(1));
  archive.on_end(end + kDay, JobId(2));
  EXPECT_EQ(archive.next_due(kDay), end + kDay);
  EXPECT_EQ(archive.next_due({}), end);
  // Even with the shortest time, jobs that stayed are handed out again only after a pause.
  archive.on_stayed(end, JobId(3));
  EXPECT_EQ(archive.next_due(kDay), end + Duration::minutes(1));
  JobArchive other;
  other.on_stayed(end, JobId(3));
  EXPECT_EQ(other.next_due({}), end + Duration::minutes(1));
}

}  // namespace
}  // namespace orrery
