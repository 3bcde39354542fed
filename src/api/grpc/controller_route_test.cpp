// api/grpc/controller_route_test.cpp - the order in which a caller tries several controllers.
#include "api/grpc/controller_route.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

using Addresses = std::vector<std::string>;

TEST(ControllerRoute, TriesEachAddressOnceInOrderThenTheRoundIsOver) {
  ControllerRoute route({"a:1", "b:1", "a:1", "c:1"});
  EXPECT_EQ(route.addresses(), (Addresses{"a:1", "b:1", "c:1"}));
  EXPECT_EQ(route.address(), "a:1");
  EXPECT_TRUE(route.move_on(""));
  EXPECT_EQ(route.address(), "b:1");
  EXPECT_TRUE(route.move_on(""));
  EXPECT_EQ(route.address(), "c:1");
  EXPECT_FALSE(route.move_on(""));
  EXPECT_EQ(route.address(), "a:1") << "the next round begins after the last one tried";
  route.begin_round();
  EXPECT_TRUE(route.move_on(""));
  EXPECT_EQ(route.address(), "b:1");
}

TEST(ControllerRoute, ANamedLeaderIsNextAndBecomesKnown) {
  ControllerRoute route({"a:1", "b:1", "c:1"});
  EXPECT_TRUE(route.move_on("c:1"));
  EXPECT_EQ(route.address(), "c:1");
  EXPECT_TRUE(route.move_on("d:1"));
  EXPECT_EQ(route.address(), "d:1");
  EXPECT_EQ(route.addresses(), (Addresses{"a:1", "b:1", "c:1", "d:1"}));
  EXPECT_TRUE(route.move_on(""));
  EXPECT_EQ(route.address(), "b:1") << "those that were not tried";
  EXPECT_FALSE(route.move_on(""));
}

TEST(ControllerRoute, StandbysThatNameEachOtherEndTheRound) {
  ControllerRoute route({"a:1", "b:1"});
  EXPECT_TRUE(route.move_on("b:1"));
  EXPECT_FALSE(route.move_on("a:1"));
  EXPECT_EQ(route.address(), "a:1") << "the named leader begins the next round";
}

TEST(ControllerRoute, ARoundEndsWhateverIsNamed) {
  ControllerRoute route({"a:1"});
  int tried = 1;
  for (int i = 0; route.move_on(fmt::format("b:{}", i)); ++i) ++tried;
  EXPECT_EQ(tried, 32);
}

}  // namespace
}  // namespace orrery
