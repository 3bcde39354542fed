// base/quantity.hpp - strong quantities: a double that knows its dimension.
//
// Bytes{1} + Seconds{1} does not compile; Bytes / Seconds is a BytesPerSecond; equal dimensions
// divide to a plain double. Values are held in the base units named below, so nothing is ever
// scaled by hand; text with units is read and printed by base/text/quantity_text.hpp.
// Cost: that of the double.
#pragma once

#include <compare>

namespace orrery {

/// Exponents of the base dimensions: bytes, operations, seconds, joules, dollars, grams of CO2
/// equivalent, tokens.
template <int B, int F, int S, int J, int D, int G, int T>
struct Dimension {};

template <class Dim>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}

  /// In the base unit of the dimension.
  [[nodiscard]] constexpr double value() const { return value_; }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value_ + b.value_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value_ - b.value_);
  }
  friend constexpr Quantity operator-(Quantity a) { return Quantity(-a.value_); }
  friend constexpr Quantity operator*(Quantity a, double factor) {
    return Quantity(a.value_ * factor);
  }
  friend constexpr Quantity operator*(double factor, Quantity a) { return a * factor; }
  friend constexpr Quantity operator/(Quantity a, double divisor) {
    return Quantity(a.value_ / divisor);
  }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value_ / b.value_; }
  Quantity& operator+=(Quantity other) { return *this = *this + other; }
  Quantity& operator-=(Quantity other) { return *this = *this - other; }

 private:
  double value_ = 0;
};

template <int B1, int F1, int S1, int J1, int D1, int G1, int T1,  //
          int B2, int F2, int S2, int J2, int D2, int G2, int T2>
[[nodiscard]] constexpr auto operator*(Quantity<Dimension<B1, F1, S1, J1, D1, G1, T1>> a,
                                       Quantity<Dimension<B2, F2, S2, J2, D2, G2, T2>> b) {
  using Product = Dimension<B1 + B2, F1 + F2, S1 + S2, J1 + J2, D1 + D2, G1 + G2, T1 + T2>;
  return Quantity<Product>(a.value() * b.value());
}

template <int B1, int F1, int S1, int J1, int D1, int G1, int T1,  //
          int B2, int F2, int S2, int J2, int D2, int G2, int T2>
[[nodiscard]] constexpr auto operator/(Quantity<Dimension<B1, F1, S1, J1, D1, G1, T1>> a,
                                       Quantity<Dimension<B2, F2, S2, J2, D2, G2, T2>> b) {
  using Ratio = Dimension<B1 - B2, F1 - F2, S1 - S2, J1 - J2, D1 - D2, G1 - G2, T1 - T2>;
  return Quantity<Ratio>(a.value() / b.value());
}

using Bytes = Quantity<Dimension<1, 0, 0, 0, 0, 0, 0>>;
using Flops = Quantity<Dimension<0, 1, 0, 0, 0, 0, 0>>;  ///< operations of any number format
using Seconds = Quantity<Dimension<0, 0, 1, 0, 0, 0, 0>>;
using Joules = Quantity<Dimension<0, 0, 0, 1, 0, 0, 0>>;
using Dollars = Quantity<Dimension<0, 0, 0, 0, 1, 0, 0>>;
using GramsCo2 = Quantity<Dimension<0, 0, 0, 0, 0, 1, 0>>;
using Tokens = Quantity<Dimension<0, 0, 0, 0, 0, 0, 1>>;

using BytesPerSecond = Quantity<Dimension<1, 0, -1, 0, 0, 0, 0>>;
using FlopsPerSecond = Quantity<Dimension<0, 1, -1, 0, 0, 0, 0>>;
using TokensPerSecond = Quantity<Dimension<0, 0, -1, 0, 0, 0, 1>>;
using Watts = Quantity<Dimension<0, 0, -1, 1, 0, 0, 0>>;
using DollarsPerSecond = Quantity<Dimension<0, 0, -1, 0, 1, 0, 0>>;
using DollarsPerJoule = Quantity<Dimension<0, 0, 0, -1, 1, 0, 0>>;
using DollarsPerByte = Quantity<Dimension<-1, 0, 0, 0, 1, 0, 0>>;
using GramsCo2PerJoule = Quantity<Dimension<0, 0, 0, -1, 0, 1, 0>>;

/// A quantity whose bare numbers, in files whose keys name the unit ("latency_us: 1.5"), count
/// Num/Den base units. It behaves as the quantity everywhere else.
template <class Q, long Num, long Den = 1>
struct InUnit {
  static constexpr double kBaseUnits = static_cast<double>(Num) / static_cast<double>(Den);
  Q quantity;

  constexpr operator Q() const { return quantity; }  // NOLINT: it is that quantity
};

using BitsPerSecond = InUnit<BytesPerSecond, 1, 8>;
using Microseconds = InUnit<Seconds, 1, 1'000'000>;
using Nanoseconds = InUnit<Seconds, 1, 1'000'000'000>;
using DollarsPerHour = InUnit<DollarsPerSecond, 1, 3600>;
using DollarsPerKwh = InUnit<DollarsPerJoule, 1, 3'600'000>;
using GramsCo2PerKwh = InUnit<GramsCo2PerJoule, 1, 3'600'000>;
using KilogramsCo2 = InUnit<GramsCo2, 1000>;

/// Seconds in an hour, joules in a kilowatt-hour: for the units people bill in.
inline constexpr Seconds kHour{3600};
inline constexpr Joules kKilowattHour{3.6e6};

}  // namespace orrery
