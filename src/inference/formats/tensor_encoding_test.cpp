#include "inference/formats/tensor_encoding.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "inference/formats/model_writer_test.hpp"

namespace orrery {
namespace {

std::vector<float> decoded(TensorEncoding encoding, const std::string& bytes) {
  const EncodingBlock& block = block_of(encoding);
  std::vector<float> floats(bytes.size() / block.bytes * block.weights);
  decode_weights(encoding, bytes, floats);
  return floats;
}

/// Numbers below `limit`.
std::vector<unsigned> draw(Rng& rng, std::size_t count, std::uint64_t limit) {
  std::vector<unsigned> numbers(count);
  for (unsigned& number : numbers) number = static_cast<unsigned>(rng.below(limit));
  return numbers;
}

constexpr float kScale = 0.25F;
constexpr float kLeast = 0.75F;

TEST(TensorEncoding, EachHalfHasTheValueOfItsBits) {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const int exponent = static_cast<int>(half >> 10 & 0x1F);
    const double fraction = half & 0x3FF;
    double value =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31) {
      value = fraction == 0 ? std::numeric_limits<double>::infinity()
                            : std::numeric_limits<double>::quiet_NaN();
    }
    const float found = float_of_half(static_cast<std::uint16_t>(half));
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(found)) << half;
      continue;
    }
    ASSERT_EQ(found, static_cast<float>(half >= 0x8000 ? -value : value)) << half;
    ASSERT_EQ(std::signbit(found), half >= 0x8000) << half;
  }
}

TEST(TensorEncoding, FloatsOfEachTypeAreReadBack) {
  const std::vector<float> weights{0, 1, -1, 0.03125F, -2.5F, 3.96875F};
  for (const TensorEncoding encoding :
       {TensorEncoding::kF32, TensorEncoding::kF16, TensorEncoding::kBf16}) {
    EXPECT_EQ(decoded(encoding, float_bytes(encoding, weights)), weights)
        << block_of(encoding).name;
  }
}

TEST(TensorEncoding, BlocksOfBytesHaveAScale) {
  std::string block = little_endian(half_of(kScale));
  std::vector<float> expected;
  for (int i = 0; i < 32; ++i) {
    block += static_cast<char>(8 * i - 128);
    expected.push_back(static_cast<float>(8 * i - 128) * kScale);
  }
  EXPECT_EQ(decoded(TensorEncoding::kQ8_0, block), expected);
}

TEST(TensorEncoding, BlocksOfFourBitsHaveTheirSecondHalfInTheHighBits) {
  Rng rng(1);
  const std::vector<unsigned> bits = draw(rng, 32, 16);
  std::string packed;
  std::vector<float> less_8;
  std::vector<float> above_least;
  for (std::size_t i = 0; i < 16; ++i) packed += static_cast<char>(bits[i] | bits[i + 16] << 4);
  for (const unsigned each : bits) {
    less_8.push_back((static_cast<float>(each) - 8) * kScale);
    above_least.push_back(static_cast<float>(each) * kScale + kLeast);
  }
  const std::string scale = little_endian(half_of(kScale));
  EXPECT_EQ(decoded(TensorEncoding::kQ4_0, scale + packed), less_8);
  EXPECT_EQ(decoded(TensorEncoding::kQ4_1, scale + little_endian(half_of(kLeast)) + packed),
            above_least);
}

TEST(TensorEncoding, BlocksOfFiveBitsHaveTheirTopBitsInAWord) {
  Rng rng(4);
  const std::vector<unsigned> bits = draw(rng, 32, 32);
  std::uint32_t tops = 0;
  std::string packed;
  std::vector<float> less_16;
  std::vector<float> above_least;
  for (std::size_t i = 0; i < 32; ++i) {
    tops |= std::uint32_t{bits[i] >> 4} << i;
    less_16.push_back((static_cast<float>(bits[i]) - 16) * kScale);
    above_least.push_back(static_cast<float>(bits[i]) * kScale + kLeast);
  }
  for (std::size_t i = 0; i < 16; ++i) {
    packed += static_cast<char>((bits[i] & 15) | (bits[i + 16] & 15) << 4);
  }
  const std::string scale = little_endian(half_of(kScale));
  packed = little_endian(tops) + packed;
  EXPECT_EQ(decoded(TensorEncoding::kQ5_0, scale + packed), less_16);
  EXPECT_EQ(decoded(TensorEncoding::kQ5_1, scale + little_endian(half_of(kLeast)) + packed),
            above_least);
}

