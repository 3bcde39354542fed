#include "base/text/count_text.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(CountText, NumbersAreGroupedAndNounsAgreeWithThem) {
  EXPECT_EQ(counted(0, "job"), "0 jobs");
  EXPECT_EQ(counted(1, "job"), "1 job");
  EXPECT_EQ(counted(1'064, "job"), "1,064 jobs");
  EXPECT_EQ(counted(738'197'504, "byte"), "738,197,504 bytes");
}

}  // namespace
}  // namespace orrery
