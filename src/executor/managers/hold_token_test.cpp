#include "executor/managers/hold_token.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(HoldToken, IsThatOfItsHoldAndKeyAlone) {
  const HoldKey hold{.id = 12, .epoch = 3};
  const std::string token = hold_token("key", hold);
  EXPECT_EQ(token.substr(0, 11), "pilot-3-12.");
  EXPECT_EQ(token.size(), 11 + 64u);
  EXPECT_EQ(hold_of_token("key", token), hold);
  EXPECT_FALSE(hold_of_token("other", token));
  EXPECT_FALSE(hold_of_token("key", "pilot-3-13" + token.substr(10)));
  EXPECT_FALSE(hold_of_token("key", token + "0"));
  EXPECT_FALSE(hold_of_token("key", token.substr(0, 40)));
  EXPECT_FALSE(hold_of_token("key", "pilot-3-12"));
  EXPECT_FALSE(hold_of_token("key", ""));
}

}  // namespace
}  // namespace orrery
