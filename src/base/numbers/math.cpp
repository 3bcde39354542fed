// base/numbers/math.cpp - exp, expm1, log, log1p and pow from IEEE additions, products and constant
// tables.
//
// Method: argument reduction with a table, a short Taylor polynomial on the remainder (P. T. P.
// Tang, "Table-driven implementation of the exponential function in IEEE floating-point
// arithmetic", ACM TOMS 15(2), 1989, and the same for the logarithm, ACM TOMS 16(4), 1990), with
// the parts that decide the rounding carried as unevaluated sums of two doubles (T. J. Dekker, "A
// floating-point technique for extending the available precision", Numerische Mathematik 18, 1971).
#include "base/numbers/math.hpp"

#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#if defined(__FAST_MATH__)
#error "base/numbers/math.cpp needs IEEE arithmetic: build without -ffast-math"
#endif

namespace orrery::math {
namespace {

static_assert(std::numeric_limits<double>::is_iec559 && FLT_EVAL_METHOD == 0,
              "results are bit-stable only where a double operation rounds once, to double");

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Added to x and taken off again it leaves the integer nearest to x, for |x| < 2^51.
constexpr double kRound = 0x1.8p52;

/// The unevaluated sum hi + lo with |lo| <= ulp(hi) / 2 where normalised.
struct DoubleDouble {
  double hi;
  double lo;
};

/// Exact a + b (D. E. Knuth, TAOCP 2, section 4.2.2, theorem B).
constexpr DoubleDouble two_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

/// Exact a + b where a is 0 or |a| >= |b| (Dekker 1971).
constexpr DoubleDouble fast_two_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

/// The upper 26 bits of a and the rest (Veltkamp's splitting). Precondition: |a| < 2^995.
constexpr DoubleDouble split(double a) {
  constexpr double kSplitter = 0x1p27 + 1.0;
  const double scaled = kSplitter * a;
  const double hi = scaled - (scaled - a);
  return {hi, a - hi};
}

/// Exact a * b (Dekker 1971). Precondition: |a|, |b| < 2^995 and no part of the product underflows.
constexpr DoubleDouble two_product(double a, double b) {
  const double product = a * b;
  const DoubleDouble x = split(a);
  const DoubleDouble y = split(b);
  const double error = ((x.hi * y.hi - product) + x.hi * y.lo + x.lo * y.hi) + x.lo * y.lo;
  return {product, error};
}

constexpr DoubleDouble add(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble sum = two_sum(a.hi, b.hi);
  return fast_two_sum(sum.hi, sum.lo + (a.lo + b.lo));
}

constexpr DoubleDouble multiply(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble product = two_product(a.hi, b.hi);
  return fast_two_sum(product.hi, product.lo + (a.hi * b.lo + a.lo * b.hi));
}

constexpr DoubleDouble divide(DoubleDouble a, double b) {
  const double quotient = a.hi / b;
  const DoubleDouble back = two_product(quotient, b);
  return fast_two_sum(quotient, ((a.hi - back.hi) - back.lo + a.lo) / b);
}

// ln 2 to 106 bits, and again with an upper part short enough (42 bits) that k * kLn2Upper is exact
// for every exponent k of a double.
constexpr DoubleDouble kLn2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
constexpr double kLn2Upper = 0x1.62e42fefa38p-1;
constexpr double kLn2Lower = (kLn2.hi - kLn2Upper) + kLn2.lo;

// The tables are worked out by the compiler in double-double, so no constant has to be believed.

constexpr int kExpBits = 6;
constexpr std::size_t kExpSize = std::size_t{1} << kExpBits;

/// e^x for 0 <= x < 1 by the Taylor series, to about 100 bits.
constexpr DoubleDouble exp_series(DoubleDouble x) {
  DoubleDouble sum = {1.0, 0.0};
  for (int n = 30; n >= 1; --n) {
    sum = add({1.0, 0.0}, divide(multiply(x, sum), n));
  }
  return sum;
}

/// Entry i is 2^(i / 64).
constexpr std::array<DoubleDouble, kExpSize> kExpTable = [] {
  std::array<DoubleDouble, kExpSize> table{};
  for (std::size_t i = 0; i < kExpSize; ++i) {
    const double fraction = static_cast<double>(i) / static_cast<double>(kExpSize);
    table[i] = exp_series(multiply(kLn2, {fraction, 0.0}));
  }
  table[0] = {1.0, 0.0};
  return table;
}();

/// log(x) for a short x (x - 1 and x + 1 exact) in (2/3, 3/2), by the series
/// log x = 2 (t + t^3/3 + t^5/5 + ...), t = (x - 1) / (x + 1), to about 100 bits.
constexpr DoubleDouble log_series(double x) {
  const DoubleDouble t = divide({x - 1.0, 0.0}, x + 1.0);
  const DoubleDouble square = multiply(t, t);
  DoubleDouble sum = {0.0, 0.0};
  for (int n = 47; n >= 1; n -= 2) {
    sum = add(divide({1.0, 0.0}, n), multiply(square, sum));
  }
  const DoubleDouble half = multiply(t, sum);
  return {2.0 * half.hi, 2.0 * half.lo};
}

// The logarithm's reduction maps x to 2^k * z with z in [kLogStart, 2 * kLogStart), cut into 128
// pieces, 80 of them below 1 and 48 from 1 on; 1 is a boundary.
constexpr int kLogBits = 7;
constexpr std::size_t kLogSize = std::size_t{1} << kLogBits;
constexpr std::uint64_t kLogStart = 0x3fe6'0000'0000'0000;  // the bits of 0.6875
constexpr std::size_t kLogPieceOfOne = 80;

struct LogEntry {
  double inverse;    // about 1 / z in this piece, a multiple of 2^-12
  DoubleDouble log;  // -log(inverse)
};

/// The two pieces that meet at 1 take inverse = 1, so that the result near 1 has no cancellation.
constexpr std::array<LogEntry, kLogSize> kLogTable = [] {
  std::array<LogEntry, kLogSize> table{};
  for (std::size_t i = 0; i < kLogSize; ++i) {
    const double steps = static_cast<double>(i) + 0.5 - static_cast<double>(kLogPieceOfOne);
    const double centre = 1.0 + steps / (i < kLogPieceOfOne ? 256.0 : 128.0);
    const double inverse = ((4096.0 / centre + kRound) - kRound) / 4096.0;
    const DoubleDouble log = log_series(inverse);
    table[i] = {inverse, {-log.hi, -log.lo}};
  }
  table[kLogPieceOfOne - 1] = {1.0, {0.0, 0.0}};
  table[kLogPieceOfOne] = {1.0, {0.0, 0.0}};
  return table;
}();

/// log(1 + r) for |r| <= 2^-7, with a relative error below 2^-66. The lower part is not normalised.
DoubleDouble log1p_reduced(DoubleDouble r) {
  const double x = r.hi;
  const DoubleDouble square = two_product(x, x);
  const double series =
      1.0 / 3 +
      x * (-1.0 / 4 +
           x * (1.0 / 5 +
                x * (-1.0 / 6 +
                     x * (1.0 / 7 +
                          x * (-1.0 / 8 + x * (1.0 / 9 + x * (-1.0 / 10 + x * (1.0 / 11))))))));
  const DoubleDouble upper = fast_two_sum(x, -0.5 * square.hi);
  const double lower = (r.lo - x * r.lo) - 0.5 * square.lo;
  return {upper.hi, upper.lo + (lower + x * square.hi * series)};
}

/// log(x) as a double-double with a relative error below 2^-65. Precondition: 0 < x < inf.
DoubleDouble log_positive(double x) {
  std::int64_t exponent = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p52;
    exponent = -52;
  }
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t offset = bits - kLogStart;
  const LogEntry& entry = kLogTable[(offset >> (52 - kLogBits)) & (kLogSize - 1)];
  exponent += static_cast<std::int64_t>(offset) >> 52;
  const double z = std::bit_cast<double>(bits - (offset & (std::uint64_t{0xfff} << 52)));

