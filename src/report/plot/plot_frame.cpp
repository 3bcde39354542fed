#include "report/plot/plot_frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace orrery {
namespace {

constexpr double kTop = 26;
constexpr double kBottom = 40;
constexpr double kRight = 14;
constexpr std::size_t kColours = 7;
constexpr double kRowNameMax = 110;
constexpr TextStyle kRowName{.size = kTickSize, .ink = "soft"};

std::string_view unit_word(AxisUnit unit) {
  switch (unit) {
    case AxisUnit::kCount:
      return "count";
    case AxisUnit::kPhysical:
      return "physical";
    case AxisUnit::kMoney:
      return "money";
    case AxisUnit::kShare:
      return "share";
    case AxisUnit::kDuration:
      return "duration";
    case AxisUnit::kElapsed:
      return "elapsed";
    case AxisUnit::kCalendar:
      return "calendar";
  }
  return "count";
}

double widest_label(const FittedAxis& axis) {
  double width = 0;
  for (const AxisTick& tick : axis.ticks()) {
    width = std::max(width, text_width(tick.label, {.size = kTickSize}));
  }
  return width;
}

}  // namespace

std::string Palette::next(Tone tone) {
  switch (tone) {
    case Tone::kSeries:
      return std::to_string(taken_++ % kColours);
    case Tone::kMuted:
      return "m";
    case Tone::kAlarm:
      return "a";
  }
  return "m";
}

std::string nothing_to_show() { return "<p class=\"soft\">Nothing to show.</p>\n"; }

std::string picture_html(const Picture& picture) {
  std::string html = "<div class=\"plot\">";
  if (picture.legend.size() > 1) {
    html += "<div class=\"legend\">";
    std::size_t key = 0;
    for (const LegendEntry& entry : picture.legend) {
      html += fmt::format("<button type=\"button\" data-k=\"{}\"><i class=\"f{}\"></i>{}</button>",
                          key++, entry.colour, escaped_xml(entry.name));
    }
    html += "</div>\n";
  }
  html += fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"{}>\n", kPlotWidth,
                      svg_number(picture.height), escaped_xml(picture.label), picture.data);
  html += picture.elements;
  return html += "</svg></div>\n";
}

PlotFrame::PlotFrame(FittedAxis x, FittedAxis y) : x_(std::move(x)), y_(std::move(y)) {
  const double left = std::max(28.0, widest_label(y_) + 10);
  area_ = {left, kTop, kPlotWidth - left - kRight, kPlotHeight - kTop - kBottom};
}

std::string PlotFrame::html(std::vector<LegendEntry> legend, std::string_view elements) const {
  SvgCanvas canvas;
  for (const AxisTick& tick : y_.ticks()) {
    const double at = y(tick.value);
    canvas.line({area_.x, at}, {area_.right(), at}, 1, "grid");
    canvas.text({area_.x - 6, at + 4}, tick.label,
                {.size = kTickSize, .ink = "soft", .anchor = Anchor::kEnd});
  }
  canvas.text({0, 13}, y_.title(), {.size = 12, .ink = "soft"});
  Picture picture{.label = fmt::format("{} over {}", y_.title(), x_.title()),
                  .data = axis_data("x", x_, {area_.x, area_.right()}) +
                          axis_data("y", y_, {area_.bottom(), area_.y}),
                  .legend = std::move(legend),
                  .elements = x_axis_svg(x_, area_) + canvas.elements()};
  picture.elements += clipped_svg(area_, elements);
  return picture_html(picture);
}

RowFrame::RowFrame(FittedAxis x, std::vector<std::string> names, Heights heights)
    : x_(std::move(x)), names_(std::move(names)) {
  double widest = 0;
  for (const std::string& name : names_) widest = std::max(widest, text_width(name, kRowName));
  const double left = std::min(widest, kRowNameMax) + 10;
  const auto rows = static_cast<double>(names_.size());
  height_ = std::clamp(heights.all / rows, heights.least, heights.most);
  area_ = {left, kTop, kPlotWidth - left - kRight, height_ * rows};
}

