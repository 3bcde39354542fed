#include "base/format/xxh3.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace orrery {
namespace {

TEST(Xxh3, IsThePublishedHash) {
  // The value of the empty input under seed 0, as stated by the reference implementation.
  EXPECT_EQ(xxh3(""), 0x2d06800538d394c2U);
  EXPECT_EQ(xxh3("", 0), xxh3(""));
}

TEST(Xxh3, ChangesWithEveryBitAndWithWhatCameBefore) {
  std::string bytes(300, 'a');
  std::set<std::uint64_t> seen{xxh3(bytes)};
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_TRUE(seen.insert(xxh3(bytes)).second) << bit;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
  }
  EXPECT_NE(xxh3("two", xxh3("one")), xxh3("two", xxh3("One")));
  EXPECT_NE(xxh3("two", xxh3("one")), xxh3("onetwo"));
}

}  // namespace
}  // namespace orrery
