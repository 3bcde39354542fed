#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/assert.hpp"
#include "report/plot/downsample.hpp"
#include "report/plot/plot.hpp"
#include "report/plot/plot_frame.hpp"

namespace orrery {
namespace {

constexpr std::size_t kCdfPoints = 300;

AxisFit vertical() { return {.ends = AxisEnds::kRounded, .ticks_max = 5}; }

std::string series_path(std::string_view style, std::size_t key, const std::string& data) {
  if (data.empty()) return {};
  return fmt::format("<path class=\"{}\" data-k=\"{}\" d=\"{}\"/>\n", style, key, data);
}

// Like series_path, with the name that the script shows beside the value.
std::string named_path(std::string_view style, std::size_t key, const std::string& name,
                       const std::string& data) {
  if (data.empty()) return {};
  return fmt::format("<path class=\"{}\" data-k=\"{}\" data-n=\"{}\" d=\"{}\"/>\n", style, key,
                     escaped_xml(name), data);
}

// The line with as many points as are drawn: a long line becomes its mean, with its range as a
// band.
Line reduced(const Line& line) {
  if (line.x.size() <= kPlotPointsMax) return line;
  if (line.low.empty()) {
    Envelope envelope = envelope_of(line.x, line.y, kPlotPointsMax / 3);
    return {line.name, std::move(envelope.x), std::move(envelope.mean), std::move(envelope.low),
            std::move(envelope.high)};
  }
  const std::vector<std::span<const double>> series = {line.y, line.low, line.high};
  Line kept{.name = line.name};
  for (const std::size_t i : kept_samples(series, kPlotPointsMax)) {
    kept.x.push_back(line.x[i]);
    kept.y.push_back(line.y[i]);
    kept.low.push_back(line.low[i]);
    kept.high.push_back(line.high[i]);
  }
  return kept;
}

std::string band_data(const PlotFrame& frame, const Line& line) {
  std::vector<Point> edge;
  edge.reserve(line.high.size() * 2);
  for (std::size_t i = 0; i < line.high.size(); ++i) {
    edge.push_back({frame.x(line.x[i]), frame.y(line.high[i])});
  }
  for (std::size_t i = line.low.size(); i > 0; --i) {
    edge.push_back({frame.x(line.x[i - 1]), frame.y(line.low[i - 1])});
  }
  std::erase_if(edge, [](const Point& p) { return !std::isfinite(p.x) || !std::isfinite(p.y); });
  return edge.empty() ? std::string() : path_through(edge) + 'z';
}

// A dot is a line without length.
std::string dots_data(std::span<const Point> points) {
  std::string data;
  for (const Point& at : points) {
    if (!std::isfinite(at.x) || !std::isfinite(at.y)) continue;
    data += fmt::format("M{} {}h0", svg_number(at.x), svg_number(at.y));
  }
  return data;
}

// Sums of the layers up to each, sample by sample; values that are not finite add nothing.
std::vector<std::vector<double>> running_sums(const StackedPlot& plot) {
  std::vector<std::vector<double>> sums;
  sums.reserve(plot.layers.size());
  std::vector<double> sum(plot.at.size(), 0.0);
  for (const StackLayer& layer : plot.layers) {
    ORRERY_ASSERT(layer.values.size() == plot.at.size(), "a layer has a value for each time");
    for (std::size_t i = 0; i < sum.size(); ++i) {
      if (std::isfinite(layer.values[i])) sum[i] += layer.values[i];
    }
    sums.push_back(sum);
  }
  return sums;
}

// Closes the area at the axis on both ends. Layers are painted from the top down, so each hides
// what is under it.
std::string area_data(const PlotFrame& frame, std::vector<Point> edge) {
  const double foot = frame.area().bottom();
  const double end = edge.back().x;
  edge.push_back({end, foot});
  edge.push_back({edge.front().x, foot});
  return path_through(edge) + 'z';
}

}  // namespace

std::string plot_html(const LinePlot& plot) {
  std::optional<ValueRange> across = plot.span;
  std::optional<ValueRange> up;
  Axis y = plot.y;
  for (const Line& line : plot.lines) {
    ORRERY_ASSERT(line.x.size() == line.y.size(), "a point has both coordinates");
    ORRERY_ASSERT(line.low.size() == line.high.size(), "a band has two edges");
    if (!plot.span) across = joined(across, range_of(line.x));
    for (const auto* values : {&line.y, &line.low, &line.high}) up = joined(up, range_of(*values));
    const bool enveloped = line.x.size() > kPlotPointsMax && line.low.empty();
    if (enveloped) y.title = plot.y.title + ", mean and range";
  }
  if (!across || !up) return nothing_to_show();
  const PlotFrame frame(FittedAxis(plot.x, *across, {}), FittedAxis(y, *up, vertical()));
  Palette palette;
  std::vector<LegendEntry> legend;
  std::string bands;
  std::string lines;
  for (const Line& whole : plot.lines) {
    const Line line = reduced(whole);
    const std::string colour = palette.next(Tone::kSeries);
    bands += series_path("band f" + colour, legend.size(), band_data(frame, line));
    std::vector<Point> points;
    points.reserve(line.x.size());
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      points.push_back({frame.x(line.x[i]), frame.y(line.y[i])});
    }
    lines += named_path("l" + colour, legend.size(), line.name, path_through(points));
    if (plot.marks == PointMarks::kDots) {
      lines += series_path("dots l" + colour, legend.size(), dots_data(points));
    }
    legend.push_back({line.name, colour});
  }
  return frame.html(std::move(legend), bands + lines);
}

