// base/numbers/math.hpp - elementary functions whose results are the same bits on every CPU.
//
// libm picks its exp, log and pow at run time by the features of the CPU (FMA or not), so two
// machines may round a price differently and then decide differently. These functions use only + -
// * / on doubles in the default rounding mode, integer operations and tables of constants.
//
// Contract: built with -ffp-contract=off and without -ffast-math. Pure, no errno, no floating-point
// state; safe from every thread. A NaN result is always the positive quiet NaN.
// Cost: 5 to 35 ns a call.
#pragma once

namespace orrery::math {

/// e^x within 0.6 ulp (1 ulp where the result is subnormal). Overflows to +inf, underflows to +0.
[[nodiscard]] double exp(double x);

/// e^x - 1 within 2 ulp, without the cancellation near 0; expm1(-0.0) is -0.0.
[[nodiscard]] double expm1(double x);

/// Natural logarithm within 0.51 ulp. log(+-0) is -inf, a negative x gives NaN.
[[nodiscard]] double log(double x);

/// log(1 + x) within 0.7 ulp, without the cancellation near 0. log1p(-1) is -inf, below that NaN.
[[nodiscard]] double log1p(double x);

/// x^y within 0.6 ulp (1 ulp where the result is subnormal). Special cases as in C (ISO/IEC 9899
/// annex F.10.4.4): pow(x, 0) and pow(1, y) are 1 even for NaN; a negative x needs an integral y.
[[nodiscard]] double pow(double x, double y);

}  // namespace orrery::math
