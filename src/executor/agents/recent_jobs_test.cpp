#include "executor/agents/recent_jobs.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(RecentJobs, TheJobWithoutAReportForTheLongestTimeIsDropped) {
  RecentJobs<int> jobs(2);
  jobs.reported(JobId(0)) = 10;
  jobs.reported(JobId(1)) = 11;
  EXPECT_EQ(jobs.reported(JobId(0)), 10) << "a long job is still reported on";
  jobs.reported(JobId(2)) = 12;
  ASSERT_NE(jobs.find(JobId(0)), nullptr);
  EXPECT_EQ(*jobs.find(JobId(0)), 10);
  EXPECT_EQ(jobs.find(JobId(1)), nullptr);
  ASSERT_NE(jobs.find(JobId(2)), nullptr);
  EXPECT_EQ(*jobs.find(JobId(2)), 12);
  EXPECT_EQ(jobs.reported(JobId(1)), 0) << "it begins anew";
  EXPECT_EQ(jobs.find(JobId(0)), nullptr);
}

TEST(RecentJobs, AreForgottenTogether) {
  RecentJobs<int> jobs(1);
  jobs.reported(JobId(0)) = 10;
  jobs.clear();
  EXPECT_EQ(jobs.find(JobId(0)), nullptr);
  jobs.reported(JobId(1)) = 11;
  EXPECT_EQ(*jobs.find(JobId(1)), 11);
}

}  // namespace
}  // namespace orrery