std::string RowFrame::html(Content content) const {
  SvgCanvas canvas;
  canvas.box(area_, "ground", 0);
  // Shows as many names as leave each its height.
  const auto stride = static_cast<std::size_t>(std::ceil(13 / height_));
  for (std::size_t row = 0; row < names_.size(); row += stride) {
    const double width = std::min(text_width(names_[row], kRowName), area_.x - 10);
    const double y = area_.y + height_ * (static_cast<double>(row) + 0.5) + 4;
    canvas.fitted_text({area_.x - 6 - width, y}, width + 0.1, names_[row], kRowName);
  }
  canvas.text({0, 13}, content.value, {.size = 12, .ink = "soft"});
  std::string names;
  for (const std::string& name : names_) {
    if (!names.empty()) names += '|';
    names += name;
    std::replace(names.end() - static_cast<std::ptrdiff_t>(name.size()), names.end(), '|', '/');
  }
  return picture_html(
      {.label = content.value + " over " + x_.title(),
       .height = area_.bottom() + kBottom,
       .data = axis_data("x", x_, {area_.x, area_.right()}) +
               fmt::format(" data-top=\"{}\" data-thick=\"{:.4f}\" data-rows=\"{}\"",
                           svg_number(area_.y), height_, escaped_xml(names)) +
               content.data,
       .legend = std::move(content.legend),
       .elements = canvas.elements() + x_axis_svg(x_, area_) + clipped_svg(area_, content.inside) +
                   content.above});
}

std::string x_axis_svg(const FittedAxis& axis, const Rect& area) {
  SvgCanvas canvas;
  double taken = -kPlotWidth;
  for (const AxisTick& tick : axis.ticks()) {
    const double at = area.x + axis.part(tick.value) * area.width;
    canvas.line({at, area.y}, {at, area.bottom()}, 1, "grid");
    const double half = text_width(tick.label, {.size = kTickSize}) / 2;
    const double middle = std::min(at, kPlotWidth - half);
    if (middle - half < taken + 6) continue;
    canvas.text({middle, area.bottom() + 16}, tick.label,
                {.size = kTickSize, .ink = "soft", .anchor = Anchor::kMiddle});
    taken = middle + half;
  }
  SvgCanvas rest;
  rest.line({area.x, area.bottom()}, {area.right(), area.bottom()}, 1, "rule");
  rest.text({area.right(), area.bottom() + 34}, axis.title(),
            {.size = 12, .ink = "soft", .anchor = Anchor::kEnd});
  return "<g class=\"ticks\">\n" + canvas.elements() + "</g>\n" + rest.elements();
}

std::string clipped_svg(const Rect& area, std::string_view elements) {
  // Lines at an edge keep their whole width.
  constexpr double kEdge = 3;
  const std::string box = fmt::format("{} {} {} {}", svg_number(area.x), svg_number(area.y - kEdge),
                                      svg_number(area.width), svg_number(area.height + 2 * kEdge));
  return fmt::format(
      "<svg class=\"inside\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" viewBox=\"{}\" "
      "preserveAspectRatio=\"none\">\n{}</svg>\n",
      svg_number(area.x), svg_number(area.y - kEdge), svg_number(area.width),
      svg_number(area.height + 2 * kEdge), box, elements);
}

std::string axis_data(std::string_view name, const FittedAxis& axis, ValueRange pixels) {
  return fmt::format(" data-{}=\"{} {} {:.17g} {:.17g} {} {} {}\"", name, svg_number(pixels.min),
                     svg_number(pixels.max), axis.range().min, axis.range().max,
                     axis.axis().scale == AxisScale::kLog ? "log" : "linear",
                     unit_word(axis.axis().unit), escaped_xml(axis.axis().symbol));
}

std::string path_through(const std::vector<Point>& points) {
  std::string path;
  path.reserve(points.size() * 12);
  char before = 'M';
  for (const Point& point : points) {
    if (!std::isfinite(point.x) || !std::isfinite(point.y)) {
      before = 'M';
      continue;
    }
    path += before;
    path += svg_number(point.x) += ' ';
    path += svg_number(point.y);
    before = ' ';
  }
  return path;
}

}  // namespace orrery
