// report/plot/plot.hpp - plots of reports and studies: values in, one fragment of HTML out.
//
// A plot is a legend and an SVG that is drawn without any script; the script of page_html() adds
// values under the pointer and legends that switch series off. Colours are classes of the page's
// style sheet, so that a plot follows the light or dark theme of its reader.
// Invariants: equal input gives equal bytes; every text is escaped; what is not finite is a gap.
// Cost: O(points), of which at most kPlotPointsMax of a series are drawn. No extreme is lost: a
// longer line is drawn as its mean within the band of its range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/plot/axis.hpp"

namespace orrery {

inline constexpr std::size_t kPlotPointsMax = 1000;
inline constexpr std::size_t kHeatColumnsMax = 200;
inline constexpr std::size_t kHeatRowsMax = 60;

/// What a colour stands for: a series of its own, the rest, or an alarm.
enum class Tone : std::uint8_t { kSeries, kMuted, kAlarm };

/// Ascending x. `low` and `high` are the band around y; both empty: none.
struct Line {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> low = {};
  std::vector<double> high = {};
};

/// Whether the points of a line are marked: they were measured, and the line only joins them.
enum class PointMarks : std::uint8_t { kNone, kDots };

/// `span` is the range of x; without it the range is that of the values.
struct LinePlot {
  Axis x;
  Axis y;
  std::vector<Line> lines;
  std::optional<ValueRange> span = std::nullopt;
  PointMarks marks = PointMarks::kNone;
};

struct StackLayer {
  std::string name;
  std::vector<double> values;
  Tone tone = Tone::kSeries;
};

/// Layers on top of each other, the first at the foot. `at` ascends and is common to all.
struct StackedPlot {
  Axis x;
  Axis y;
  std::vector<double> at;
  std::vector<StackLayer> layers;
  std::optional<ValueRange> span = std::nullopt;
};

struct BarPart {
  std::string name;
  Tone tone = Tone::kSeries;
};

/// One value for each part, side by side; an unknown value (NaN) has no length, and a bar without
/// any known amount is labelled "-". `mark` is a line across the bar: a limit or promise.
struct Bar {
  std::string label;
  std::vector<double> parts;
  std::optional<double> mark = std::nullopt;
};

/// Horizontal bars to one scale, from zero.
struct BarPlot {
  Axis value;
  std::vector<BarPart> parts;
  std::vector<Bar> bars;
  std::string mark = {};  ///< what the marks are
};

/// A whole, its losses one by one, and what is left of it.
struct WaterfallPlot {
  struct Loss {
    std::string name;
    double amount = 0;
  };
  Axis value;
  std::string whole;
  double amount = 0;
  std::vector<Loss> losses;
  std::string rest;
};

/// Shares from 0 to 1 by row, `columns` equal parts of `span` each; NaN where there is none. More
/// than kHeatColumnsMax x kHeatRowsMax are averaged down to that.
struct HeatMap {
  Axis x;
  ValueRange span;
  std::string value;  ///< what the share is of
  std::size_t columns = 0;
  std::vector<std::string> rows;
  std::vector<double> cells;
};

/// What each job held of each row over time. The height of a bar is its amount over the row's
/// capacity. Bars of a row that overlap in time are below each other, the first at the top of the
/// row.
struct GanttPlot {
  struct Row {
    std::string name;
    double capacity = 0;
  };
  struct Bar {
    std::size_t row = 0;
    std::size_t group = 0;
    double from = 0;
    double to = 0;
    double amount = 0;
    std::string label;
    bool fault = false;  ///< its end is marked
  };
  Axis x;
  ValueRange span;
  std::string value;  ///< what is drawn
  std::vector<Row> rows;
  std::vector<std::string> groups;
  std::vector<Bar> bars;  ///< by start
  std::string fault;      ///< what marked ends are
};

struct Dots {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;
  Tone tone = Tone::kSeries;
};

/// If a group has more than kPlotPointsMax dots, evenly spaced ones are drawn.
struct ScatterPlot {
  Axis x;
  Axis y;
  std::vector<Dots> groups;
  std::optional<ValueRange> span = std::nullopt;
};

/// The distribution of sorted values: x a value, y the share of values up to it.
[[nodiscard]] Line cdf_line(std::string name, std::span<const double> sorted);

/// Returns "Nothing to show." when there is no finite value.
[[nodiscard]] std::string plot_html(const LinePlot& plot);
[[nodiscard]] std::string plot_html(const StackedPlot& plot);
[[nodiscard]] std::string plot_html(const BarPlot& plot);
[[nodiscard]] std::string plot_html(const WaterfallPlot& plot);
[[nodiscard]] std::string plot_html(const HeatMap& plot);
[[nodiscard]] std::string plot_html(const GanttPlot& plot);
[[nodiscard]] std::string plot_html(const ScatterPlot& plot);

}  // namespace orrery
