// base/text/nearest_name_test.cpp - what is suggested for a mistyped name, and when nothing is.
#include "base/text/nearest_name.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

const std::vector<std::string_view> kGpus = {"a100", "h100",        "h200",
                                             "b200", "gb200-nvl72", "mi300x"};

TEST(NearestName, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("rack", ""), 4u);
  EXPECT_EQ(edit_distance("rack", "racks"), 1u);
  EXPECT_EQ(edit_distance("rack", "rak"), 1u);
  EXPECT_EQ(edit_distance("rack", "rock"), 1u);
  EXPECT_EQ(edit_distance("rack", "rakc"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("H100", "h100"), 0u);
}

TEST(NearestName, IsTheSameDistanceBothWays) {
  Rng rng = Rng::stream(1, "nearest_name");
  const auto word = [&] {
    std::string text(rng.below(9), 'a');
    for (char& c : text) c = static_cast<char>('a' + rng.below(3));
    return text;
  };
  for (int i = 0; i < 20'000; ++i) {
    const std::string a = word();
    const std::string b = word();
    const std::size_t distance = edit_distance(a, b);
    ASSERT_EQ(distance, edit_distance(b, a)) << a << " " << b;
    ASSERT_EQ(distance == 0, a == b);
    ASSERT_LE(distance, std::max(a.size(), b.size()));
  }
}

TEST(NearestName, FindsTheNameThatWasMeant) {
  EXPECT_EQ(nearest_name("mi300", kGpus), "mi300x");
  EXPECT_EQ(nearest_name("GB200-NVL27", kGpus), "gb200-nvl72");
  EXPECT_EQ(did_you_mean("mi30x", kGpus), ", did you mean \"mi300x\"?");
}

TEST(NearestName, TakesTheFirstOfEquallyNearNames) {
  EXPECT_EQ(nearest_name("x100", kGpus), "a100");
}

TEST(NearestName, SuggestsNothingForWhatIsFarFromEverything) {
  EXPECT_EQ(nearest_name("elephant", kGpus), "");
  EXPECT_EQ(nearest_name("", kGpus), "");
  EXPECT_EQ(nearest_name(std::string(65, 'h'), kGpus), "");
  EXPECT_EQ(nearest_name("h100", {}), "");
  EXPECT_EQ(did_you_mean("elephant", kGpus), "");
}

TEST(NearestName, NeverSuggestsANameThatSharesNothing) {
  const std::vector<std::string_view> two = {"ab"};
  EXPECT_EQ(nearest_name("cd", two), "");
}

TEST(NearestName, LowersAsciiLettersOnly) { EXPECT_EQ(lower_case("H100 ÄZ"), "h100 Äz"); }

}  // namespace
}  // namespace orrery