/// The parts of a large block of 4 or 5 bits.
struct PartsForTest {
  explicit PartsForTest(Rng& rng, std::uint64_t limit)
      : bits(draw(rng, 256, limit)), scales(draw(rng, 8, 64)), leasts(draw(rng, 8, 64)) {}

  /// The block's scales: the upper four parts have their low bits in the last bytes, their top bits
  /// above the lower four.
  [[nodiscard]] std::string head() const {
    std::string bytes = little_endian(half_of(kScale)) + little_endian(half_of(kLeast));
    for (const auto* each : {&scales, &leasts}) {
      for (std::size_t i = 0; i < 4; ++i) {
        bytes += static_cast<char>((*each)[i] | (*each)[i + 4] >> 4 << 6);
      }
    }
    for (std::size_t i = 4; i < 8; ++i) {
      bytes += static_cast<char>((scales[i] & 15) | (leasts[i] & 15) << 4);
    }
    return bytes;
  }
  [[nodiscard]] std::string low_bits() const {
    std::string bytes;
    for (std::size_t pair = 0; pair < 4; ++pair) {
      for (std::size_t i = 0; i < 32; ++i) {
        bytes +=
            static_cast<char>((bits[64 * pair + i] & 15) | (bits[64 * pair + 32 + i] & 15) << 4);
      }
    }
    return bytes;
  }
  [[nodiscard]] std::vector<float> weights() const {
    std::vector<float> weights;
    weights.reserve(256);
    for (std::size_t i = 0; i < 256; ++i) {
      weights.push_back(kScale * static_cast<float>(scales[i / 32] * bits[i]) -
                        kLeast * static_cast<float>(leasts[i / 32]));
    }
    return weights;
  }

  std::vector<unsigned> bits;
  std::vector<unsigned> scales;
  std::vector<unsigned> leasts;
};

TEST(TensorEncoding, LargeBlocksHaveAScaleForEachPart) {
  Rng rng(2);
  const PartsForTest four(rng, 16);
  EXPECT_EQ(decoded(TensorEncoding::kQ4_K, four.head() + four.low_bits()), four.weights());
  const PartsForTest five(rng, 32);
  std::string tops(32, '\0');
  for (std::size_t i = 0; i < 256; ++i) {
    const unsigned top = five.bits[i] >> 4 << i / 32;
    tops[i % 32] = static_cast<char>(static_cast<unsigned char>(tops[i % 32]) | top);
  }
  EXPECT_EQ(decoded(TensorEncoding::kQ5_K, five.head() + tops + five.low_bits()), five.weights());
}

TEST(TensorEncoding, LargeBlocksOfSixBitsHaveTheirTopBitsApart) {
  Rng rng(3);
  const std::vector<unsigned> bits = draw(rng, 256, 64);
  const std::vector<unsigned> scales = draw(rng, 16, 256);
  std::string block(208, '\0');
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t half = i / 128;
    const std::size_t column = i % 128 / 32;
    const std::size_t low = 64 * half + 32 * (column % 2) + i % 32;
    const std::size_t top = 128 + 32 * half + i % 32;
    const auto put = [&](std::size_t at, unsigned value) {
      block[at] = static_cast<char>(static_cast<unsigned char>(block[at]) | value);
    };
    put(low, (bits[i] & 15) << (column < 2 ? 0 : 4));
    put(top, bits[i] >> 4 << (2 * column));
  }
  for (std::size_t i = 0; i < 16; ++i) block[192 + i] = static_cast<char>(scales[i]);
  block += little_endian(half_of(kScale));
  std::vector<float> expected;
  for (std::size_t i = 0; i < 256; ++i) {
    const int scale = scales[i / 16] < 128 ? static_cast<int>(scales[i / 16])
                                           : static_cast<int>(scales[i / 16]) - 256;
    expected.push_back(kScale * static_cast<float>(scale * (static_cast<int>(bits[i]) - 32)));
  }
  EXPECT_EQ(decoded(TensorEncoding::kQ6_K, block), expected);
}

TEST(TensorEncoding, RowsAreWholeBlocks) {
  EXPECT_EQ(encoded_bytes(TensorEncoding::kQ4_1, 64, 3), 2U * 3 * 20);
  EXPECT_EQ(encoded_bytes(TensorEncoding::kQ4_1, 63, 3), std::nullopt);
  EXPECT_EQ(encoded_bytes(TensorEncoding::kF32, 5, 0), 0U);
  EXPECT_EQ(encoded_bytes(TensorEncoding::kF32, std::uint64_t{1} << 60, 1 << 20), std::nullopt);
  for (const EncodingBlock& block : all_encodings()) {
    EXPECT_EQ(&block_of(block.encoding), &block) << block.name;
  }
}

}  // namespace
}  // namespace orrery
