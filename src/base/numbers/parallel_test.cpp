#include "base/numbers/parallel.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace orrery {
namespace {

TEST(Parallel, ThreadsVisitEachItemOnce) {
  for (const std::size_t threads : {0u, 1u, 3u, 50u}) {
    std::vector<int> visits(40, 0);
    parallel_each({visits.size(), threads}, [&](std::size_t i) {
      ++visits[i];
      return Onward::kGo;
    });
    EXPECT_EQ(visits, std::vector<int>(40, 1)) << threads;
  }
}

TEST(Parallel, ThreadsTakeNothingMoreAfterAStopButAllBeforeIt) {
  std::vector<int> visits(10'000, 0);
  parallel_each({visits.size(), 4}, [&](std::size_t i) {
    ++visits[i];
    return i == 20 ? Onward::kStop : Onward::kGo;
  });
  for (std::size_t i = 0; i <= 20; ++i) EXPECT_EQ(visits[i], 1) << i;
}

}  // namespace
}  // namespace orrery
