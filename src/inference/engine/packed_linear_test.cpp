#include "inference/engine/packed_linear.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

std::vector<float> random_floats(std::size_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> floats(count);
  for (float& each : floats) each = static_cast<float>(rng.uniform() * 2 - 1);
  return floats;
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
  const LinearParameters linear{.in = 200, .out = 150};
  const std::vector<float> parameters = random_floats(200 * 150, 1);
  const PackedLinear packed(parameters, linear);
  const std::vector<float> x = random_floats(23 * 200, 2);
  const std::vector<float> residual = random_floats(23 * 150, 3);
  std::vector<float> all(23 * 150);
  packed.multiply(*decode_kernels_of("baseline"),
                  {.x = x.data(), .residual = residual.data(), .out = all.data(), .rows = 23});
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    if (decode_kernels_of(isa) == nullptr) continue;
    for (std::int64_t rows = 1; rows <= 23; ++rows) {
      const std::int64_t first = 23 - rows;
      std::vector<float> some(residual.begin() + first * 150, residual.end());
      packed.multiply(
          *decode_kernels_of(isa),
          {.x = x.data() + first * 200, .residual = some.data(), .out = some.data(), .rows = rows});
      EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + first * 150)) << isa;
    }
  }
}

}  // namespace
}  // namespace orrery
