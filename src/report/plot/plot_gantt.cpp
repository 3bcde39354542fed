#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "report/plot/plot.hpp"
#include "report/plot/plot_frame.hpp"

namespace orrery {
namespace {

/// A part of a row's height, in the row's amounts, and the time until which it is taken.
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

std::string bar_path(const GanttPlot::Bar& bar, const std::vector<Lane>& lanes, double capacity,
                     const RowFrame& frame) {
  const double from = frame.x(bar.from);
  const double width = std::max(frame.x(bar.to) - from, 0.4);
  const double gap = frame.row_height() >= 10 ? 1 : 0;
  const double scale = (frame.row_height() - gap) / capacity;
  const double top = frame.area().y + frame.row_height() * static_cast<double>(bar.row);
  std::string data;
  for (const Lane& lane : lanes) {
    const double height = std::max((lane.end - lane.begin) * scale, 0.2);
    data += fmt::format("M{} {}h{}v{}h-{}z", svg_number(from), svg_number(top + lane.begin * scale),
                        svg_number(width), svg_number(height), svg_number(width));
  }
  return data;
}

std::string bars_svg(const GanttPlot& plot, const std::vector<std::string>& colours,
                     const RowFrame& frame) {
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
                       bar_path(bar, lanes, capacity, frame));
    if (!bar.fault) continue;
    const double top = frame.area().y + frame.row_height() * static_cast<double>(bar.row);
    faults += fmt::format("M{} {}v{}", svg_number(frame.x(bar.to)), svg_number(top),
                          svg_number(frame.row_height()));
  }
  if (!faults.empty()) {
    svg += fmt::format("<path class=\"la\" data-k=\"{}\" d=\"{}\"/>\n", plot.groups.size(), faults);
  }
  return svg;
}

}  // namespace

std::string plot_html(const GanttPlot& plot) {
  if (plot.bars.empty() || plot.rows.empty()) return nothing_to_show();
  std::vector<std::string> names;
  names.reserve(plot.rows.size());
  for (const GanttPlot::Row& row : plot.rows) names.push_back(row.name);
  const RowFrame frame(FittedAxis(plot.x, plot.span, {}), std::move(names),
                       {.all = 360, .least = 5, .most = 40});
  Palette palette;
  std::vector<std::string> colours;
  std::vector<LegendEntry> legend;
  for (const std::string& group : plot.groups) {
    colours.push_back(palette.next(Tone::kSeries));
    legend.push_back({group, colours.back()});
  }
  if (std::ranges::any_of(plot.bars, &GanttPlot::Bar::fault)) legend.push_back({plot.fault, "a"});
  return frame.html(
      {.value = plot.value, .legend = std::move(legend), .inside = bars_svg(plot, colours, frame)});
}

}  // namespace orrery