std::string plot_html(const StackedPlot& plot) {
  const std::vector<std::vector<double>> sums = running_sums(plot);
  const std::optional<ValueRange> across = plot.span ? plot.span : range_of(plot.at);
  if (sums.empty() || plot.at.empty() || !across) return nothing_to_show();
  std::optional<ValueRange> up;
  for (const auto& sum : sums) up = joined(up, range_of(sum));
  const PlotFrame frame(FittedAxis(plot.x, *across, {}), FittedAxis(plot.y, *up, vertical()));
  const std::vector<std::span<const double>> series(sums.begin(), sums.end());
  const std::vector<std::size_t> kept = kept_samples(series, kPlotPointsMax);
  Palette palette;
  std::vector<LegendEntry> legend;
  std::string elements;
  for (std::size_t k = 0; k < sums.size(); ++k) {
    const std::string colour = palette.next(plot.layers[k].tone);
    std::vector<Point> edge;
    edge.reserve(kept.size() + 2);
    for (const std::size_t i : kept) edge.push_back({frame.x(plot.at[i]), frame.y(sums[k][i])});
    std::string area =
        named_path("area f" + colour, k, plot.layers[k].name, area_data(frame, std::move(edge)));
    elements.insert(0, area);
    legend.push_back({plot.layers[k].name, colour});
  }
  return frame.html(std::move(legend), elements);
}

std::string plot_html(const ScatterPlot& plot) {
  std::optional<ValueRange> across = plot.span;
  std::optional<ValueRange> up;
  for (const Dots& dots : plot.groups) {
    ORRERY_ASSERT(dots.x.size() == dots.y.size(), "a dot has both coordinates");
    if (!plot.span) across = joined(across, range_of(dots.x));
    up = joined(up, range_of(dots.y));
  }
  if (!across || !up) return nothing_to_show();
  const PlotFrame frame(FittedAxis(plot.x, *across, {}), FittedAxis(plot.y, *up, vertical()));
  Palette palette;
  std::vector<LegendEntry> legend;
  std::string elements;
  for (const Dots& dots : plot.groups) {
    const std::string colour = palette.next(dots.tone);
    const std::size_t drawn = std::min(dots.x.size(), kPlotPointsMax);
    std::vector<Point> points;
    points.reserve(drawn);
    for (std::size_t k = 0; k < drawn; ++k) {
      const std::size_t i = dots.x.size() * k / drawn;
      points.push_back({frame.x(dots.x[i]), frame.y(dots.y[i])});
    }
    elements += named_path("dots l" + colour, legend.size(), dots.name, dots_data(points));
    legend.push_back({dots.name, colour});
  }
  return frame.html(std::move(legend), elements);
}

Line cdf_line(std::string name, std::span<const double> sorted) {
  Line line{.name = std::move(name)};
  const std::size_t count = sorted.size();
  if (count == 0) return line;
  const auto share = [&](std::size_t i) {
    return static_cast<double>(i) / static_cast<double>(count);
  };
  const std::size_t points = std::min(count, kCdfPoints);
  line.x.reserve(points * 2);
  line.y.reserve(points * 2);
  for (std::size_t k = 0; k < points; ++k) {
    // Takes the last of each equal run, so that the greatest value is the end of the line.
    const std::size_t i = count * (k + 1) / points - 1;
    const std::size_t before = k == 0 ? 0 : count * k / points;
    line.x.insert(line.x.end(), {sorted[i], sorted[i]});
    line.y.insert(line.y.end(), {share(before), share(i + 1)});
  }
  return line;
}

}  // namespace orrery
