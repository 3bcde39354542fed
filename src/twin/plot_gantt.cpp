#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "twin/plot.hpp"
#include "twin/plot_frame.hpp"

namespace orrery {
namespace {

constexpr double kChartHeight = 360;
constexpr double kTop = 26;

/// A part of a row's height, in the row's amounts, and until when it is taken.
struct Lane {
  double begin = 0;
  double end = 0;
  double until = 0;
};

// The lowest parts of a row that are free, together as high as the bar; less where the row is full.
std::vector<Lane> take_lanes(std::vector<Lane>& taken, const GanttPlot::Bar& bar, double capacity) {
  std::erase_if(taken, [&](const Lane& lane) { return lane.until <= bar.from; });
  std::vector<Lane> got;
  double left = bar.amount;
  double foot = 0;
  const auto take_up_to = [&](double top) {
    const double size = std::min(left, top - foot);
    if (size > 1e-9) got.push_back({foot, foot + size, bar.to});
    left -= std::max(size, 0.0);
  };
  for (const Lane& lane : taken) {
    take_up_to(lane.begin);
    foot = std::max(foot, lane.end);
  }
  take_up_to(capacity);
  taken.insert(taken.end(), got.begin(), got.end());
  std::ranges::sort(taken, {}, &Lane::begin);
  return got;
}

std::string row_names(const GanttPlot& plot) {
  std::string names;
  for (const GanttPlot::Row& row : plot.rows) {
    if (!names.empty()) names += '|';
    std::string name = row.name;
    std::ranges::replace(name, '|', '/');
    names += name;
  }
  return names;
}

/// Where time and rows are in the picture.
struct Place {
  const FittedAxis& axis;
  Rect area;
  double thick;

  [[nodiscard]] double x(double value) const { return area.x + axis.part(value) * area.width; }
};

std::string bar_svg(const GanttPlot::Bar& bar, const std::vector<Lane>& lanes, double capacity,
                    const Place& place) {
  const double from = place.x(bar.from);
  const double width = std::max(place.x(bar.to) - from, 0.4);
  const double gap = place.thick >= 10 ? 1 : 0;
  const double scale = (place.thick - gap) / capacity;
  const double top = place.area.y + place.thick * static_cast<double>(bar.row);
  std::string data;
  for (const Lane& lane : lanes) {
    const double height = std::max((lane.end - lane.begin) * scale, 0.2);
    data += fmt::format("M{} {}h{}v{}h-{}z", svg_number(from), svg_number(top + lane.begin * scale),
                        svg_number(width), svg_number(height), svg_number(width));
  }
  return data;
}

std::string bars_svg(const GanttPlot& plot, const std::vector<std::string>& colours,
                     const Place& place) {
  std::vector<std::vector<Lane>> taken(plot.rows.size());
  std::string svg;
  std::string faults;
  for (const GanttPlot::Bar& bar : plot.bars) {
    const double capacity = plot.rows[bar.row].capacity;
    if (!(capacity > 0)) continue;
    const std::vector<Lane> lanes = take_lanes(taken[bar.row], bar, capacity);
    if (lanes.empty()) continue;
    svg += fmt::format("<path class=\"bar f{}\" data-k=\"{}\" data-j=\"{}\" d=\"{}\"/>\n",
                       colours[bar.group], bar.group, escaped_xml(bar.label),
                       bar_svg(bar, lanes, capacity, place));
    if (!bar.fault) continue;
    const double top = place.area.y + place.thick * static_cast<double>(bar.row);
    faults += fmt::format("M{} {}v{}", svg_number(place.x(bar.to)), svg_number(top),
                          svg_number(place.thick));
  }
  if (!faults.empty()) {
    svg += fmt::format("<path class=\"la\" data-k=\"{}\" d=\"{}\"/>\n", plot.groups.size(), faults);
  }
  return svg;
}

}  // namespace

std::string plot_html(const GanttPlot& plot) {
  if (plot.bars.empty() || plot.rows.empty()) return nothing_to_show();
  constexpr TextStyle kName{.size = kTickSize, .ink = "soft"};
  double names = 0;
  for (const GanttPlot::Row& row : plot.rows) names = std::max(names, text_width(row.name, kName));
  const double left = std::min(names, 110.0) + 10;
  const auto rows = static_cast<double>(plot.rows.size());
  const double thick = std::clamp(kChartHeight / rows, 5.0, 40.0);
  const Rect area{left, kTop, kPlotWidth - left - 14, thick * rows};
  const FittedAxis axis(plot.x, plot.span, {});
  SvgCanvas canvas;
  canvas.box(area, "ground", 0);
  const auto stride = static_cast<std::size_t>(std::ceil(13 / thick));
  for (std::size_t row = 0; row < plot.rows.size(); row += stride) {
    const std::string& name = plot.rows[row].name;
    const double width = std::min(text_width(name, kName), left - 10);
    const double y = area.y + thick * (static_cast<double>(row) + 0.5) + 4;
    canvas.fitted_text({left - 6 - width, y}, width + 0.1, name, kName);
  }
  canvas.text({0, 13}, plot.value, {.size = 12, .ink = "soft"});
  Palette palette;
  std::vector<std::string> colours;
  std::vector<LegendEntry> legend;
  for (const std::string& group : plot.groups) {
    colours.push_back(palette.next(Tone::kSeries));
    legend.push_back({group, colours.back()});
  }
  if (std::ranges::any_of(plot.bars, &GanttPlot::Bar::fault)) legend.push_back({plot.fault, "a"});
  return picture_html(
      {.label = plot.value + " over " + axis.title(),
       .height = area.bottom() + 40,
       .data = axis_data("x", axis, {area.x, area.right()}) +
               fmt::format(" data-top=\"{}\" data-thick=\"{:.4f}\" data-rows=\"{}\"",
                           svg_number(area.y), thick, escaped_xml(row_names(plot))),
       .legend = std::move(legend),
       .elements = canvas.elements() + x_axis_svg(axis, area) +
                   clipped_svg(area, bars_svg(plot, colours, {axis, area, thick}))});
}

}  // namespace orrery
