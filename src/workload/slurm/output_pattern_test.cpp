#include "workload/slurm/output_pattern.hpp"

#include <gtest/gtest.h>

#include <array>

namespace orrery {
namespace {

const std::array kOfJob{PatternValue{'j', "12"}, PatternValue{'x', "a%tb"}, PatternValue{'a', "3"}};
const std::array kOfRank{PatternValue{'t', "7"}, PatternValue{'N', "node-1"}};

TEST(OutputPattern, LettersAreReplacedInTwoSteps) {
  const std::string first = with_pattern_values("out/%j_%a-%x.%t.%N.%%j", kOfJob);
  EXPECT_EQ(first, "out/12_3-a%%tb.%t.%N.%%j");
  EXPECT_EQ(output_file_name(first, kOfRank), "out/12_3-a%tb.7.node-1.%j");
}

TEST(OutputPattern, NumbersArePaddedToTheWidth) {
  EXPECT_EQ(output_file_name(with_pattern_values("%4j-%3t-%3x", kOfJob), kOfRank), "0012-007-a%tb");
}

TEST(OutputPattern, AnUnknownLetterIsNamedWithTheKnownOnes) {
  EXPECT_EQ(output_pattern_complaint("a%%b%j/%10t"), "");
  EXPECT_NE(output_pattern_complaint("a%q").find("\"%q\" is no pattern, expected %j"),
            std::string::npos);
  EXPECT_NE(output_pattern_complaint("a%"), "");
  EXPECT_NE(output_pattern_complaint("a%1000j"), "");
  EXPECT_NE(output_pattern_complaint("logs/"), "");
}

TEST(OutputPattern, OnlyThePatternOfTheRankNamesEachRank) {
  EXPECT_TRUE(names_each_rank("%j.%2t"));
  EXPECT_FALSE(names_each_rank("%j.%%t.%N"));
}

}  // namespace
}  // namespace orrery
