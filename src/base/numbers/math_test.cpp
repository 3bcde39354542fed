// base/numbers/math_test.cpp - accuracy against long double, special values, and the very bits of
// results.
//
// Built once as the rest and once (ORRERY_TEST_FMA_BUILD) with base/numbers/math and what rests on
// it compiled for CPUs with fused multiply-add: both must give the bits written here.
#include "base/numbers/math.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kSubnormal = std::numeric_limits<double>::denorm_min();
constexpr double kMax = std::numeric_limits<double>::max();
constexpr int kPoints = 100'000;

#if defined(ORRERY_TEST_FMA_BUILD)
class CpuWithFma : public ::testing::Environment {
 public:
  void SetUp() override {
    if (!__builtin_cpu_supports("fma") || !__builtin_cpu_supports("avx2")) {
      GTEST_SKIP() << "this CPU has no fused multiply-add";
    }
  }
};
const ::testing::Environment* const kCpuWithFma =
    ::testing::AddGlobalTestEnvironment(new CpuWithFma);
#endif

std::uint64_t bits_of(double x) { return std::bit_cast<std::uint64_t>(x); }

/// The gap between neighbouring doubles around `value`.
long double ulp_of(long double value) {
  const double size =
      std::max(std::numeric_limits<double>::min(), static_cast<double>(std::fabs(value)));
  return std::ldexp(1.0L, std::ilogb(size) - 52);
}

/// The distance of `got` from `exact` in units in the last place; 0 where both overflow alike.
double ulps(double got, long double exact) {
  if (std::isinf(static_cast<double>(exact)) || std::isinf(got)) {
    return got == static_cast<double>(exact) ? 0.0 : kInf;
  }
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) / ulp_of(exact));
}

