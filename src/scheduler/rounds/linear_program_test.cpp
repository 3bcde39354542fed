#include "scheduler/rounds/linear_program.hpp"

#include <gtest/gtest.h>

#include <array>

namespace orrery {
namespace {

using Term = LinearProgram::Term;

TEST(LinearProgram, FindsTheVertexWithTheGreatestSum) {
  // A textbook example: 3x + 5y, x <= 4, 2y <= 12, 3x + 2y <= 18 gives 36 at (2, 6).
  LinearProgram program;
  const std::uint32_t x = program.add_column(3);
  const std::uint32_t y = program.add_column(5);
  program.add_row(std::array{Term{x, 1}}, 4);
  program.add_row(std::array{Term{y, 2}}, 12);
  program.add_row(std::array{Term{x, 3}, Term{y, 2}}, 18);
  const std::optional<std::vector<double>> found = program.solve();
  ASSERT_TRUE(found);
  EXPECT_NEAR((*found)[x], 2, 1e-9);
  EXPECT_NEAR((*found)[y], 6, 1e-9);
}

TEST(LinearProgram, HasNoSolutionWithoutABound) {
  LinearProgram program;
  const std::uint32_t x = program.add_column(1);
  const std::uint32_t y = program.add_column(0);
  program.add_row(std::array{Term{x, 1}, Term{y, -1}}, 1);
  EXPECT_FALSE(program.solve());
}

TEST(LinearProgram, NothingIsFoundAtOnceAndValuesThatGainNothingAreZero) {
  EXPECT_EQ(LinearProgram().solve(), std::vector<double>{});
  LinearProgram program;
  const std::uint32_t x = program.add_column(0);
  program.add_row(std::array{Term{x, 1}}, 1);
  EXPECT_EQ(program.solve(), std::vector<double>{0});
}

}  // namespace
}  // namespace orrery
