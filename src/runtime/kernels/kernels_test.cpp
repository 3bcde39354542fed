#include "runtime/kernels/kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

// Rows end in the middle of a vector where the kernel allows it.
constexpr std::int64_t kRows = 5;
constexpr std::int64_t kWidth = 48;
constexpr std::int64_t kOdd = 37;

std::vector<float> random_floats(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  Rng rng(seed);
  for (float& value : values) value = static_cast<float>(8 * rng.uniform() - 4);
  return values;
}

void run_norms(const KernelTable& table, std::vector<float>& bits) {
  const std::vector<float> x = random_floats(kRows * kWidth, 1);
  const std::vector<float> weight = random_floats(kWidth, 2);
  std::vector<float> mean(kRows);
  std::vector<float> inverse(kRows);
  for (const auto norm : {table.layer_norm, table.rms_norm}) {
    std::vector<float> out(x.size());
    norm({x.data(), weight.data(), weight.data(), kRows, kWidth, mean.data(), inverse.data(),
          out.data()});
    bits.insert(bits.end(), out.begin(), out.end());
  }
  for (const auto norm : {table.layer_norm_backward, table.rms_norm_backward}) {
    std::vector<float> gradients = random_floats(kRows * kWidth + 2 * kWidth, 3);
    norm({x.data(), weight.data(), mean.data(), inverse.data(), x.data(), kRows, kWidth,
          gradients.data(), gradients.data() + x.size(), gradients.data() + x.size() + kWidth});
    bits.insert(bits.end(), gradients.begin(), gradients.end());
  }
}

void run_activations(const KernelTable& table, std::vector<float>& bits) {
  const std::vector<float> x = random_floats(2 * kRows * kWidth, 4);
  std::vector<float> out(x.size());
  table.gelu(x.data(), kRows * kOdd, out.data());
  bits.insert(bits.end(), out.begin(), out.end());
  table.gelu_backward(x.data(), kRows * kOdd, out.data());
  bits.insert(bits.end(), out.begin(), out.end());
  const SwigluRows rows{.gate_and_value = x.data(),
                        .rows = kRows,
                        .width = kWidth,
                        .out = out.data(),
                        .out_gradient = x.data()};
  table.swiglu(rows);
  bits.insert(bits.end(), out.begin(), out.end());
  SwigluRows backward = rows;
  backward.gradient = out.data();
  table.swiglu_backward(backward);
  bits.insert(bits.end(), out.begin(), out.end());
}

void run_attention(const KernelTable& table, std::vector<float>& bits) {
  std::vector<float> scores = random_floats(kRows * kOdd, 5);
  const std::vector<float> raw = scores;
  std::vector<float> gradient = random_floats(kRows * kOdd, 6);
  std::vector<float> peak(kRows);
  std::vector<float> inverse(kRows);
  const std::int64_t visible = kOdd - kRows + 1;
  table.softmax({scores.data(), kRows, kOdd, visible, peak.data(), inverse.data()});
  bits.insert(bits.end(), scores.begin(), scores.end());
  scores = raw;
  table.softmax_backward(
      {scores.data(), gradient.data(), kRows, kOdd, visible, peak.data(), inverse.data()});
  bits.insert(bits.end(), scores.begin(), scores.end());
  bits.insert(bits.end(), gradient.begin(), gradient.end());
  const std::vector<float> turns = random_floats(kRows * kOdd, 7);
  std::vector<float> pairs = random_floats(kRows * 4 * kOdd, 8);
  table.rotate({.x = pairs.data(),
                .stride = 4 * kOdd,
                .rows = kRows,
                .time = kRows,
                .heads = 2,
                .half = kOdd,
                .cosine = turns.data(),
                .sine = turns.data()});
  bits.insert(bits.end(), pairs.begin(), pairs.end());
}

