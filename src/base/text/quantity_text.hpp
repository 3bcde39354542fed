// base/text/quantity_text.hpp - reads and prints quantities as people write them: "400 Gb/s",
// "3.35 TB/s", "12 MW", "80 GiB", "2T tokens", "$2.50/h".
//
// Reading is strict: a number, a unit of the right dimension, nothing else. A lower-case b is bits,
// an upper-case B bytes; prefixes are case-sensitive (m is milli, M mega), k and K both kilo.
// Behind a '$' thousands may be parted by commas. Printing picks the prefix that leaves 1 to 999
// before the point and at most four significant digits; parse(print(x)) is within 0.05 % of x.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/quantity.hpp"

namespace orrery {

enum class Prefixes { kNone, kLarge, kSmall, kLargeAndBinary, kCount };

/// One way to write a unit: "B/s" with factor 1, "b/s" with factor 1/8. A symbol that begins with
/// '$' stands before the number, with the rest after it ("$/h": "$2.50/h").
struct UnitSymbol {
  std::string_view symbol;
  double factor;
  Prefixes prefixes;
};

/// What one dimension is called, how it is written, and how much of it is believable in a file.
struct QuantityKind {
  std::string_view name;              ///< "bandwidth"
  std::string_view example;           ///< "400 Gb/s"
  std::span<const UnitSymbol> units;  ///< first: the one used for printing
  double plausible_max;               ///< in base units; more is refused as absurd
};

/// Text to a value in base units. Errors (without position): no number, missing unit, unknown unit,
/// wrong dimension, negative, not finite, above plausible_max. O(length x units).
[[nodiscard]] Result<double> parse_quantity(std::string_view text, const QuantityKind& kind);

/// The check parse_quantity makes on the value, for numbers that came without a unit.
[[nodiscard]] Status check_plausible(double value, const QuantityKind& kind);

[[nodiscard]] std::string print_quantity(double value, const QuantityKind& kind);

/// With as many digits as it takes to read the value back, but for the last bits of the division
/// by the unit.
[[nodiscard]] std::string print_exact(double value, const QuantityKind& kind);

template <class Q>
const QuantityKind& kind_of();
template <>
const QuantityKind& kind_of<Bytes>();
template <>
const QuantityKind& kind_of<Flops>();
template <>
const QuantityKind& kind_of<Seconds>();
template <>
const QuantityKind& kind_of<Joules>();
template <>
const QuantityKind& kind_of<Dollars>();
template <>
const QuantityKind& kind_of<GramsCo2>();
template <>
const QuantityKind& kind_of<Tokens>();
template <>
const QuantityKind& kind_of<BytesPerSecond>();
template <>
const QuantityKind& kind_of<FlopsPerSecond>();
template <>
const QuantityKind& kind_of<Watts>();
template <>
const QuantityKind& kind_of<DollarsPerSecond>();
template <>
const QuantityKind& kind_of<DollarsPerJoule>();
template <>
const QuantityKind& kind_of<DollarsPerByte>();
template <>
const QuantityKind& kind_of<GramsCo2PerJoule>();

template <class Q>
[[nodiscard]] Result<Q> parse(std::string_view text) {
  return parse_quantity(text, kind_of<Q>()).map([](double value) { return Q(value); });
}

template <class Dim>
[[nodiscard]] std::string print(Quantity<Dim> quantity) {
  return print_quantity(quantity.value(), kind_of<Quantity<Dim>>());
}

/// 1234567 as "1,234,567": for counts.
[[nodiscard]] std::string print_count(double count);

}  // namespace orrery
