#include "executor/log/waiting_batches.hpp"

#include <gtest/gtest.h>

#include "base/set_time_test.hpp"

namespace orrery {
namespace {

class WaitingBatchesTest : public ::testing::Test {
 protected:
  SetTime clock_;
  TimeHistogram times_{{1, 10}};
  WaitingBatches waiting_{clock_, times_};
};

TEST_F(WaitingBatchesTest, ABatchHoldsTheInputsUpToItsLast) {
  waiting_.submit(1, 1);
  waiting_.submit(2, 2);
  waiting_.submit(2, 4);
  waiting_.submit(3, 5);
  EXPECT_EQ(waiting_.durable(0), 0U);
  EXPECT_EQ(waiting_.durable(2), 4U);
  EXPECT_EQ(waiting_.durable(2), 0U) << "nothing is new";
  EXPECT_EQ(waiting_.durable(3), 5U);
}

TEST_F(WaitingBatchesTest, TheTimeCountsFromTheFirstInputOfABatch) {
  waiting_.submit(1, 1);
  clock_.now = clock_.now + Duration::seconds(5);
  waiting_.submit(1, 2);
  EXPECT_EQ(waiting_.durable(1), 2U);
  EXPECT_EQ(times_.up_to(0), 0U);
  EXPECT_EQ(times_.up_to(1), 1U);
}

}  // namespace
}  // namespace orrery