void run_rows(const KernelTable& table, std::vector<float>& bits) {
  const std::vector<float> x = random_floats(kRows * kOdd, 9);
  std::vector<float> out(x.size());
  table.fill_rows(
      {.x = x.data(), .bias = x.data(), .rows = kRows, .width = kOdd, .out = out.data()});
  table.sum_rows({.x = x.data(), .rows = kRows, .width = kOdd, .out = out.data()});
  bits.insert(bits.end(), out.begin(), out.end());
  const std::vector<std::int32_t> targets{0, 36, 5, 17, 16};
  std::vector<float> loss(kRows);
  table.cross_entropy({.logits = out.data(),
                       .targets = targets.data(),
                       .rows = kRows,
                       .vocab = kOdd,
                       .loss = loss.data(),
                       .gradient = CrossEntropy::Gradient::kInPlace,
                       .scale = 0.25F});
  bits.insert(bits.end(), out.begin(), out.end());
  bits.insert(bits.end(), loss.begin(), loss.end());
  std::vector<float> second = random_floats(kRows * kOdd, 10);
  for (float& value : second) value *= value;
  table.adam({.parameters = out.data(),
              .gradient = x.data(),
              .first = second.data(),
              .second = second.data(),
              .count = kRows * kOdd,
              .beta1 = 0.9F,
              .beta2 = 0.95F,
              .epsilon = 1e-8F,
              .rate = 0.1F});
  bits.insert(bits.end(), out.begin(), out.end());
  bits.push_back(static_cast<float>(table.squares(x.data(), kRows * kOdd)));
  std::vector<std::uint16_t> rounded(2 * kOdd);
  table.to_bfloat16(
      {.x = x.data(), .stride = 2 * kOdd, .rows = 2, .width = kOdd, .out = rounded.data()});
  bits.insert(bits.end(), rounded.begin(), rounded.end());
}

TEST(KernelsTest, GiveTheSameBitsOnEveryVectorUnit) {
  const auto bits_of = [](const KernelTable& table) {
    std::vector<float> bits;
    run_norms(table, bits);
    run_activations(table, bits);
    run_attention(table, bits);
    run_rows(table, bits);
    return bits;
  };
  const std::vector<float> expected = bits_of(*kernels_of("baseline"));
  for (const char* isa : {"avx2", "avx512"}) {
    const KernelTable* table = kernels_of(isa);
    if (table == nullptr) {
      GTEST_LOG_(WARNING) << "this CPU has no " << isa << ": its kernels are not compared";
      continue;
    }
    EXPECT_STREQ(table->isa, isa);
    const std::vector<float> bits = bits_of(*table);
    ASSERT_EQ(bits.size(), expected.size());
    for (std::size_t i = 0; i < bits.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(bits[i]), std::bit_cast<std::uint32_t>(expected[i]))
          << isa << ", value " << i;
    }
  }
  EXPECT_EQ(kernels_of("avx1024"), nullptr);
}

TEST(KernelsTest, RoundToTheNearestBfloat16) {
  const std::vector<float> x{1.0F,       0x1.01p0F, 0x1.03p0F, 0x1.010002p0F,
                             -0x1.fep5F, 3e38F,     -0.0F,     std::nanf("")};
  std::vector<std::uint16_t> out(x.size());
  kernels().to_bfloat16({.x = x.data(), .stride = 8, .rows = 1, .width = 8, .out = out.data()});
  EXPECT_EQ(out, (std::vector<std::uint16_t>{0x3f80, 0x3f80, 0x3f82, 0x3f81, 0xc27f, 0x7f62, 0x8000,
                                             0x7fc0}));
}

TEST(KernelsTest, MakeExponentialsWithinTwoUnitsOfTheLastPlace) {
  std::vector<float> x;
  for (int i = -12'200; i <= 12'200; ++i) x.push_back(static_cast<float>(i) * 0.00713F);
  std::vector<float> y(x.size());
  kernels().exponential(x.data(), static_cast<std::int64_t>(x.size()), y.data());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(static_cast<double>(x[i]));
    const auto ulp = static_cast<double>(std::nextafter(y[i], 1e38F) - y[i]);
    worst = std::max(worst, std::abs(static_cast<double>(y[i]) - exact) / ulp);
  }
  EXPECT_LT(worst, 2);
  const std::vector<float> far{-1e30F, 1e30F};
  kernels().exponential(far.data(), 2, y.data());
  EXPECT_LT(y[0], 1e-37F);
  EXPECT_GT(y[1], 1e37F);
}

}  // namespace
}  // namespace orrery
