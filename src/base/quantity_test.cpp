// base/quantity_test.cpp - what compiles, what does not, and what units come out.
#include "base/quantity.hpp"

#include <gtest/gtest.h>

#include <concepts>

namespace orrery {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) { a + b; };
template <class A, class B>
concept Comparable = requires(A a, B b) { a < b; };

static_assert(Addable<Bytes, Bytes>);
static_assert(!Addable<Bytes, Seconds>, "Bytes{1} + Seconds{1} does not compile");
static_assert(!Addable<Bytes, double>);
static_assert(!Addable<Watts, Joules>);
static_assert(Comparable<Watts, Watts>);
static_assert(!Comparable<Watts, Joules>);
static_assert(!std::convertible_to<double, Bytes>, "a bare number is no quantity");
static_assert(!std::convertible_to<Bytes, double>, "value() says that the unit is dropped");
static_assert(sizeof(Bytes) == sizeof(double));

static_assert(std::same_as<decltype(Bytes(1) / Seconds(1)), BytesPerSecond>);
static_assert(std::same_as<decltype(BytesPerSecond(1) * Seconds(1)), Bytes>);
static_assert(std::same_as<decltype(Joules(1) / Seconds(1)), Watts>);
static_assert(std::same_as<decltype(DollarsPerJoule(1) * Joules(1)), Dollars>);
static_assert(std::same_as<decltype(Bytes(1) / Bytes(1)), double>);

TEST(Quantity, AddsSubtractsAndScalesLikeItsNumber) {
  Bytes sum = Bytes(3) + Bytes(4) - Bytes(2);
  EXPECT_EQ(sum.value(), 5);
  sum += Bytes(10);
  sum -= Bytes(1);
  EXPECT_EQ(sum, Bytes(14));
  EXPECT_EQ(2 * sum, sum * 2);
  EXPECT_EQ((sum / 7).value(), 2);
  EXPECT_EQ((-sum).value(), -14);
}

TEST(Quantity, StartsAtZero) { EXPECT_EQ(Seconds().value(), 0); }

TEST(Quantity, ComparesByAmount) {
  EXPECT_LT(Watts(1), Watts(2));
  EXPECT_GE(Watts(2), Watts(2));
  EXPECT_NE(Watts(1), Watts(2));
}

TEST(Quantity, DividesEqualDimensionsToAPlainNumber) { EXPECT_DOUBLE_EQ(Bytes(80) / Bytes(16), 5); }

TEST(Quantity, CarriesDimensionsThroughProducts) {
  const Seconds transfer = Bytes(1e9) / BytesPerSecond(50e9);
  EXPECT_DOUBLE_EQ(transfer.value(), 0.02);
  const Dollars bill = DollarsPerJoule(0.08 / 3.6e6) * (Watts(1000) * kHour);
  EXPECT_DOUBLE_EQ(bill.value(), 0.08);
  EXPECT_DOUBLE_EQ(Watts(1000) * kHour / kKilowattHour, 1);
}

TEST(Quantity, KnowsTheBaseUnitsOfANamedUnit) {
  EXPECT_DOUBLE_EQ(BitsPerSecond::kBaseUnits, 0.125);
  EXPECT_DOUBLE_EQ(Microseconds::kBaseUnits, 1e-6);
  EXPECT_DOUBLE_EQ(DollarsPerHour::kBaseUnits, 1.0 / 3600);
  EXPECT_DOUBLE_EQ(KilogramsCo2::kBaseUnits, 1000);
}

TEST(Quantity, StandsForItsQuantityWhenItHasANamedUnit) {
  const Microseconds latency{Seconds(2e-6)};
  const Seconds plain = latency;
  EXPECT_EQ(plain, Seconds(2e-6));
}

}  // namespace
}  // namespace orrery
