#include "report/plot/plot.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/xml_test.hpp"

namespace orrery {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

const std::string kRude = "<b>\"R&D\"</b>";

std::size_t count_of(const std::string& text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// Invariants of every plot.
void expect_sound(const std::string& html) {
  EXPECT_EQ(xml_fault(html), "");
  EXPECT_EQ(html.find("nan"), html.npos) << html.substr(0, 2000);
  EXPECT_EQ(html.find("inf"), html.npos);
  EXPECT_EQ(html.find("<b>"), html.npos);
}

bool shows_nothing(const std::string& html) {
  return html.find("Nothing to show") != html.npos && html.find("<svg") == html.npos;
}

TEST(Plot, ALineBreaksWhereAValueIsNotFinite) {
  const std::string html = plot_html(
      LinePlot{.x = {.title = kRude},
               .y = {.title = kRude},
               .lines = {{.name = kRude, .x = {0, 1, 2, 3, 4}, .y = {1, 2, kNan, kInfinity, 3}}}});
  expect_sound(html);
  const std::size_t data = html.find(" d=\"", html.find("data-n"));
  EXPECT_EQ(count_of(html.substr(data, html.find("/>", data) - data), "M"), 2u);
}

TEST(Plot, ABandIsDrawnUnderItsLineAndALegendForMoreThanOne) {
  const Line line{.name = "a", .x = {0, 1}, .y = {1, 2}, .low = {0, kNan}, .high = {2, 3}};
  const std::string one = plot_html(LinePlot{.x = {"x"}, .y = {"y"}, .lines = {line}});
  expect_sound(one);
  EXPECT_EQ(count_of(one, "class=\"band"), 1u);
  EXPECT_EQ(count_of(one, "<button"), 0u);
  const std::string two = plot_html(LinePlot{.x = {"x"}, .y = {"y"}, .lines = {line, line}});
  expect_sound(two);
  EXPECT_EQ(count_of(two, "<button"), 2u);
}

TEST(Plot, ALongLineIsItsMeanWithinItsRange) {
  Line line{.name = "a"};
  for (int i = 0; i < 20'000; ++i) {
    line.x.push_back(i);
    line.y.push_back(i == 9000 ? 1000 : i % 7);
  }
  const std::string html = plot_html(LinePlot{.x = {"x"}, .y = {"jobs"}, .lines = {line}});
  expect_sound(html);
  EXPECT_NE(html.find("jobs, mean and range"), html.npos);
  EXPECT_NE(html.find(">1000<"), html.npos) << "the peak is in sight";
  EXPECT_LT(html.size(), 30'000u);
}

TEST(Plot, LayersAreStackedAndTheTopOnePaintedFirst) {
  const std::string html =
      plot_html(StackedPlot{.x = {"x"},
                            .y = {"devices"},
                            .at = {0, 1},
                            .layers = {{"used", {3, 4}}, {"free", {7, 6}, Tone::kMuted}}});
  expect_sound(html);
  EXPECT_LT(html.find("data-n=\"free\""), html.find("data-n=\"used\""));
  // Ten devices reach the top of the area at both ends.
  EXPECT_NE(html.find("data-n=\"free\" d=\"M28 26 546 26 "), html.npos) << html;
}

TEST(Plot, BarsCarryTheirMarks) {
  const std::string html = plot_html(BarPlot{.value = {.title = "use", .symbol = "GPU-h"},
                                             .parts = {{kRude}, {"beyond"}},
                                             .bars = {{kRude, {1, kNan}, 2.0}, {"b", {3, 4}, {}}},
                                             .mark = "guarantee"});
  expect_sound(html);
  EXPECT_EQ(count_of(html, "class=\"mark\""), 1u);
  EXPECT_EQ(count_of(html, "<rect"), 3u);
  EXPECT_NE(html.find("7 GPU-h"), html.npos);
}

TEST(Plot, ABarOfWhichNothingIsKnownHasNoAmount) {
  const std::string html = plot_html(BarPlot{.value = {.title = "energy", .symbol = "J"},
                                             .parts = {{"a"}, {"b"}},
                                             .bars = {{"known", {3, 0}}, {"unknown", {0, kNan}}}});
  expect_sound(html);
  EXPECT_NE(html.find(">3 J<"), html.npos);
  EXPECT_EQ(count_of(html, "<rect"), 1u);
  EXPECT_EQ(count_of(html, ">-<"), 1u) << html;
}

TEST(Plot, AWaterfallEndsAtWhatItsLossesLeave) {
  const std::string html = plot_html(WaterfallPlot{.value = {"hours"},
                                                   .whole = "all",
                                                   .amount = 100,
                                                   .losses = {{"idle", 30}, {kRude, 20}},
                                                   .rest = "useful"});
  expect_sound(html);
  EXPECT_NE(html.find("useful: 50 (50 %)"), html.npos);
  EXPECT_NE(html.find("idle: 30 (30 %)"), html.npos);
}

TEST(Plot, ASmallLossOfAWaterfallIsWrittenInAFewDigits) {
  const std::string html = plot_html(WaterfallPlot{.value = {"hours"},
                                                   .whole = "all",
                                                   .amount = 100,
                                                   .losses = {{"idle", 0.000624}, {"none", 0}},
                                                   .rest = "useful"});
  expect_sound(html);
  EXPECT_NE(html.find("(&lt; 0.01 %)"), html.npos);
  EXPECT_NE(html.find(">0 (0 %)<"), html.npos);
}

TEST(Plot, AHeatMapIsAveragedDownToItsLimits) {
  HeatMap map{.x = {"time"}, .span = {0, 100}, .value = "share", .columns = 1000};
  for (int row = 0; row < 300; ++row) {
    map.rows.push_back("rack|" + std::to_string(row));
    for (std::size_t column = 0; column < map.columns; ++column) {
      map.cells.push_back(
          row < 5 ? kNan : static_cast<double>((column + static_cast<std::size_t>(row)) % 11) / 10);
    }
  }
  const std::string html = plot_html(map);
  expect_sound(html);
  const std::size_t cells = html.find("data-cells=\"") + 12;
  EXPECT_EQ(html.find('"', cells) - cells, kHeatColumnsMax * kHeatRowsMax);
  EXPECT_EQ(html.substr(cells, kHeatColumnsMax), std::string(kHeatColumnsMax, '.'));
  EXPECT_NE(html.find("rack/0 to rack/4|rack/5 to rack/9|"), html.npos);
}

TEST(Plot, AShareIsPaintedByItsTenth) {
  const std::string html = plot_html(HeatMap{.x = {"time"},
                                             .span = {0, 4},
                                             .value = "share",
                                             .columns = 4,
                                             .rows = {"a"},
                                             .cells = {0, 0.05, 0.5, 1}});
  EXPECT_NE(html.find("data-cells=\"0159\""), html.npos) << html;
}

TEST(Plot, TooManyDotsAreThinnedEvenly) {
  Dots dots{.name = kRude};
  for (int i = 0; i < 50'000; ++i) {
    dots.x.push_back(i);
    dots.y.push_back(1 + i % 100);
  }
  const std::string html = plot_html(
      ScatterPlot{.x = {"x"}, .y = {.title = "y", .scale = AxisScale::kLog}, .groups = {dots}});
  expect_sound(html);
  EXPECT_EQ(count_of(html, "h0"), kPlotPointsMax);
}

TEST(Plot, ADistributionClimbsFromZeroToOneInItsOwnSteps) {
  const Line three = cdf_line("jobs", std::vector<double>{1, 2, 2});
  EXPECT_EQ(three.x, (std::vector<double>{1, 1, 2, 2, 2, 2}));
  EXPECT_EQ(three.y.front(), 0);
  EXPECT_EQ(three.y.back(), 1);
  EXPECT_TRUE(std::ranges::is_sorted(three.y));
  std::vector<double> many(100'000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<double>(i);
  const Line line = cdf_line("jobs", many);
  EXPECT_LE(line.x.size(), kPlotPointsMax);
  EXPECT_EQ(line.x.back(), 99'999);
  EXPECT_TRUE(std::ranges::is_sorted(line.x));
  EXPECT_TRUE(cdf_line("none", {}).x.empty());
}

TEST(Plot, WithoutValuesThereIsNothingToShow) {
  EXPECT_TRUE(shows_nothing(plot_html(LinePlot{})));
  EXPECT_TRUE(shows_nothing(plot_html(LinePlot{.lines = {{.name = "a", .x = {1}, .y = {kNan}}}})));
  EXPECT_TRUE(shows_nothing(plot_html(StackedPlot{})));
  EXPECT_TRUE(shows_nothing(plot_html(BarPlot{})));
  EXPECT_TRUE(shows_nothing(plot_html(WaterfallPlot{})));
  EXPECT_TRUE(shows_nothing(plot_html(HeatMap{})));
  EXPECT_TRUE(shows_nothing(plot_html(ScatterPlot{})));
}

}  // namespace
}  // namespace orrery