  const DoubleDouble product = two_product(z, entry.inverse);
  const DoubleDouble rest = log1p_reduced(fast_two_sum(product.hi - 1.0, product.lo));

  const double k = static_cast<double>(exponent);
  const DoubleDouble table = two_sum(k * kLn2Upper, entry.log.hi);
  const DoubleDouble sum = two_sum(table.hi, rest.hi);
  const double lower = k * kLn2Lower + entry.log.lo + table.lo + rest.lo;
  return fast_two_sum(sum.hi, sum.lo + lower);
}

/// 2^exponent. Precondition: -1022 <= exponent <= 1023.
double power_of_two(std::int64_t exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// e^x as 2^exponent * scale * (1 + fraction), |fraction| < 0.0055.
struct ExpParts {
  std::int64_t exponent;
  DoubleDouble scale;  // in [1, 2); exactly 1 for |x| < ln 2 / 128
  double fraction;
};

/// Precondition: |x.hi| <= 746.
ExpParts exp_parts(DoubleDouble x) {
  constexpr double kSize = static_cast<double>(kExpSize);
  constexpr double kStepUpper = 0x1.62e42fefap-7;  // ln 2 / 64, 36 bits: n * kStepUpper is exact
  constexpr double kStepLower = (kLn2.hi / kSize - kStepUpper) + kLn2.lo / kSize;

  const double n = (x.hi * (kSize / kLn2.hi) + kRound) - kRound;
  const double r = (x.hi - n * kStepUpper) + (x.lo - n * kStepLower);
  const double series =
      1.0 / 2 + r * (1.0 / 6 + r * (1.0 / 24 + r * (1.0 / 120 + r * (1.0 / 720 + r / 5040))));
  const auto steps = static_cast<std::int64_t>(n);
  return {steps >> kExpBits, kExpTable[static_cast<std::uint64_t>(steps) & (kExpSize - 1)],
          r + r * r * series};
}

/// e^x. Precondition: |x.hi| <= 746. The two halves of the scaling round at most once, at the end.
double exp_bounded(DoubleDouble x) {
  const ExpParts parts = exp_parts(x);
  const double value = parts.scale.hi + (parts.scale.lo + parts.scale.hi * parts.fraction);
  const std::int64_t half = parts.exponent >> 1;
  return value * power_of_two(half) * power_of_two(parts.exponent - half);
}

enum class Parity : std::uint8_t { kEven, kOdd, kFractional };

Parity parity_of(double y) {
  if (std::abs(y) >= 0x1p53) return Parity::kEven;
  const auto integer = static_cast<std::int64_t>(y);
  if (static_cast<double>(integer) != y) return Parity::kFractional;
  return (integer & 1) != 0 ? Parity::kOdd : Parity::kEven;
}

/// x^y where x is 0 or infinite or y is infinite, neither is NaN, y is not 0 and x is not 1.
double pow_at_limits(double x, double y) {
  const double size = std::abs(x);
  if (std::isinf(y)) {
    if (size == 1.0) return 1.0;
    return (size > 1.0) == (y > 0.0) ? kInfinity : 0.0;
  }
  const double result = (size == 0.0) == (y > 0.0) ? 0.0 : kInfinity;
  return std::signbit(x) && parity_of(y) == Parity::kOdd ? -result : result;
}

}  // namespace

double exp(double x) {
  if (std::isnan(x)) return kNan;
  if (x > 710.0) return kInfinity;
  if (x < -746.0) return 0.0;
  return exp_bounded({x, 0.0});
}

double expm1(double x) {
  if (std::isnan(x)) return kNan;
  if (std::abs(x) < 0x1p-54) return x;
  if (x > 40.0) return exp(x);
  if (x < -40.0) return -1.0;
  const ExpParts parts = exp_parts({x, 0.0});
  const double power = power_of_two(parts.exponent);
  const double upper = parts.scale.hi * power;
  const DoubleDouble difference = two_sum(upper, -1.0);
  return difference.hi + (difference.lo + (parts.scale.lo * power + upper * parts.fraction));
}

double log(double x) {
  if (x == 0.0) return -kInfinity;
  if (std::isnan(x) || x < 0.0) return kNan;
  if (std::isinf(x)) return kInfinity;
  return log_positive(x).hi;
}

double log1p(double x) {
  if (x == -1.0) return -kInfinity;
  if (std::isnan(x) || x < -1.0) return kNan;
  if (std::isinf(x)) return kInfinity;
  if (std::abs(x) < 0x1p-60) return x;
  const DoubleDouble sum = two_sum(1.0, x);
  const DoubleDouble log = log_positive(sum.hi);
  const double rest = sum.lo / sum.hi;
  return log.hi + (log.lo + (rest - 0.5 * rest * rest));
}

double pow(double x, double y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (std::isnan(x) || std::isnan(y)) return kNan;
  if (x == 0.0 || std::isinf(x) || std::isinf(y)) return pow_at_limits(x, y);
  double sign = 1.0;
  if (x < 0.0) {
    const Parity parity = parity_of(y);
    if (parity == Parity::kFractional) return kNan;
    if (parity == Parity::kOdd) sign = -1.0;
  }
  const DoubleDouble log = log_positive(std::abs(x));
  const double estimate = y * log.hi;
  if (estimate > 710.0) return sign * kInfinity;
  if (estimate < -746.0) return sign * 0.0;
  if (std::abs(estimate) < 0x1p-60) return sign;
  const DoubleDouble product = two_product(y, log.hi);
  return sign * exp_bounded({product.hi, product.lo + y * log.lo});
}

}  // namespace orrery::math
