// control/state/running_list_test.cpp
#include "control/state/running_list.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

RunningList of(std::uint32_t jobs) {
  RunningList list;
  for (std::uint32_t i = 0; i < jobs; ++i) list.add().id = JobId::at(i);
  return list;
}

std::vector<std::uint64_t> counts(const RunningList& list) {
  return {list.changes().begin(), list.changes().end()};
}

TEST(RunningList, CountsAnEditInItsBlockAlone) {
  RunningList list = of(3 * kRunningBlock);
  std::vector<std::uint64_t> expected = counts(list);
  ASSERT_EQ(expected.size(), 3);
  list.edit(kRunningBlock).done = 0.5;
  ++expected[1];
  EXPECT_EQ(counts(list), expected);
}

TEST(RunningList, CountsBothPositionsWhereTheLastTakesThePlaceOfOneThatLeft) {
  RunningList list = of(2 * kRunningBlock + 1);
  const std::vector<std::uint64_t> before = counts(list);
  list.remove(1);
  EXPECT_EQ(list.size(), 2 * kRunningBlock);
  EXPECT_EQ(list[1].id, JobId::at(2 * kRunningBlock));
  const std::vector<std::uint64_t> after = counts(list);
  EXPECT_GT(after[0], before[0]);
  EXPECT_EQ(after[1], before[1]);
  EXPECT_GT(after[2], before[2]);
}

TEST(RunningList, CountsNeverGoBack) {
  RunningList list = of(kRunningBlock + 1);
  list.remove(kRunningBlock);
  const std::uint64_t emptied = list.changes()[1];
  list.add();
  EXPECT_GT(list.changes()[1], emptied);
}

}  // namespace
}  // namespace orrery
