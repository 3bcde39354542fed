#include "twin/outages/silent_nodes.hpp"

#include <gtest/gtest.h>

#include "twin/world/faulty_world_test.hpp"

namespace orrery {
namespace {

class SilentNodesTest : public FaultyWorldTest {};

TEST_F(SilentNodesTest, WhatAJobLeftOnASilentNodeEndsWithItsLeaseWhenTheJobHasEnded) {
  add(200, 16);
  add(3000, 8);
  strike(100, FaultKind::kHost, NodeId(0), {.detection = kMinute, .repair = kMinute * 60});
  play();
  EXPECT_EQ(jobs_[0].phase, JobPhase::kFinished);
  EXPECT_LT(end_of(0), 100 + 600) << "before the lease";
  EXPECT_EQ(jobs_[1].phase, JobPhase::kFinished);
}

}  // namespace
}  // namespace orrery
