#include "tests/end_to_end/job_history.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

CallTime during(int begin, int end) {
  return {Instant() + Duration::seconds(begin), Instant() + Duration::seconds(end)};
}

class JobHistoryTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> wrong() const {
    return history_.contradictions({{"a", 0}, {"b", 1}, {"c", 2}});
  }
  JobHistory history_;
};

using Wrong = std::vector<std::string>;

TEST_F(JobHistoryTest, CallsAtOneTimeMayBeInAnyOrder) {
  history_.made("a", JobSeen::kQueued, during(1, 10));
  history_.saw("a", {0, JobSeen::kQueued}, during(2, 3));
  history_.saw("a", {0, JobSeen::kAbsent}, during(2, 4));
  history_.made("a", JobSeen::kCancelled, during(11, 20));
  history_.saw("a", {0, JobSeen::kQueued}, during(12, 13));
  history_.saw("a", {0, JobSeen::kCancelled}, during(12, 14));
  history_.saw("a", {0, JobSeen::kCancelled}, during(15, 16));
  EXPECT_EQ(wrong(), Wrong{});
}

TEST_F(JobHistoryTest, AnAcknowledgedJobMustBeSeen) {
  history_.made("a", JobSeen::kQueued, during(1, 2));
  history_.saw_page({}, PageRest::kNone, during(3, 4));
  EXPECT_EQ(wrong(), Wrong{"a was queued and was absent later"});
}

TEST_F(JobHistoryTest, WhatOneReaderSawNoLaterOneMissesThoughNothingWasAcknowledged) {
  history_.made("b", JobSeen::kQueued, during(1, 20));
  history_.saw_page({{"b", {1, JobSeen::kQueued}}}, PageRest::kNone, during(2, 3));
  JobHistory other;
  other.saw("b", {1, JobSeen::kAbsent}, during(4, 5));
  history_.add(std::move(other));
  EXPECT_EQ(wrong(), Wrong{"b was queued and was absent later"});
}

TEST_F(JobHistoryTest, ACancelledJobIsNotQueuedAgain) {
  history_.made("a", JobSeen::kQueued, during(1, 2));
  history_.made("a", JobSeen::kCancelled, during(3, 4));
  history_.saw("a", {0, JobSeen::kQueued}, during(5, 6));
  EXPECT_EQ(wrong(), Wrong{"a was cancelled and was queued later"});
}

TEST_F(JobHistoryTest, AJobHasOneNumber) {
  history_.made("a", JobSeen::kQueued, during(1, 2));
  history_.saw("a", {1, JobSeen::kQueued}, during(3, 4));
  EXPECT_EQ(wrong(), Wrong{"a was seen as 1, which is not its number"});
}

TEST_F(JobHistoryTest, NothingIsSeenBeforeItIsAskedFor) {
  history_.made("a", JobSeen::kQueued, during(1, 2));
  history_.saw("a", {0, JobSeen::kCancelled}, during(3, 4));
  history_.made("a", JobSeen::kCancelled, during(5, 6));
  EXPECT_EQ(wrong(), Wrong{"a was cancelled before anybody asked for it"});
}

TEST_F(JobHistoryTest, APageSaysNothingOfJobsBeforeItsOldest) {
  history_.made("a", JobSeen::kQueued, during(1, 2));
  history_.made("b", JobSeen::kQueued, during(1, 2));
  history_.made("c", JobSeen::kQueued, during(1, 2));
  history_.saw_page({{"b", {1, JobSeen::kQueued}}, {"c", {2, JobSeen::kQueued}}}, PageRest::kOlder,
                    during(3, 4));
  EXPECT_EQ(wrong(), Wrong{});
  history_.saw_page({{"b", {1, JobSeen::kQueued}}}, PageRest::kOlder, during(3, 4));
  EXPECT_EQ(wrong(), Wrong{"c was queued and was absent later"});
}

}  // namespace
}  // namespace orrery
