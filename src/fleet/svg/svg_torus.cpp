#include "fleet/svg/svg_torus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace orrery {
namespace {

/// A face of the block spanned by two edges from a corner, ruled into cells.
struct Face {
  Point corner;
  Point along;
  Point across;
  int columns;
  int rows;
};

void draw_face(SvgCanvas& canvas, const Face& face, std::string_view style) {
  constexpr int kMost = 10;
  const auto at = [&](double u, double v) {
    return Point{face.corner.x + u * face.along.x + v * face.across.x,
                 face.corner.y + u * face.along.y + v * face.across.y};
  };
  SvgPath fill;
  fill.add_polygon({at(0, 0), at(1, 0), at(1, 1), at(0, 1)});
  canvas.path(fill, style);
  SvgPath grid;
  const int columns = std::min(face.columns, kMost);
  const int rows = std::min(face.rows, kMost);
  for (int i = 0; i <= columns; ++i) {
    const double u = static_cast<double>(i) / columns;
    grid.add_line(at(u, 0), at(u, 1));
  }
  for (int i = 0; i <= rows; ++i) {
    const double v = static_cast<double>(i) / rows;
    grid.add_line(at(0, v), at(1, v));
  }
  canvas.path(grid, "grid");
}

}  // namespace

std::string torus_text(const TorusSpec& torus) {
  std::string text;
  for (const int side : torus.shape) text += fmt::format("{}{}", text.empty() ? "" : " x ", side);
  return text + (torus.twisted ? ", twisted" : "");
}

void draw_torus(SvgCanvas& canvas, const Rect& area, const TorusSpec& torus) {
  constexpr double kSlope = 0.5;  // slope of the receding edges
  const std::vector<int> cube =
      torus.cube.empty() ? std::vector<int>(torus.shape.size(), 1) : torus.cube;
  std::vector<double> sides(torus.shape.begin(), torus.shape.end());
  sides.resize(3, 0);
  const double room = area.height - 20;
  const double wide = sides[0] * 0.87 + sides[1] * 0.87;
  const double high = sides[2] + (sides[0] + sides[1]) * kSlope;
  const double scale = std::min(area.width / wide, room / high);
  const auto cells = [&](std::size_t i) {
    return i < torus.shape.size() ? torus.shape[i] / cube[i] : 1;
  };
  const Point x{sides[0] * 0.87 * scale, sides[0] * kSlope * scale};
  const Point y{sides[1] * 0.87 * scale, -sides[1] * kSlope * scale};
  const Point up{0, -sides[2] * scale};
  const double left = area.x + (area.width - wide * scale) / 2;
  const Point base{left, area.y + (room - high * scale) / 2 + high * scale - x.y};
  if (sides[2] > 0) {
    draw_face(canvas, {base, x, up, cells(0), cells(2)}, "face2");
    draw_face(canvas, {{base.x + x.x, base.y + x.y}, y, up, cells(1), cells(2)}, "face3");
  }
  draw_face(canvas, {{base.x, base.y + up.y}, x, y, cells(0), cells(1)}, "face1");
  canvas.fitted_text(
      {area.x + area.width / 2, area.bottom() - 4}, area.width, torus_text(torus),
      {.size = 11, .weight = Weight::kBold, .ink = "link", .anchor = Anchor::kMiddle});
}

}  // namespace orrery
