// base/error_test.cpp - how errors read.
#include "base/error.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Result<int> failing() { return input_error({"fleet.yaml", 3, 7}, "no such type"); }

Result<std::string> passing_on() {
  Result<int> inner = failing();
  if (!inner) return forward_error(inner);
  return std::string("unreached");
}

TEST(Error, BeginsWithTheBestPositionItHas) {
  EXPECT_EQ((Error{ErrorKind::kInput, "bad", {"a.yaml", 2, 5}}.text()), "a.yaml:2:5: bad");
  EXPECT_EQ((Error{ErrorKind::kInput, "bad", {"a.yaml", 0, 0}}.text()), "a.yaml: bad");
  EXPECT_EQ((Error{ErrorKind::kInput, "bad", {}}.text()), "bad");
  EXPECT_EQ((Error{ErrorKind::kInput, "bad", {"", 2, 5}}.text()), "bad");
}

TEST(Error, KeepsKindMessageAndPositionWhenPassedOn) {
  const Result<std::string> outer = passing_on();
  ASSERT_FALSE(outer);
  EXPECT_EQ(outer.error().kind, ErrorKind::kInput);
  EXPECT_EQ(outer.error().where, (SourcePosition{"fleet.yaml", 3, 7}));
  EXPECT_EQ(outer.error().text(), "fleet.yaml:3:7: no such type");
}

TEST(Error, TellsInputInfeasibleAndEnvironmentApart) {
  const Status input = input_error({}, "a");
  const Status never = infeasible("b");
  const Status machine = environment_error("c");
  EXPECT_EQ(input.error().kind, ErrorKind::kInput);
  EXPECT_EQ(never.error().kind, ErrorKind::kInfeasible);
  EXPECT_EQ(machine.error().kind, ErrorKind::kEnvironment);
  EXPECT_EQ(never.error().text() + machine.error().text(), "bc");
}

}  // namespace
}  // namespace orrery
