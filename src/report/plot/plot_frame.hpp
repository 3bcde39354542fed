// report/plot/plot_frame.hpp - the common parts of plots: area, axes, grid, legend and colours.
//
// Made by one plot for one drawing. Coordinates are pixels of a picture kPlotWidth wide, which a
// page scales. Cost: O(ticks + bytes of the drawing).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/plot/axis.hpp"
#include "report/plot/plot.hpp"
#include "report/svg/svg_canvas.hpp"

namespace orrery {

inline constexpr double kPlotWidth = 560;
inline constexpr double kPlotHeight = 260;
inline constexpr double kTickSize = 11.5;

/// The last letter of the classes l* (lines), f* (fills) and d* (dots): "0" to "6" for the series
/// of a plot in their order, then again from "0"; "m" muted, "a" alarm.
class Palette {
 public:
  [[nodiscard]] std::string next(Tone tone);

 private:
  std::size_t taken_ = 0;
};

struct LegendEntry {
  std::string name;
  std::string colour;
};

[[nodiscard]] std::string nothing_to_show();

/// The legend (none for a single entry) above the picture. `data` holds more attributes of the
/// <svg>.
struct Picture {
  std::string label;  ///< text alternative for screen readers
  double height = kPlotHeight;
  std::string data = {};
  std::vector<LegendEntry> legend = {};
  std::string elements;
};
[[nodiscard]] std::string picture_html(const Picture& picture);

/// Two axes around an area.
class PlotFrame {
 public:
  PlotFrame(FittedAxis x, FittedAxis y);

  [[nodiscard]] double x(double value) const { return area_.x + x_.part(value) * area_.width; }
  [[nodiscard]] double y(double value) const {
    return area_.bottom() - y_.part(value) * area_.height;
  }
  [[nodiscard]] const Rect& area() const { return area_; }

  /// Draws the axes behind `elements`.
  [[nodiscard]] std::string html(std::vector<LegendEntry> legend, std::string_view elements) const;

 private:
  FittedAxis x_;
  FittedAxis y_;
  Rect area_;
};

/// Named rows over a horizontal axis.
class RowFrame {
 public:
  /// The heights of all rows together and of one row.
  struct Heights {
    double all = 0;
    double least = 0;
    double most = 0;
  };
  RowFrame(FittedAxis x, std::vector<std::string> names, Heights heights);

  [[nodiscard]] double x(double value) const { return area_.x + x_.part(value) * area_.width; }
  [[nodiscard]] const Rect& area() const { return area_; }
  [[nodiscard]] double row_height() const { return height_; }

  struct Content {
    std::string value;  ///< what is drawn: the title
    std::vector<LegendEntry> legend = {};
    std::string inside;      ///< cut at the edges of the area
    std::string above = {};  ///< beside the title
    std::string data = {};   ///< more attributes of the <svg>
  };
  [[nodiscard]] std::string html(Content content) const;

 private:
  FittedAxis x_;
  std::vector<std::string> names_;
  double height_ = 0;
  Rect area_;
};

/// The labels and title of a horizontal axis under an area, and its lines across it. The script
/// replaces ticks when a reader zooms.
[[nodiscard]] std::string x_axis_svg(const FittedAxis& axis, const Rect& area);

/// Elements in the same coordinates, cut at the edges of the area. The script zooms by the part of
/// the drawing that the area shows.
[[nodiscard]] std::string clipped_svg(const Rect& area, std::string_view elements);

/// Axis between two pixels, in the form the script reads: ` data-x="46 548 0 3600 linear elapsed"`.
[[nodiscard]] std::string axis_data(std::string_view name, const FittedAxis& axis,
                                    ValueRange pixels);

/// A path such as "M1 2 3 4" through the points, broken where a value is not finite.
[[nodiscard]] std::string path_through(const std::vector<Point>& points);

}  // namespace orrery
