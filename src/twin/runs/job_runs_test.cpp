#include "twin/runs/job_runs.hpp"

#include <gtest/gtest.h>

#include "twin/world/faulty_world_test.hpp"

namespace orrery {
namespace {

class JobRunsTest : public FaultyWorldTest {};

TEST_F(JobRunsTest, AnElasticJobsUnseenStandstillIsCounted) {
  add_elastic(1000, 16);
  strike(105, FaultKind::kAccelerator, DeviceId(3), {.detection = kMinute, .repair = kMinute});
  play();
  EXPECT_EQ(jobs_[0].usage.resizes, 1U);
  EXPECT_EQ(jobs_[0].usage.faults, 0U);
  EXPECT_EQ(end_of(0), 5 + 1000 + 60 + 5);
  // The node that the job leaves is not free until the job is up again.
  EXPECT_NEAR(device_hours(jobs_[0].usage.idle), hours(16 * (5 + 60 + 5) + 8 * 5), 1e-3);
  EXPECT_EQ(jobs_[0].usage.lost, 0);
}

TEST_F(JobRunsTest, AnElasticJobThatShrinksCountsTheStandstillOfAllItHad) {
  add_elastic(1000, 128);
  strike(105, FaultKind::kAccelerator, DeviceId(3), {.detection = kMinute, .repair = kMinute});
  play();
  EXPECT_EQ(jobs_[0].usage.resizes, 1U);
  EXPECT_NEAR(device_hours(jobs_[0].usage.idle), hours(128 * (5 + 60 + 5)), 1e-3);
}

TEST_F(JobRunsTest, AnElasticJobComputesAnewWhatWasCorrupt) {
  add_elastic(1000, 16);
  strike(105, FaultKind::kSdc, DeviceId(3), {.detection = kMinute, .repair = kMinute});
  play();
  EXPECT_EQ(jobs_[0].usage.resizes, 1U);
  EXPECT_EQ(end_of(0), 165 + 5 + 1000) << "it has no copy of before";
  EXPECT_NEAR(device_hours(jobs_[0].usage.lost), hours(16 * 160), 1e-3);
}

TEST_F(JobRunsTest, NothingIsUndoneOfAnUndetectedCorruption) {
  options_.checkpoint_interval = kMinute;
  add(1000, 8);
  strike(105, FaultKind::kSdc, DeviceId(3), {.detection = kMinute * 60, .repair = kMinute});
  commands_ = {{at(305), DrainNode{NodeId(0), true, "test"}, {}}};
  play();
  EXPECT_EQ(jobs_[0].usage.lost, 0);
  EXPECT_EQ(end_of(0), 5 + 1000 + 5);
}

TEST_F(JobRunsTest, AJobThatStartsOnACorruptNodeComputesWronglyToo) {
  add(100, 128);
  add(1000, 128);
  strike(55, FaultKind::kSdc, DeviceId(3), {.detection = kMinute * 5, .repair = kMinute});
  play();
  EXPECT_EQ(end_of(0), 105);
  EXPECT_EQ(jobs_[0].usage.lost, 0) << "it ended before the detection";
  EXPECT_EQ(summary_.corrupt, 1U);
  EXPECT_NEAR(device_hours(jobs_[1].usage.lost), hours(128 * (355 - 110)), 0.1);
}

TEST_F(JobRunsTest, WhatRunsAtTheEndHasSavedAndStood) {
  options_.checkpoint_interval = kMinute;
  options_.checkpoint_cost = Duration::seconds(10);
  add(1000, 128);
  play(at(500));
  EXPECT_NEAR(summary_.goodput, (495 - 7 * 10) / 500.0, 1e-6);
  EXPECT_NEAR(device_hours(jobs_[0].usage.idle), hours(128 * (5 + 70)), 1e-3);
  strike(430, FaultKind::kAccelerator, DeviceId(3), {.detection = kMinute * 60});
  play(at(500));
  EXPECT_NEAR(summary_.goodput, (425 - 6 * 10) / 500.0, 1e-6);
}

}  // namespace
}  // namespace orrery
