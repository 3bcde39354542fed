#include "inference/engine/packed_linear.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

constexpr WeightFormat kFormats[] = {WeightFormat::kF32, WeightFormat::kBf16, WeightFormat::kInt8};

std::vector<float> random_floats(std::size_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> floats(count);
  for (float& each : floats) each = static_cast<float>(rng.uniform() * 2 - 1);
  return floats;
}

AlignedBytes row_room(std::int64_t rows, std::int64_t inner) {
  return AlignedBytes(static_cast<std::size_t>(PanelProduct::row_room_of(rows, inner)));
}

struct Place {
  std::size_t row;
  std::size_t column;
};

/// The product as written, summed in doubles.
double plain(const std::vector<float>& parameters, const LinearParameters& linear,
             const std::vector<float>& x, const Place& place) {
  const auto in = static_cast<std::size_t>(linear.in);
  const auto out = static_cast<std::size_t>(linear.out);
  double sum = linear.bias ? static_cast<double>(parameters[*linear.bias + place.column]) : 0;
  for (std::size_t k = 0; k < in; ++k) {
    const std::size_t at = linear.storage == LinearParameters::Storage::kInOut
                               ? k * out + place.column
                               : place.column * in + k;
    sum += static_cast<double>(x[place.row * in + k]) *
           static_cast<double>(parameters[linear.weight + at]);
  }
  return sum;
}

TEST(PackedLinear, ProductsAreRightInBothStorageOrders) {
  for (const auto storage :
       {LinearParameters::Storage::kInOut, LinearParameters::Storage::kOutIn}) {
    for (const std::int64_t out : {1, 16, 19, 64, 100}) {
      const LinearParameters linear{
          .in = 37, .out = out, .storage = storage, .weight = 3, .bias = 5'000};
      const std::vector<float> parameters = random_floats(6'000, 1);
      const std::vector<float> x = random_floats(9 * 37, 2);
      std::vector<float> result(9 * static_cast<std::size_t>(out));
      PackedLinear(parameters, linear)
          .multiply(decode_kernels(), {.x = x.data(), .out = result.data(), .rows = 9});
      for (std::size_t i = 0; i < result.size(); ++i) {
        const auto columns = static_cast<std::size_t>(out);
        EXPECT_NEAR(static_cast<double>(result[i]),
                    plain(parameters, linear, x, {i / columns, i % columns}), 1e-5);
      }
    }
  }
}

TEST(PackedLinear, ARowDoesNotDependOnTheOthersOrOnTheVectorUnit) {
  constexpr std::int64_t kRows = 45;
  const LinearParameters linear{.in = 200, .out = 150};
  const std::vector<float> parameters = random_floats(200 * 150, 1);
  const std::vector<float> x = random_floats(kRows * 200, 2);
  const std::vector<float> residual = random_floats(kRows * 150, 3);
  AlignedBytes room = row_room(kRows, 200);
  for (const WeightFormat format : kFormats) {
    const PackedLinear packed(parameters, linear, format);
    std::vector<float> all(kRows * 150);
    packed.multiply(*decode_kernels_of("baseline"), {.x = x.data(),
                                                     .room = room.data(),
                                                     .residual = residual.data(),
                                                     .out = all.data(),
                                                     .rows = kRows});
    for (const char* isa : {"baseline", "avx2", "avx512", "avx512vnni", "avx512amx"}) {
      if (decode_kernels_of(isa) == nullptr) continue;
      // Whole and partial tiles of vectors, and of 16 and 32 rows of tile registers.
      for (const std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 23, 32, 33, 45}) {
        const std::int64_t first = kRows - rows;
        std::vector<float> some(residual.begin() + first * 150, residual.end());
        packed.multiply(*decode_kernels_of(isa), {.x = x.data() + first * 200,
                                                  .room = room.data(),
                                                  .residual = some.data(),
                                                  .out = some.data(),
                                                  .rows = rows});
        EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + first * 150))
            << isa << ", " << rows << " rows";
      }
    }
  }
}

TEST(PackedLinear, Bf16ComputesWithTheWeightsRoundedToTheNearestUpperHalf) {
  const LinearParameters linear{.in = 1, .out = 5};
  const std::vector<float> parameters = {1.0F, 1.0F + 0x1p-8F, 1.0F + 3 * 0x1p-8F,
                                         -1.0F - 0x1.8p-8F, 0x1p-51F};
  const std::vector<float> rounded = {1.0F, 1.0F, 1.0F + 0x1p-6F, -1.0F - 0x1p-7F, 0};
  const float x = 1;
  AlignedBytes room = row_room(1, 1);
  std::vector<float> result(5);
  PackedLinear(parameters, linear, WeightFormat::kBf16)
      .multiply(decode_kernels(), {.x = &x, .room = room.data(), .out = result.data(), .rows = 1});
  EXPECT_EQ(result, rounded);
}

TEST(PackedLinear, Int8ErrsByLessThanAHundredthAndLosesNothingOfWhatIsInIntegers) {
  const LinearParameters linear{.in = 70, .out = 19};
  const std::vector<float> x = random_floats(4 * 70, 2);
  AlignedBytes room = row_room(4, 70);
  std::vector<float> parameters = random_floats(70 * 19, 1);
  std::vector<float> result(4 * 19);
  const auto multiply = [&](const std::vector<float>& rows) {
    PackedLinear(parameters, linear, WeightFormat::kInt8)
        .multiply(decode_kernels(),
                  {.x = rows.data(), .room = room.data(), .out = result.data(), .rows = 4});
  };
  multiply(x);
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double exact = plain(parameters, linear, x, {i / 19, i % 19});
    error += (static_cast<double>(result[i]) - exact) * (static_cast<double>(result[i]) - exact);
    size += exact * exact;
  }
  EXPECT_LT(error, 1e-4 * size);

  Rng rng(4);
  std::vector<float> whole(4 * 70);
  for (std::vector<float>* each : {&parameters, &whole}) {
    for (float& value : *each) value = static_cast<float>(rng.below(255)) - 127;
  }
  // Each group of 32 has its greatest value, so that its scale is 1.
  for (std::size_t k = 0; k < 70; k += 32) {
    for (std::size_t column = 0; column < 19; ++column) parameters[k * 19 + column] = -127;
    for (std::size_t row = 0; row < 4; ++row) whole[row * 70 + k] = 127;
  }
  multiply(whole);
  for (std::size_t i = 0; i < result.size(); ++i) {
    EXPECT_EQ(static_cast<double>(result[i]), plain(parameters, linear, whole, {i / 19, i % 19}));
  }
}

TEST(PackedLinear, RowsOfZerosOrOfWhatIsTooSmallGiveZeros) {
  const LinearParameters linear{.in = 64, .out = 16};
  const std::vector<float> parameters = random_floats(64 * 16, 1);
  std::vector<float> x(2 * 64);
  std::fill(x.begin() + 64, x.end(), 1e-40F);
  AlignedBytes room = row_room(2, 64);
  std::vector<float> result(2 * 16, 1.0F);
  PackedLinear(parameters, linear, WeightFormat::kInt8)
      .multiply(decode_kernels(),
                {.x = x.data(), .room = room.data(), .out = result.data(), .rows = 2});
  EXPECT_EQ(result, std::vector<float>(2 * 16));
}

}  // namespace
}  // namespace orrery
