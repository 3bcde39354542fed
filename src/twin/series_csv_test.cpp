#include "twin/series_csv.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

namespace orrery {
namespace {

constexpr double kKwh = 3.6e6;
constexpr double kMwh = 3.6e9;

Instant at(const char* text) { return *Instant::parse(text); }

std::string price_refused(const std::string& text, const CsvColumns& columns = {}) {
  const auto series = read_price_series(text, "p.csv", columns);
  EXPECT_FALSE(series) << "accepted: " << text;
  return series ? "" : series.error().text();
}

TEST(SeriesCsv, ReadsAPriceByTheColumnInUtcAndTheUnitOfTheHeader) {
  const auto series = read_price_series(
      "Datetime (Local),Datetime (UTC),Price (USD/MWh)\r\n"
      "2021-12-31 18:00:00-06:00,2022-01-01 00:00:00+00:00,32.5\r\n"
      "2021-12-31 19:00:00-06:00,2022-01-01 01:00:00+00:00,-4\r\n",
      "p.csv");
  ASSERT_TRUE(series) << series.error().text();
  ASSERT_EQ(series->steps.size(), 2u);
  EXPECT_EQ(series->steps[0].from, at("2022-01-01T00:00:00Z"));
  EXPECT_DOUBLE_EQ(series->steps[0].value.value() * kMwh, 32.5);
  EXPECT_DOUBLE_EQ(series->steps[1].value.value() * kMwh, -4) << "the grid has too much";
  EXPECT_EQ(series->filled, 0u);
  EXPECT_EQ(series->period, Duration::hours(2));
}

TEST(SeriesCsv, ReadsCarbonAndFillsWhatIsMissing) {
  const auto series = read_carbon_series(
      "\xEF\xBB\xBFtimestamp,NG,avg_CI\n"
      "2022-01-01 00:00:00,1,-\n"
      "2022-01-01 01:00:00,1,200\n"
      "\n"
      "2022-01-01 02:00:00,1,NaN\n"
      "2022-01-01 03:00:00,1,\n"
      "2022-01-01T04:00:00+01:00,1,300\n",
      "c.csv");
  ASSERT_FALSE(series) << "04:00 at +01:00 is 03:00 again";
  const auto right = read_carbon_series(
      "timestamp,NG,avg_CI\n2022-01-01 00:00:00,1,-\n2022-01-01 01:00:00,1,200\n\n"
      "2022-01-01 02:00:00,1,NaN\n2022-01-01 03:00:00,1,\n2022-01-01T05:00:00+01:00,1,300",
      "c.csv");
  ASSERT_TRUE(right) << right.error().text();
  EXPECT_EQ(right->filled, 3u);
  const double expected[] = {200, 200, 200, 200, 300};
  ASSERT_EQ(right->steps.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(right->steps[i].value.value() * kKwh, expected[i], 1e-9);
  }
}

TEST(SeriesCsv, TakesColumnsAndUnitsThatAreGiven) {
  const auto series = read_price_series("when,cost\n2022-01-01,1\n", "p.csv", {"when", "cost", ""});
  ASSERT_FALSE(series);
  const auto named = read_price_series("when,\"cost\"\n2022-01-01 00:00:00,0.1\n", "p.csv",
                                       {"WHEN", "cost", "USD/kWh"});
  ASSERT_TRUE(named) << named.error().text();
  EXPECT_DOUBLE_EQ(named->steps[0].value.value() * kKwh, 0.1);
  EXPECT_EQ(named->period, Duration::hours(24));
}

TEST(SeriesCsv, SaysWhereAndWhatIsWrong) {
  const std::string head = "timestamp,Price (USD/MWh)\n";
  EXPECT_EQ(price_refused(head + "2022-01-01 01:00:00,5\n2022-01-01 01:00:00,6\n"),
            "p.csv:3:1: 2022-01-01T01:00:00Z follows 2022-01-01T01:00:00Z: expected a later time "
            "(a local clock turns back; take the column in UTC)");
  EXPECT_EQ(price_refused(head + "2022-01-01 01:00:00,5x\n"), "p.csv:2:21: \"5x\" is not a number");
  EXPECT_EQ(price_refused(head + "2022-01-01 01:00:00,inf\n"),
            "p.csv:2:21: \"inf\" is not a number");
  EXPECT_EQ(
      price_refused(head + "yesterday,5\n"),
      "p.csv:2:1: \"yesterday\" is not a time: expected a time such as 2022-01-31 13:00:00+00:00");
  EXPECT_EQ(price_refused(head + "2022-01-01 01:00:00\n"),
            "p.csv:2:1: expected at least 2 cells, found 1");
  EXPECT_EQ(price_refused(head), "p.csv:1:1: no row with a value of price");
  EXPECT_EQ(price_refused(head + "2022-01-01 01:00:00,-\n"),
            "p.csv:1:1: no row with a value of price");
  EXPECT_EQ(price_refused(""), "p.csv:1:1: expected a line that names the columns, found nothing");
  EXPECT_EQ(price_refused("timestamp,Price (EUR/MWh)\n"),
            "p.csv:1:11: the unit of \"Price (EUR/MWh)\" is \"EUR/MWh\"; expected one of USD/MWh, "
            "USD/kWh, $/MWh, $/kWh");
  EXPECT_EQ(price_refused("timestamp,Price\n"),
            "p.csv:1:11: the unit of \"Price\" is not stated; expected one of USD/MWh, USD/kWh, "
            "$/MWh, $/kWh");
  EXPECT_EQ(price_refused("timestamp,price a,price b\n"),
            "p.csv:1:19: both \"price a\" and \"price b\" may be meant; name the column");
  EXPECT_NE(price_refused(head, {"timestmap", "", ""}).find("did you mean \"timestamp\"?"),
            std::string::npos);
  EXPECT_NE(price_refused(head + "2022-01-01 01:00:00,1e300\n").find("p.csv:2:21: 1e+300 is"),
            std::string::npos);
  EXPECT_EQ(price_refused("a\xFF"), "p.csv:1:2: expected text in UTF-8");
}

TEST(SeriesCsv, PlaysAnyPartOfItselfAtAnyTimeAndRepeats) {
  const auto series = read_price_series(
      "timestamp,Price (USD/MWh)\n2022-01-01 00:00:00,10\n2022-01-01 01:00:00,20\n"
      "2022-01-01 02:00:00,30\n",
      "p.csv");
  ASSERT_TRUE(series);
  const Instant start = Instant() + Duration::hours(1000);
  const auto played = repeated(
      *series,
      {.from = at("2022-01-01T01:30:00Z"), .at = start, .length = Duration::hours(24) * 365});
  ASSERT_TRUE(played) << played.error().text();
  const auto price = [&](double hours) {
    return played->at(start + Duration::from_seconds(hours * 3600)).value() * kMwh;
  };
  EXPECT_NEAR(price(0), 20, 1e-9);
  EXPECT_NEAR(price(0.49), 20, 1e-9);
  EXPECT_NEAR(price(0.51), 30, 1e-9);
  EXPECT_NEAR(price(1.51), 10, 1e-9) << "the three hours begin again";
  EXPECT_NEAR(price(3 * 2000 + 0.51), 30, 1e-9);
  EXPECT_NEAR(played->mean(start, start + Duration::hours(300)).value() * kMwh, 20, 1e-9);
  // A year before the series began is the same as within it, by whole periods.
  const auto earlier = repeated(
      *series, {.from = at("2021-12-31T22:30:00Z"), .at = start, .length = Duration::hours(2)});
  ASSERT_TRUE(earlier);
  EXPECT_NEAR(earlier->at(start).value() * kMwh, 20, 1e-9);
}

TEST(SeriesCsv, RefusesToPlayForNoTimeOrTooLong) {
  const auto series = read_price_series(
      "timestamp,Price (USD/MWh)\n2022-01-01T00:00:00Z,10\n2022-01-01T00:00:00.000000001Z,20\n",
      "p.csv");
  ASSERT_TRUE(series);
  EXPECT_FALSE(repeated(*series, {.length = Duration()}));
  const auto endless = repeated(*series, {.length = Duration::max()});
  ASSERT_FALSE(endless);
  EXPECT_NE(endless.error().message.find("more than 1048576 steps"), std::string::npos);
}

/// A file of the shared traces, unpacked; "" where there is none.
std::string unpacked(const std::string& name) {
  const std::string path = ORRERY_SOURCE_DIR "/../shared/data/traces/energy/" + name;
  std::string text;
  std::FILE* pipe = popen(("gzip -dc '" + path + "' 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return text;
  char block[65536];
  for (std::size_t n = 0; (n = std::fread(block, 1, sizeof block, pipe)) > 0;) {
    text.append(block, n);
  }
  pclose(pipe);
  return text;
}

TEST(SeriesCsv, ReadsAYearOfRealPrices) {
  const std::string texas = unpacked("price_US-TEX-ERCO_2022_hourly.csv.gz");
  const std::string california = unpacked("price_US-CAL-CISO_2022_hourly.csv.gz");
  if (texas.empty() || california.empty()) GTEST_SKIP() << "no shared traces";
  const auto read = read_price_series(texas, "erco.csv");
  ASSERT_TRUE(read) << read.error().text();
  ASSERT_EQ(read->steps.size(), 8760u);
  EXPECT_EQ(read->period, Duration::hours(8760));
  double sum = 0;
  double highest = 0;
  for (const auto& step : read->steps) {
    sum += step.value.value() * kMwh;
    highest = std::max(highest, step.value.value() * kMwh);
  }
  EXPECT_NEAR(sum / 8760, 64.3, 0.05);
  EXPECT_NEAR(highest, 2456.7, 0.05);
  const auto year = repeated(
      *read, {.from = read->steps[4000].from, .at = Instant(), .length = Duration::hours(8760)});
  ASSERT_TRUE(year);
  EXPECT_NEAR(year->mean(Instant(), Instant() + Duration::hours(8760)).value() * kMwh, sum / 8760,
              1e-6)
      << "any year of it is the whole";

  const auto ciso = read_price_series(california, "ciso.csv");
  ASSERT_TRUE(ciso) << ciso.error().text();
  EXPECT_EQ(std::count_if(ciso->steps.begin(), ciso->steps.end(),
                          [](const auto& step) { return step.value.value() < 0; }),
            36);
}

TEST(SeriesCsv, ReadsAYearOfRealCarbon) {
  const std::string text = unpacked("eia_CISO_mix_avgCI_2022_hourly.csv.gz");
  if (text.empty()) GTEST_SKIP() << "no shared traces";
  const auto read = read_carbon_series(text, "ciso.csv");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->filled, 3u);
  double sum = 0;
  for (const auto& step : read->steps) sum += step.value.value() * kKwh;
  EXPECT_NEAR(sum / static_cast<double>(read->steps.size()), 256.2, 0.3);
}

}  // namespace
}  // namespace orrery
