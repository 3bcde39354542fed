#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "report/plot/plot.hpp"
#include "report/plot/plot_frame.hpp"

namespace orrery {
namespace {

constexpr double kRow = 24;
constexpr double kThick = 15;
constexpr double kFoot = 42;
constexpr double kLabelMax = 150;
constexpr double kFigure = 128;  ///< room for the values behind the bars

double finite(double value) { return std::isfinite(value) ? value : 0; }

/// Rows of labels on the left, values on the right and bars between.
struct Rows {
  Rect area;
  FittedAxis axis;

  [[nodiscard]] double x(double value) const { return area.x + axis.part(value) * area.width; }
  [[nodiscard]] double middle(std::size_t row) const {
    return area.y + kRow * (static_cast<double>(row) + 0.5);
  }
};

Rows rows_for(const Axis& axis, double value_max, const std::vector<std::string>& labels) {
  double label_width = 0;
  for (const std::string& label : labels) {
    label_width = std::max(label_width, text_width(label, {.size = kTickSize}));
  }
  const double left = std::min(label_width, kLabelMax) + 12;
  const Rect area{left, 4, kPlotWidth - left - kFigure,
                  kRow * static_cast<double>(std::max<std::size_t>(labels.size(), 1))};
  return {area, FittedAxis(axis, {0, value_max}, {.ticks_max = 4})};
}

void draw_row_text(SvgCanvas& canvas, const Rows& rows, std::size_t row, std::string_view text) {
  const double y = rows.middle(row) + 4;
  const double room = rows.area.x - 8;
  const double width = std::min(text_width(text, {.size = kTickSize}), room);
  canvas.fitted_text({room - width, y}, room + 0.1, text, {.size = kTickSize});
}

void draw_figure(SvgCanvas& canvas, const Rows& rows, std::size_t row, std::string_view text) {
  canvas.text({rows.area.right() + 8, rows.middle(row) + 4}, text,
              {.size = kTickSize, .ink = "soft"});
}

struct Piece {
  double from = 0;
  double to = 0;
  std::string colour;
  std::size_t key = 0;
  std::string title;
};

std::string piece_svg(const Rows& rows, std::size_t row, const Piece& piece) {
  const double left = rows.x(piece.from);
  const double width = rows.x(piece.to) - left;
  if (width <= 0) return {};
  return fmt::format(
      "<rect class=\"f{}\" data-k=\"{}\" x=\"{}\" y=\"{}\" width=\"{:.2f}\" "
      "height=\"{}\"><title>{}</title></rect>\n",
      piece.colour, piece.key, svg_number(left), svg_number(rows.middle(row) - kThick / 2), width,
      kThick, escaped_xml(piece.title));
}

double sum_of(const Bar& bar) {
  double sum = 0;
  for (const double part : bar.parts) sum += std::max(finite(part), 0.0);
  return sum;
}

/// The amount shown behind a bar: NaN, not 0, for a bar of which nothing is known.
double shown_amount(const Bar& bar) {
  const double sum = sum_of(bar);
  const bool known = std::all_of(bar.parts.begin(), bar.parts.end(),
                                 [](double part) { return std::isfinite(part); });
  return known || sum > 0 ? sum : std::numeric_limits<double>::quiet_NaN();
}

std::string rows_html(const Rows& rows, std::string elements, std::vector<LegendEntry> legend) {
  return picture_html({.label = rows.axis.title(),
                       .height = rows.area.bottom() + kFoot,
                       .legend = std::move(legend),
                       .elements = std::move(elements)});
}

std::string bar_svg(const BarPlot& plot, const Rows& rows, std::size_t row,
                    const std::vector<LegendEntry>& legend) {
  const Bar& bar = plot.bars[row];
  std::string svg;
  double from = 0;
  for (std::size_t k = 0; k < std::min(bar.parts.size(), plot.parts.size()); ++k) {
    const double amount = std::max(finite(bar.parts[k]), 0.0);
    svg += piece_svg(rows, row,
                     {.from = from,
                      .to = from + amount,
                      .colour = legend[k].colour,
                      .key = k,
                      .title = fmt::format("{}, {}: {}", bar.label, plot.parts[k].name,
                                           value_text(plot.value, amount))});
    from += amount;
  }
  if (bar.mark && std::isfinite(*bar.mark)) {
    const double x = rows.x(*bar.mark);
    svg += fmt::format("<path class=\"mark\" d=\"M{0} {1}V{2}\"><title>{3}</title></path>\n",
                       svg_number(x), svg_number(rows.middle(row) - kRow / 2 + 1),
                       svg_number(rows.middle(row) + kRow / 2 - 1),
                       escaped_xml(fmt::format("{}, {}: {}", bar.label, plot.mark,
                                               value_text(plot.value, *bar.mark))));
  }
  return svg;
}

/// Short enough for the space beside a bar.
std::string percent_text(double percent) {
  if (percent > 0 && percent < 0.01) return "< 0.01 %";
  return fmt::format("{:.3g} %", percent);
}

}  // namespace

std::string plot_html(const BarPlot& plot) {
  double most = 0;
  std::vector<std::string> labels;
  labels.reserve(plot.bars.size());
  for (const Bar& bar : plot.bars) {
    most = std::max({most, sum_of(bar), finite(bar.mark.value_or(0))});
    labels.push_back(bar.label);
  }
  if (most <= 0) return nothing_to_show();
  const Rows rows = rows_for(plot.value, most, labels);
  Palette palette;
  std::vector<LegendEntry> legend;
  legend.reserve(plot.parts.size() + 1);
  for (const BarPart& part : plot.parts) legend.push_back({part.name, palette.next(part.tone)});
  SvgCanvas canvas;
  std::string bars = x_axis_svg(rows.axis, rows.area);
  for (std::size_t row = 0; row < plot.bars.size(); ++row) {
    draw_row_text(canvas, rows, row, plot.bars[row].label);
    draw_figure(canvas, rows, row, value_text(plot.value, shown_amount(plot.bars[row])));
    bars += bar_svg(plot, rows, row, legend);
  }
  if (!plot.mark.empty()) legend.push_back({plot.mark, "k"});
  return rows_html(rows, bars + canvas.elements(), std::move(legend));
}

std::string plot_html(const WaterfallPlot& plot) {
  if (!std::isfinite(plot.amount) || plot.amount <= 0) return nothing_to_show();
  std::vector<std::string> labels = {plot.whole};
  for (const auto& loss : plot.losses) labels.push_back(loss.name);
  labels.push_back(plot.rest);
  const Rows rows = rows_for(plot.value, plot.amount, labels);
  SvgCanvas canvas;
  std::string bars = x_axis_svg(rows.axis, rows.area);
  const auto add = [&](std::size_t row, double from, double to, const std::string& colour) {
    const std::string text = fmt::format("{} ({})", value_text(plot.value, to - from),
                                         percent_text((to - from) / plot.amount * 100));
    draw_row_text(canvas, rows, row, labels[row]);
    draw_figure(canvas, rows, row, text);
    bars += piece_svg(rows, row,
                      {.from = from,
                       .to = to,
                       .colour = colour,
                       .key = row,
                       .title = fmt::format("{}: {}", labels[row], text)});
  };
  add(0, 0, plot.amount, "m");
  double left = plot.amount;
  for (std::size_t k = 0; k < plot.losses.size(); ++k) {
    const double amount = std::clamp(finite(plot.losses[k].amount), 0.0, left);
    add(k + 1, left - amount, left, "a");
    left -= amount;
  }
  add(labels.size() - 1, 0, left, "0");
  return rows_html(rows, bars + canvas.elements(), {});
}

}  // namespace orrery
