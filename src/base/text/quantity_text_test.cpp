// base/text/quantity_text_test.cpp - what is read, what is refused and with which words, and that
// printing is the inverse of reading.
#include "base/text/quantity_text.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "base/numbers/math.hpp"
#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

template <class Q>
double read(std::string_view text) {
  const Result<Q> value = parse<Q>(text);
  EXPECT_TRUE(value) << text << ": " << (value ? "" : value.error().message);
  return value ? value->value() : std::numeric_limits<double>::quiet_NaN();
}

template <class Q>
std::string refusal(std::string_view text) {
  const Result<Q> value = parse<Q>(text);
  EXPECT_FALSE(value) << "\"" << text << "\" was read as " << (value ? value->value() : 0);
  return value ? "" : value.error().message;
}

::testing::AssertionResult says(const std::string& message, std::string_view fragment) {
  if (message.find(fragment) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "\"" << message << "\" does not say " << fragment;
}

TEST(QuantityText, ReadsBitsAndBytesApart) {
  EXPECT_DOUBLE_EQ(read<BytesPerSecond>("400 Gb/s"), 50e9);
  EXPECT_DOUBLE_EQ(read<BytesPerSecond>("400 GB/s"), 400e9);
  EXPECT_DOUBLE_EQ(read<BytesPerSecond>("400 Gbps"), 50e9);
  EXPECT_DOUBLE_EQ(read<BytesPerSecond>("3.35 TB/s"), 3.35e12);
}

TEST(QuantityText, ReadsPowersOfTenAndOfTwoApart) {
  EXPECT_DOUBLE_EQ(read<Bytes>("80 GiB"), 80 * 0x1p30);
  EXPECT_DOUBLE_EQ(read<Bytes>("80 GB"), 80e9);
  EXPECT_DOUBLE_EQ(read<Bytes>("2 KiB"), 2048);
  EXPECT_DOUBLE_EQ(read<Bytes>("2 kB"), 2000);
  EXPECT_DOUBLE_EQ(read<Bytes>("2 KB"), 2000);
  EXPECT_DOUBLE_EQ(read<Bytes>("5EB"), 5e18);
  EXPECT_DOUBLE_EQ(read<Bytes>("5 B"), 5);
}

TEST(QuantityText, ReadsRatesPowersAndTimes) {
  EXPECT_DOUBLE_EQ(read<FlopsPerSecond>("989 TFLOP/s"), 989e12);
  EXPECT_DOUBLE_EQ(read<FlopsPerSecond>("4.5 PFLOPS"), 4.5e15);
  EXPECT_DOUBLE_EQ(read<FlopsPerSecond>("1979 TOPS"), 1979e12);
  EXPECT_DOUBLE_EQ(read<Flops>("3.1e24 FLOP"), 3.1e24);
  EXPECT_DOUBLE_EQ(read<Watts>("12 MW"), 12e6);
  EXPECT_DOUBLE_EQ(read<Watts>("700 W"), 700);
  EXPECT_DOUBLE_EQ(read<Joules>("250 kWh"), 250 * 3.6e6);
  EXPECT_DOUBLE_EQ(read<Joules>("3 MJ"), 3e6);
  EXPECT_DOUBLE_EQ(read<Seconds>("12 ms"), 0.012);
  EXPECT_DOUBLE_EQ(read<Seconds>("1.5 us"), 1.5e-6);
  EXPECT_DOUBLE_EQ(read<Seconds>("30 min"), 1800);
  EXPECT_DOUBLE_EQ(read<Seconds>("1.5 h"), 5400);
  EXPECT_DOUBLE_EQ(read<Seconds>("2 days"), 172800);
  EXPECT_DOUBLE_EQ(read<Seconds>("1 week"), 604800);
  EXPECT_DOUBLE_EQ(read<Seconds>("90m"), 5400);
  EXPECT_DOUBLE_EQ(read<Seconds>("1h30m"), 5400);
  EXPECT_DOUBLE_EQ(read<Seconds>("1 h 30 min"), 5400);
  EXPECT_DOUBLE_EQ(read<Seconds>("90 minutes"), 5400);
  EXPECT_DOUBLE_EQ(read<Seconds>("00:05:00"), 300);
  EXPECT_DOUBLE_EQ(read<Seconds>("1-12:00:30"), 129630);
}

TEST(QuantityText, ReadsMoneyCarbonAndTokens) {
  EXPECT_DOUBLE_EQ(read<DollarsPerSecond>("$2.50/h") * 3600, 2.5);
  EXPECT_DOUBLE_EQ(read<DollarsPerSecond>("2.50 USD/h") * 3600, 2.5);
  EXPECT_DOUBLE_EQ(read<DollarsPerJoule>("$0.08/kWh") * 3.6e6, 0.08);
  EXPECT_DOUBLE_EQ(read<DollarsPerJoule>("$80/MWh") * 3.6e6, 0.08);
  EXPECT_DOUBLE_EQ(read<DollarsPerByte>("$0.02/GB") * 1e9, 0.02);
  EXPECT_DOUBLE_EQ(read<Dollars>("$30000"), 30000);
  EXPECT_DOUBLE_EQ(read<Dollars>("$30k"), 30000);
  EXPECT_DOUBLE_EQ(read<Dollars>("$1.2B"), 1.2e9);
  EXPECT_DOUBLE_EQ(read<Dollars>("3 M$"), 3e6);
  EXPECT_DOUBLE_EQ(read<GramsCo2PerJoule>("350 g/kWh") * 3.6e6, 350);
  EXPECT_DOUBLE_EQ(read<GramsCo2PerJoule>("350 kg/MWh") * 3.6e6, 350);
  EXPECT_DOUBLE_EQ(read<GramsCo2>("150 kg"), 150e3);
  EXPECT_DOUBLE_EQ(read<GramsCo2>("2 kt"), 2e9);
  EXPECT_DOUBLE_EQ(read<Tokens>("2T tokens"), 2e12);
  EXPECT_DOUBLE_EQ(read<Tokens>("15B tokens"), 15e9);
  EXPECT_DOUBLE_EQ(read<Tokens>("1 token"), 1);
}

TEST(QuantityText, ReadsThousandsWithCommasBehindADollarSignOnly) {
  EXPECT_DOUBLE_EQ(read<Dollars>("$1,234,567"), 1234567);
  EXPECT_DOUBLE_EQ(read<DollarsPerSecond>("$1,234.50/h") * 3600, 1234.5);
  EXPECT_TRUE(says(refusal<Dollars>("$1,23"), "unknown unit"));
  EXPECT_TRUE(says(refusal<Dollars>("$1,2345"), "unknown unit"));
  EXPECT_TRUE(says(refusal<Bytes>("1,024 B"), "unknown unit"));
}

TEST(QuantityText, ReadsWithOrWithoutBlanksAndExponents) {
  for (const char* text : {"400Gb/s", "  400 Gb/s\t", "4e2 Gb/s", "400.0 Gb/s", "0.4 T b/s"}) {
    EXPECT_DOUBLE_EQ(read<BytesPerSecond>(text), 50e9) << text;
  }
}

TEST(QuantityText, ReadsZero) {
  EXPECT_EQ(read<Watts>("0 W"), 0);
  EXPECT_EQ(read<Dollars>("$0"), 0);
}

TEST(QuantityText, RefusesANumberWithoutUnit) {
  EXPECT_TRUE(says(refusal<Bytes>("80"), "\"80\" has no unit; expected a size such as \"80 GiB\""));
  EXPECT_TRUE(says(refusal<Seconds>("1e3"), "has no unit"));
}

TEST(QuantityText, RefusesUnknownUnitsAndThoseOfAnotherDimension) {
  EXPECT_TRUE(says(refusal<Bytes>("80 GiG"), "unknown unit \"GiG\""));
  EXPECT_TRUE(says(refusal<Bytes>("80 GB/s"), "unknown unit \"GB/s\""));
  EXPECT_TRUE(says(refusal<Bytes>("80 Gb"), "unknown unit \"Gb\""));
  EXPECT_TRUE(says(refusal<Watts>("12 mW"), "unknown unit \"mW\""));
  EXPECT_TRUE(says(refusal<Watts>("12 MWh"), "unknown unit \"MWh\""));
  EXPECT_TRUE(says(refusal<Seconds>("30 min 1 h"), "unknown unit"));
  EXPECT_TRUE(says(refusal<Seconds>("1 h 30"), "unknown unit"));
  EXPECT_TRUE(says(refusal<Seconds>("5:00"), "unknown unit"));
  EXPECT_TRUE(says(refusal<Seconds>("00:61:00"), "unknown unit"));
  EXPECT_TRUE(says(refusal<Seconds>("3 ks"), "unknown unit"));
  EXPECT_TRUE(says(refusal<BytesPerSecond>("400 gb/s"), "unknown unit"));
  EXPECT_TRUE(says(refusal<BytesPerSecond>("$5"), "unknown unit"));
  EXPECT_TRUE(says(refusal<Watts>("0x10 W"), "unknown unit"));
}

TEST(QuantityText, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "   ", "W", "twelve W", "+5 W", "--5 W", ".", "$", "$ /h", "e5 W"}) {
    EXPECT_TRUE(says(refusal<Watts>(text), "is not a power; expected a power such as")) << text;
  }
}

