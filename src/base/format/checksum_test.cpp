#include "base/format/checksum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <string>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

std::string any_bytes(std::size_t size, Rng& rng) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(rng.below(256));
  return bytes;
}

TEST(Checksum, IsTheSameOnEveryMachine) {
  EXPECT_EQ(checksum("", 0), 0xe67284c6b828a7f3);
  EXPECT_EQ(checksum("a", 0), 0xf1f6adaf29988760);
  EXPECT_EQ(checksum("0123456789abcdef", 0), 0xea783017770fd607);
  EXPECT_EQ(checksum("the quick brown fox jumps over the lazy dog", 1), 0xbb715cc4a2a687c0);
}

TEST(Checksum, OfABlockIsTheSameOnEveryMachineAndChangesWithEveryBit) {
  Rng rng(3);
  std::string bytes = any_bytes(200, rng);
  const std::uint64_t before = block_checksum(bytes);
  EXPECT_EQ(before, 2507260139440584552u);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(block_checksum(bytes), before);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
  }
  std::rotate(bytes.begin(), bytes.begin() + 16, bytes.begin() + 64);
  EXPECT_NE(block_checksum(bytes), before) << "the chains are not alike";
  EXPECT_NE(block_checksum(std::string(64, '\0')), block_checksum(std::string(128, '\0')));
}

TEST(Checksum, OfOnePartCoversAllPartsBefore) {
  const std::uint64_t one = checksum("one", 0);
  EXPECT_NE(checksum("two", one), checksum("two", checksum("One", 0)));
  EXPECT_NE(checksum("two", one), checksum("onetwo", 0)) << "where parts end counts";
}

TEST(Checksum, CountsZerosAtTheEnd) {
  std::set<std::uint64_t> seen;
  for (std::size_t size = 0; size < 100; ++size) seen.insert(checksum(std::string(size, '\0'), 0));
  EXPECT_EQ(seen.size(), 100u);
}

TEST(Checksum, ReadsItsBytesWhereverTheyLie) {
  Rng rng(1);
  const std::string bytes = any_bytes(100, rng);
  for (std::size_t shift = 1; shift < 16; ++shift) {
    const std::string moved = std::string(shift, 'x') + bytes;
    EXPECT_EQ(checksum(std::string_view(moved).substr(shift), 7), checksum(bytes, 7));
  }
}

/// How often each bit of the checksum changes with one bit of what it is of.
TEST(Checksum, ChangesHalfOfItsBitsWithEveryBit) {
  constexpr int kTexts = 200;
  Rng rng(2);
  for (const std::size_t size : {1u, 8u, 15u, 16u, 17u, 40u}) {
    for (std::size_t bit = 0; bit < 8 * size + 64; bit += 1 + size / 8) {
      int changed = 0;
      for (int text = 0; text < kTexts; ++text) {
        std::string bytes = any_bytes(size, rng);
        std::uint64_t before = rng.next_u64();
        const std::uint64_t was = checksum(bytes, before);
        if (bit < 8 * size) {
          bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
        } else {
          before ^= std::uint64_t{1} << (bit - 8 * size);
        }
        changed += std::popcount(was ^ checksum(bytes, before));
      }
      // 12,800 bits that change with even odds: six standard deviations are 340.
      EXPECT_NEAR(changed, 32 * kTexts, 340) << "bit " << bit << " of " << size << " bytes";
    }
  }
}

TEST(Checksum, EveryOutputBitDependsOnEveryInputBit) {
  Rng rng(3);
  for (std::size_t bit = 0; bit < std::size_t{8} * 24; ++bit) {
    std::uint64_t ever = 0;
    for (int text = 0; text < 64; ++text) {
      std::string bytes = any_bytes(24, rng);
      const std::uint64_t was = checksum(bytes, 0);
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
      ever |= was ^ checksum(bytes, 0);
    }
    EXPECT_EQ(ever, ~std::uint64_t{0}) << "input bit " << bit;
  }
}

TEST(Checksum, OfManyShortTextsAreAllDifferent) {
  std::set<std::uint64_t> seen;
  constexpr std::uint32_t kTexts = 20'000;
  for (std::uint32_t i = 0; i < kTexts; ++i) seen.insert(checksum(std::to_string(i), 0));
  EXPECT_EQ(seen.size(), kTexts);
}

}  // namespace
}  // namespace orrery
