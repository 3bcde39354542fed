// bench/fidelity_plot.hpp - predicted against measured step times as an SVG, both axes logarithmic,
// a colour a source.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace orrery {

struct PlotPoint {
  std::string source;
  double measured = 1;
  double predicted = 1;
};

namespace detail {

constexpr double kPlotSize = 640;
constexpr double kPlotMargin = 60;

struct LogAxis {
  double low = 0;
  double high = 1;
  [[nodiscard]] double at(double value) const {
    return (std::log10(value) - low) / (high - low) * kPlotSize;
  }
};

inline std::string plot_frame(const LogAxis& axis) {
  std::string svg;
  for (double decade = axis.low; decade <= axis.high; ++decade) {
    const double at = axis.at(std::pow(10, decade));
    svg += fmt::format(
        "<path class=\"grid\" d=\"M{0:.1f} 0V{1}M0 {2:.1f}H{1}\"/>"
        "<text class=\"label\" x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4:g} s</text>"
        "<text class=\"label\" x=\"-8\" y=\"{5:.1f}\" text-anchor=\"end\">{4:g} s</text>\n",
        at, kPlotSize, kPlotSize - at, kPlotSize + 18, std::pow(10, decade), kPlotSize - at + 4);
  }
  const double tenth = kPlotSize * std::log10(1.1) / (axis.high - axis.low);
  svg += fmt::format(
      "<path class=\"band\" d=\"M0 {0}L{0} 0\" style=\"stroke-width:{1:.1f}\"/>"
      "<path class=\"equal\" d=\"M0 {0}L{0} 0\"/>\n",
      kPlotSize, 2 * tenth / std::sqrt(2));
  return svg;
}

}  // namespace detail

/// The shaded band is 10 % to both sides of equality.
inline std::string fidelity_svg(const std::vector<PlotPoint>& points, const std::string& title) {
  detail::LogAxis axis{.low = 9, .high = -9};
  for (const PlotPoint& point : points) {
    for (const double value : {point.measured, point.predicted}) {
      axis.low = std::min(axis.low, std::floor(std::log10(value)));
      axis.high = std::max(axis.high, std::ceil(std::log10(value)));
    }
  }
  std::map<std::string, std::string> colours;
  for (const PlotPoint& point : points) colours[point.source];
  int next = 0;
  for (auto& [source, colour] : colours) {
    const double hue = 360.0 * next / static_cast<double>(colours.size());
    colour = fmt::format("hsl({:.0f},70%,{}%)", hue, next++ % 2 == 0 ? 40 : 58);
  }
  const double width = detail::kPlotSize + 2 * detail::kPlotMargin + 150;
  const double height = detail::kPlotSize + 2 * detail::kPlotMargin;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"Helvetica,Arial,sans-serif\">\n<style>.grid{{stroke:#ddd;fill:none}}"
      ".band{{stroke:#e8eef6;fill:none}}.equal{{stroke:#888;fill:none}}.label{{font-size:11px;"
      "fill:#555}}.title{{font-size:15px;fill:#222}}</style>\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#fff\"/>\n<text class=\"title\" x=\"{2}\" y=\"30\">{3}</text>\n"
      "<g transform=\"translate({2} {4})\">\n",
      width, height, detail::kPlotMargin, title, detail::kPlotMargin - 14);
  svg += detail::plot_frame(axis);
  for (const PlotPoint& point : points) {
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\" "
        "fill-opacity=\"0.7\"/>\n",
        axis.at(point.measured), detail::kPlotSize - axis.at(point.predicted),
        colours[point.source]);
  }
  double y = 10;
  for (const auto& [source, colour] : colours) {
    svg += fmt::format(
        "<circle cx=\"{0}\" cy=\"{1}\" r=\"4\" fill=\"{2}\"/><text class=\"label\" "
        "x=\"{3}\" y=\"{4}\">{5}</text>\n",
        detail::kPlotSize + 20, y, colour, detail::kPlotSize + 30, y + 4, source);
    y += 18;
  }
  svg += fmt::format(
      "<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">measured"
      "</text><text class=\"label\" x=\"-{}\" y=\"-46\" text-anchor=\"middle\" "
      "transform=\"rotate(-90)\">predicted</text>\n</g>\n</svg>\n",
      detail::kPlotSize / 2, detail::kPlotSize + 38, detail::kPlotSize / 2);
  return svg;
}

}  // namespace orrery