TEST(QuantityText, RefusesNegativeInfiniteAndAbsurdAmounts) {
  EXPECT_TRUE(says(refusal<Watts>("-1 W"), "is negative"));
  EXPECT_TRUE(says(refusal<Dollars>("$-5"), "-$5.00 is negative"));
  EXPECT_TRUE(says(refusal<Watts>("inf W"), "not a finite number"));
  EXPECT_TRUE(says(refusal<Watts>("nan W"), "not a finite number"));
  EXPECT_TRUE(says(refusal<Watts>("1e999 W"), "out of range"));
  EXPECT_TRUE(says(refusal<Watts>("1e308 TW"), "not a finite number"));
  EXPECT_TRUE(says(refusal<Watts>("5e12 W"), "more than any power can be (at most 1 TW)"));
  EXPECT_TRUE(says(refusal<Seconds>("1000000 weeks"), "more than any time can be"));
}

TEST(QuantityText, ShowsAtMostTheBeginningOfALongText) {
  EXPECT_LT(refusal<Watts>(std::string(100'000, 'x')).size(), 200u);
  EXPECT_LT(refusal<Watts>("1 " + std::string(100'000, 'x')).size(), 300u);
}

TEST(QuantityText, PrintsTheWayPeopleWrite) {
  EXPECT_EQ(print(BytesPerSecond(50e9)), "50 GB/s");
  EXPECT_EQ(print(Bytes(80 * 0x1p30)), "80 GiB");
  EXPECT_EQ(print(Bytes(80e9)), "80 GB");
  EXPECT_EQ(print(Bytes(1)), "1 B");
  EXPECT_EQ(print(FlopsPerSecond(989.4e12)), "989.4 TFLOP/s");
  EXPECT_EQ(print(Watts(12e6)), "12 MW");
  EXPECT_EQ(print(Watts(0)), "0 W");
  EXPECT_EQ(print(Joules(3.6e6)), "1 kWh");
  EXPECT_EQ(print(Seconds(0.0125)), "12.5 ms");
  EXPECT_EQ(print(Seconds(90)), "90 s");
  EXPECT_EQ(print(Seconds(5400)), "90 min");
  EXPECT_EQ(print(Seconds(4 * 3600)), "4 h");
  EXPECT_EQ(print(Seconds(10 * 86400)), "10 d");
  EXPECT_EQ(print(Tokens(2e12)), "2T tokens");
  EXPECT_EQ(print(Tokens(15e9)), "15B tokens");
  EXPECT_EQ(print(Tokens(5)), "5 tokens");
}

TEST(QuantityText, PrintsMoneyInCentsThousandsAndBillions) {
  EXPECT_EQ(print(DollarsPerSecond(2.5 / 3600)), "$2.50/h");
  EXPECT_EQ(print(DollarsPerSecond(2.953 / 3600)), "$2.953/h");
  EXPECT_EQ(print(DollarsPerSecond(98.32 / 3600)), "$98.32/h");
  EXPECT_EQ(print(DollarsPerSecond(12345.0 / 3600)), "$12,345/h");
  EXPECT_EQ(print(DollarsPerJoule(0.08 / 3.6e6)), "$0.08/kWh");
  EXPECT_EQ(print(Dollars(999)), "$999.00");
  EXPECT_EQ(print(Dollars(30000)), "$30k");
  EXPECT_EQ(print(Dollars(1.2e9)), "$1.2B");
  EXPECT_EQ(print(Dollars(-1.5)), "-$1.50");
}

TEST(QuantityText, GoesToTheNextPrefixRatherThanPrintAThousand) {
  EXPECT_EQ(print(Watts(999.96)), "1 kW");
  EXPECT_EQ(print(Watts(999.4)), "999.4 W");
  EXPECT_EQ(print(Seconds(0.99996)), "1 s");
}

template <class Q>
void expect_print_is_read_back(Rng& rng) {
  const double high = kind_of<Q>().plausible_max / 2;
  for (int i = 0; i < 8'000; ++i) {
    // Twelve decades, evenly by logarithm, below the most a file may say.
    const Q value(high * math::pow(10, -12 * rng.uniform()));
    const std::string text = print(value);
    const Result<Q> again = parse<Q>(text);
    ASSERT_TRUE(again) << text << ": " << again.error().message;
    ASSERT_LE(std::abs(again->value() / value.value() - 1), 0.0005001)
        << value.value() << " printed as " << text;
  }
}

template <class... Q>
void expect_each_is_read_back(Rng& rng) {
  (expect_print_is_read_back<Q>(rng), ...);
}

TEST(QuantityText, ReadsBackWhatItPrintsOverTwelveDecadesOfEveryKind) {
  Rng rng = Rng::stream(1, "quantity_text");
  expect_each_is_read_back<Bytes, Flops, Seconds, Joules, Dollars, GramsCo2, Tokens>(rng);
  expect_each_is_read_back<BytesPerSecond, FlopsPerSecond, Watts, DollarsPerSecond>(rng);
  expect_each_is_read_back<DollarsPerJoule, DollarsPerByte, GramsCo2PerJoule>(rng);
}

TEST(QuantityText, PrintsCountsWithCommas) {
  EXPECT_EQ(print_count(0), "0");
  EXPECT_EQ(print_count(999), "999");
  EXPECT_EQ(print_count(1000), "1,000");
  EXPECT_EQ(print_count(1234567), "1,234,567");
  EXPECT_EQ(print_count(-123456), "-123,456");
}

}  // namespace
}  // namespace orrery