/// The largest error of `function` against `reference` at kPoints arguments made by `draw`.
template <class Function, class Reference, class Draw>
double ulps_max(Function function, Reference reference, Draw draw) {
  double worst = 0.0;
  Rng rng(1);
  for (int i = 0; i < kPoints; ++i) {
    const double x = draw(rng);
    const double error = ulps(function(x), reference(static_cast<long double>(x)));
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

auto between(double low, double high) {
  return [low, high](Rng& rng) { return low + (high - low) * rng.uniform(); };
}

/// Any positive finite double, subnormal ones included, every exponent as likely as the others.
double any_positive(Rng& rng) { return std::bit_cast<double>(1 + rng.below(bits_of(kInf) - 1)); }

/// Either sign, from 2^-60 to 1, every power of two as likely.
double any_small(Rng& rng) {
  // Two statements: compilers differ in the order in which they evaluate arguments.
  const int exponent = -static_cast<int>(rng.below(60));
  return std::ldexp(2.0 * rng.uniform() - 1.0, exponent);
}

const auto kExpReference = [](long double x) { return std::exp(x); };
const auto kExpm1Reference = [](long double x) { return std::expm1(x); };
const auto kLogReference = [](long double x) { return std::log(x); };
const auto kLog1pReference = [](long double x) { return std::log1p(x); };

TEST(Math, ExpIsWithinItsBound) {
  EXPECT_LE(ulps_max(math::exp, kExpReference, between(-708.0, 710.0)), 0.6);
  EXPECT_LE(ulps_max(math::exp, kExpReference, between(-1.0, 1.0)), 0.6);
  EXPECT_LE(ulps_max(math::exp, kExpReference, any_small), 0.6);
  EXPECT_LE(ulps_max(math::exp, kExpReference, between(-746.0, -708.0)), 1.0);
}

TEST(Math, Expm1IsWithinItsBound) {
  EXPECT_LE(ulps_max(math::expm1, kExpm1Reference, between(-50.0, 710.0)), 2.0);
  EXPECT_LE(ulps_max(math::expm1, kExpm1Reference, between(-1.0, 1.0)), 2.0);
  EXPECT_LE(ulps_max(math::expm1, kExpm1Reference, any_small), 2.0);
}

TEST(Math, LogIsWithinItsBound) {
  EXPECT_LE(ulps_max(math::log, kLogReference, any_positive), 0.51);
  EXPECT_LE(ulps_max(math::log, kLogReference, between(0.5, 2.0)), 0.51);
  EXPECT_LE(ulps_max(math::log, kLogReference, between(0.99, 1.01)), 0.51);
  EXPECT_LE(ulps_max(math::log, kLogReference, between(0.0, kSubnormal * 1e6)), 0.51);
}

TEST(Math, Log1pIsWithinItsBound) {
  EXPECT_LE(ulps_max(math::log1p, kLog1pReference, any_positive), 0.7);
  EXPECT_LE(ulps_max(math::log1p, kLog1pReference, between(-1.0, 1.0)), 0.7);
  EXPECT_LE(ulps_max(math::log1p, kLog1pReference, any_small), 0.7);
}

/// The largest error of pow where x comes from `draw` and y log x is uniform in [low, high].
template <class Draw>
double pow_ulps_max(Draw draw, double low, double high) {
  Rng rng(2);
  double worst = 0.0;
  for (int i = 0; i < kPoints; ++i) {
    const double x = draw(rng);
    const double y = (low + (high - low) * rng.uniform()) / std::log(x);
    if (!std::isfinite(y)) continue;
    const double error =
        ulps(math::pow(x, y), std::pow(static_cast<long double>(x), static_cast<long double>(y)));
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

TEST(Math, PowIsWithinItsBound) {
  EXPECT_LE(pow_ulps_max(any_positive, -708.0, 710.0), 0.6);
  EXPECT_LE(pow_ulps_max(between(0.1, 10.0), -708.0, 710.0), 0.6);
  EXPECT_LE(pow_ulps_max(between(0.99, 1.01), -708.0, 710.0), 0.6);
  EXPECT_LE(pow_ulps_max(between(0.1, 10.0), -1.0, 1.0), 0.6);
  EXPECT_LE(pow_ulps_max(any_positive, -746.0, -708.0), 1.0);
}

TEST(Math, ExpMeetsItsSpecialValues) {
  EXPECT_EQ(math::exp(0.0), 1.0);
  EXPECT_EQ(math::exp(-0.0), 1.0);
  EXPECT_EQ(math::exp(kSubnormal), 1.0);
  EXPECT_EQ(math::exp(kInf), kInf);
  EXPECT_EQ(bits_of(math::exp(-kInf)), bits_of(0.0));
  EXPECT_EQ(math::exp(kMax), kInf);
  EXPECT_EQ(bits_of(math::exp(-kMax)), bits_of(0.0));
  // The last argument that does not overflow, its successor, and the same around underflow.
  EXPECT_EQ(math::exp(0x1.62e42fefa39efp+9), 0x1.fffffffffff2ap+1023);
  EXPECT_EQ(math::exp(std::nextafter(0x1.62e42fefa39efp+9, kInf)), kInf);
  EXPECT_EQ(math::exp(-0x1.74910d52d3051p+9), kSubnormal);
  EXPECT_EQ(math::exp(std::nextafter(-0x1.74910d52d3051p+9, -kInf)), 0.0);
}

TEST(Math, Expm1MeetsItsSpecialValues) {
  EXPECT_EQ(bits_of(math::expm1(0.0)), bits_of(0.0));
  EXPECT_EQ(bits_of(math::expm1(-0.0)), bits_of(-0.0));
  EXPECT_EQ(math::expm1(kSubnormal), kSubnormal);
  EXPECT_EQ(math::expm1(kInf), kInf);
  EXPECT_EQ(math::expm1(-kInf), -1.0);
  EXPECT_EQ(math::expm1(-800.0), -1.0);
  EXPECT_EQ(math::expm1(800.0), kInf);
}

TEST(Math, LogMeetsItsSpecialValues) {
  EXPECT_EQ(bits_of(math::log(1.0)), bits_of(0.0));
  EXPECT_EQ(math::log(0.0), -kInf);
  EXPECT_EQ(math::log(-0.0), -kInf);
  EXPECT_EQ(math::log(kInf), kInf);
  EXPECT_EQ(bits_of(math::log1p(0.0)), bits_of(0.0));
  EXPECT_EQ(bits_of(math::log1p(-0.0)), bits_of(-0.0));
  EXPECT_EQ(math::log1p(-kSubnormal), -kSubnormal);
  EXPECT_EQ(math::log1p(-1.0), -kInf);
  EXPECT_EQ(math::log1p(kInf), kInf);
}

// The sign and payload of a NaN that an operation makes differ between CPU families.
TEST(Math, EveryNanIsTheSameNan) {
  const double negative_nan = std::bit_cast<double>(bits_of(kNan) | (1ULL << 63) | 0x123);
  for (const double nan :
       {math::exp(negative_nan), math::expm1(negative_nan), math::log(negative_nan),
        math::log(-1.0), math::log(-kInf), math::log(-kSubnormal), math::log1p(negative_nan),
        math::log1p(-1.5), math::log1p(-kInf), math::pow(negative_nan, 2.0),
        math::pow(2.0, negative_nan), math::pow(-8.0, 1.0 / 3.0), math::pow(-kSubnormal, 0.5)}) {
    EXPECT_EQ(bits_of(nan), bits_of(kNan));
  }
}

TEST(Math, PowWithZeroExponentOrBaseOneIsOne) {
  for (const double value : {0.0, -0.0, 1.0, -1.0, 2.5, -kMax, kInf, -kInf, kNan}) {
    EXPECT_EQ(math::pow(value, 0.0), 1.0) << value;
    EXPECT_EQ(math::pow(value, -0.0), 1.0) << value;
    EXPECT_EQ(math::pow(1.0, value), 1.0) << value;
  }
  EXPECT_EQ(math::pow(-1.0, kInf), 1.0);
  EXPECT_EQ(math::pow(-1.0, -kInf), 1.0);
}

// The reference for the 1,600 combinations is the pow of the C library: NaN, sign, zero and
// infinity must agree, ordinary powers within 2 ulp.
TEST(Math, PowAgreesWithTheStandardOnEverySpecialCombination) {
  const double values[] = {0.0,  kSubnormal, 1e-300, 0x1p-60, 0.5,        0.75,   1.0,
                           1.5,  2.0,        3.0,    0x1p52,  0x1p53 - 1, 0x1p53, 1e300,
                           kMax, 1e-17,      1 / 3., 5.0,     kInf,       kNan};
  for (const double x : values) {
    for (const double y : values) {
      for (const double signed_x : {x, -x}) {
        for (const double signed_y : {y, -y}) {
          const double expected = std::pow(signed_x, signed_y);
          const double got = math::pow(signed_x, signed_y);
          SCOPED_TRACE(testing::Message() << "pow(" << signed_x << ", " << signed_y << ")");
          ASSERT_EQ(std::isnan(got), std::isnan(expected));
          if (std::isnan(got)) continue;
          EXPECT_EQ(std::signbit(got), std::signbit(expected));
          EXPECT_LE(ulps(got, expected), 2.0);
        }
      }
    }
  }
}

TEST(Math, PowTurnsIntoZeroOrInfinityAtTheRightPlace) {
  EXPECT_EQ(math::pow(2.0, std::nextafter(1024.0, 0.0)), 0x1.ffffffffffd3ap+1023);
  EXPECT_EQ(math::pow(2.0, 1024.0), kInf);
  EXPECT_EQ(math::pow(2.0, -1074.0), kSubnormal);
  EXPECT_EQ(math::pow(2.0, -1076.0), 0.0);
  EXPECT_EQ(math::pow(-2.0, 1025.0), -kInf);
  EXPECT_EQ(bits_of(math::pow(-2.0, -1077.0)), bits_of(-0.0));
}

TEST(Math, PowersOfTwoAndSmallIntegersAreExact) {
  for (int e = -1074; e <= 1023; ++e) {
    EXPECT_EQ(math::pow(2.0, e), std::ldexp(1.0, e)) << e;
  }
  double power = 1.0;
  for (int e = 1; e <= 22; ++e) {
    power *= 10.0;
    EXPECT_EQ(math::pow(10.0, e), power) << e;
  }
}

struct BitsOfOne {
  double (*function)(double);
  double x;
  std::uint64_t bits;
};

// Computed with 300 bits of precision and rounded once: the bits are the correctly rounded results.
TEST(Math, ChosenResultsHaveTheBitsWrittenHere) {
  const BitsOfOne expected[] = {
      {math::exp, 1.0, 0x4005bf0a8b145769},       {math::exp, -1.0, 0x3fd78b56362cef38},
      {math::exp, 0.1, 0x3ff1aec7b35a00d4},       {math::exp, -0.7, 0x3fdfc80db9dd5542},
      {math::exp, 20.5, 0x41c7d6c4f0bcdd5c},      {math::exp, -300.25, 0x24dc758233102ace},
      {math::exp, 709.5, 0x7fe81e9b4b52d0c9},     {math::exp, -707.75, 0x001e8a014e61d734},
      {math::exp, 1e-09, 0x3ff000000044b830},     {math::expm1, 1e-05, 0x3ee4f8bc681cdfb6},
      {math::expm1, 0.3, 0x3fd6641632306a56},     {math::expm1, -0.004, 0xbf7059ed3367cb0e},
      {math::expm1, 5.5, 0x406e76244f21bbf6},     {math::log, 2.0, 0x3fe62e42fefa39ef},
      {math::log, 10.0, 0x40026bb1bbb55516},      {math::log, 0.1, 0xc0026bb1bbb55515},
      {math::log, 1.0000001, 0x3e7ad7f2847b6492}, {math::log, 0.9999, 0xbf1a3738d2cf1cc2},
      {math::log, 3e+200, 0x407cd9d99fc601f5},    {math::log, 7e-310, 0xc0863ed7fff67bdb},
      {math::log1p, 1e-07, 0x3e7ad7f2843813db},   {math::log1p, -0.3, 0xbfd6d3c324e13f4e},
      {math::log1p, 4.0, 0x3ff9c041f7ed8d33},
  };
  for (const BitsOfOne& row : expected) {
    EXPECT_EQ(bits_of(row.function(row.x)), row.bits) << row.x;
  }
}

struct BitsOfPow {
  double x;
  double y;
  std::uint64_t bits;
};

TEST(Math, ChosenPowersHaveTheBitsWrittenHere) {
  const BitsOfPow expected[] = {
      {2.0, 0.5, 0x3ff6a09e667f3bcd},        {10.0, -3.5, 0x3f34b96be9c2da2c},
      {1.0001, 70000.0, 0x409120ff6a767154}, {0.3, 250.75, 0x24b5f2243db7e881},
      {-1.5, 7.0, 0xc031160000000000},       {7e-310, 0.125, 0x37e8b22d4954a2ef},
      {1e+300, 1.01, 0x7ed754e31cd07303},
  };
  for (const BitsOfPow& row : expected) {
    EXPECT_EQ(bits_of(math::pow(row.x, row.y)), row.bits) << row.x << " ^ " << row.y;
  }
}

/// Folds 100,000 results into one number; order matters.
template <class Draw>
std::uint64_t hash_of(Draw draw) {
  Rng rng(3);
  std::uint64_t hash = 0;
  for (int i = 0; i < 100'000; ++i) {
    hash = (std::rotl(hash, 5) ^ bits_of(draw(rng))) * 0x9e3779b97f4a7c15;
  }
  return hash;
}

// These change only when the algorithm does, and then every recorded history changes with them.
TEST(Math, AHundredThousandResultsOfEachFunctionHashToTheseValues) {
  EXPECT_EQ(hash_of([](Rng& rng) { return math::exp(1500.0 * (rng.uniform() - 0.5)); }),
            0xce6fa560c36e3b37);
  EXPECT_EQ(hash_of([](Rng& rng) { return math::expm1(any_small(rng) * 8.0); }),
            0x86946cd97deaae50);
  EXPECT_EQ(hash_of([](Rng& rng) { return math::log(any_positive(rng)); }), 0xc68f3a2f07d6973e);
  EXPECT_EQ(hash_of([](Rng& rng) { return math::log1p(any_small(rng)); }), 0x449bb642373bd73f);
  EXPECT_EQ(hash_of([](Rng& rng) {
              const double x = 10.0 * rng.uniform();
              return math::pow(x, 200.0 * (rng.uniform() - 0.5));
            }),
            0xdce9e20e9cc878ff);
}

}  // namespace
}  // namespace orrery
