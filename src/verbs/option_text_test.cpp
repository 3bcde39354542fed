#include "verbs/option_text.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"
#include "twin/information.hpp"

namespace orrery {
namespace {

TEST(Pieces, AreOneMoreThanCommasAndMayBeEmpty) {
  EXPECT_EQ(pieces("a"), std::vector<std::string>{"a"});
  EXPECT_EQ(pieces("a,b"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(pieces("a,,b,"), (std::vector<std::string>{"a", "", "b", ""}));
  EXPECT_EQ(pieces(""), std::vector<std::string>{""});
}

TEST(Pieces, JoinedWithCommasAreTheList) {
  constexpr std::uint64_t kSeed = 7;
  Rng rng(kSeed);
  for (int round = 0; round < 200; ++round) {
    std::string list;
    for (std::uint64_t length = rng.below(12); length > 0; --length) {
      list += rng.below(3) == 0 ? ',' : static_cast<char>('a' + rng.below(26));
    }
    std::string joined;
    for (const std::string& piece : pieces(list)) {
      EXPECT_EQ(piece.find(','), std::string::npos) << list;
      joined += "," + piece;
    }
    EXPECT_EQ(joined, "," + list) << "seed " << kSeed << ", round " << round;
  }
}

TEST(WordOption, TakesExactWordsAndNamesTheOthers) {
  const Result<Information> known = word_option<Information>("information", "blind");
  ASSERT_TRUE(known);
  EXPECT_EQ(*known, Information::kBlind);
  const Result<Information> near = word_option<Information>("information", "estimat");
  ASSERT_FALSE(near);
  EXPECT_EQ(near.error().kind, ErrorKind::kInput);
  EXPECT_EQ(near.error().text(),
            "--information: \"estimat\" is none of oracle, estimate, blind, did you mean "
            "\"estimate\"?");
  EXPECT_FALSE(word_option<Information>("information", "Oracle"));
  EXPECT_FALSE(word_option<Information>("information", ""));
}

template <class Q>
std::string refusal(const std::string& text) {
  const Result<Q> read = quantity_option<Q>("x", text);
  return read ? "accepted" : read.error().text();
}

TEST(QuantityOption, NeedsAUnitUnlessItCountsDollarsOrTokens) {
  EXPECT_DOUBLE_EQ(quantity_option<Seconds>("x", "2 min")->value(), 120);
  EXPECT_DOUBLE_EQ(quantity_option<Watts>("x", "400 kW")->value(), 4e5);
  EXPECT_DOUBLE_EQ(quantity_option<Dollars>("x", "5000")->value(), 5000);
  EXPECT_DOUBLE_EQ(quantity_option<Dollars>("x", "$5,000")->value(), 5000);
  EXPECT_DOUBLE_EQ(quantity_option<Tokens>("x", "2e12")->value(), 2e12);
  EXPECT_NE(refusal<Seconds>("120"), "accepted");
  EXPECT_NE(refusal<Watts>("3 s"), "accepted");
  EXPECT_EQ(refusal<Seconds>("").substr(0, 5), "--x: ");
}

TEST(QuantityOption, IsMoreThanZeroAndFinite) {
  EXPECT_EQ(refusal<Seconds>("0 s"), "--x: 0 s: expected more than 0");
  EXPECT_EQ(refusal<Dollars>("0"), "--x: 0: expected more than 0");
  EXPECT_EQ(refusal<Dollars>("-3"), "--x: -3: expected more than 0");
  EXPECT_EQ(refusal<Tokens>("nan"), "--x: nan: expected more than 0");
  EXPECT_EQ(refusal<Dollars>("inf"), "--x: inf: expected more than 0");
}

}  // namespace
}  // namespace orrery
