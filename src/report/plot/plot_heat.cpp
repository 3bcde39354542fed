#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/assert.hpp"
#include "report/plot/plot.hpp"
#include "report/plot/plot_frame.hpp"

namespace orrery {
namespace {

constexpr int kLevels = 10;  ///< 0: nothing painted; 9: the whole

struct Grid {
  std::size_t columns = 0;
  std::size_t rows = 0;
  std::vector<char> levels;  ///< '0' to '9' by row, '.' where no value is

  [[nodiscard]] char at(std::size_t row, std::size_t column) const {
    return levels[row * columns + column];
  }
};

char level_of(double share) {
  const double level = std::ceil(std::clamp(share, 0.0, 1.0) * (kLevels - 1));
  return static_cast<char>('0' + static_cast<int>(level));
}

struct Block {
  std::size_t row_begin;
  std::size_t row_end;
  std::size_t column_begin;
  std::size_t column_end;
};

char level_of(const HeatMap& map, const Block& block) {
  double sum = 0;
  double count = 0;
  for (std::size_t row = block.row_begin; row < block.row_end; ++row) {
    for (std::size_t column = block.column_begin; column < block.column_end; ++column) {
      const double share = map.cells[row * map.columns + column];
      if (!std::isfinite(share)) continue;
      sum += share;
      count += 1;
    }
  }
  return count == 0 ? '.' : level_of(sum / count);
}

Grid reduced(const HeatMap& map) {
  Grid grid{.columns = std::min(map.columns, kHeatColumnsMax),
            .rows = std::min(map.rows.size(), kHeatRowsMax)};
  grid.levels.reserve(grid.columns * grid.rows);
  for (std::size_t row = 0; row < grid.rows; ++row) {
    for (std::size_t column = 0; column < grid.columns; ++column) {
      grid.levels.push_back(level_of(
          map, {map.rows.size() * row / grid.rows, map.rows.size() * (row + 1) / grid.rows,
                map.columns * column / grid.columns, map.columns * (column + 1) / grid.columns}));
    }
  }
  return grid;
}

std::string row_name(const HeatMap& map, const Grid& grid, std::size_t row) {
  const std::size_t first = map.rows.size() * row / grid.rows;
  const std::size_t last = map.rows.size() * (row + 1) / grid.rows - 1;
  return first == last ? map.rows[first] : map.rows[first] + " to " + map.rows[last];
}

// One path a level, of horizontal strokes one cell thick: a run of equal cells is one stroke.
std::string cells_svg(const Grid& grid, const Rect& area) {
  std::array<std::string, kLevels> paths;
  for (std::size_t row = 0; row < grid.rows; ++row) {
    for (std::size_t column = 0; column < grid.columns;) {
      const char level = grid.at(row, column);
      std::size_t end = column + 1;
      while (end < grid.columns && grid.at(row, end) == level) ++end;
      if (level > '0') {
        paths[static_cast<std::size_t>(level - '0')] +=
            fmt::format("M{} {}.5h{}", column, row, end - column);
      }
      column = end;
    }
  }
  std::string svg = fmt::format(
      "<g class=\"heat\" transform=\"translate({} {}) scale({:.4f} {:.4f})\">\n",
      svg_number(area.x), svg_number(area.y), area.width / static_cast<double>(grid.columns),
      area.height / static_cast<double>(grid.rows));
  for (std::size_t level = 1; level < paths.size(); ++level) {
    if (paths[level].empty()) continue;
    svg += fmt::format("<path class=\"h{}\" d=\"{}\"/>\n", level, paths[level]);
  }
  return svg += "</g>\n";
}

std::string key_svg(const Rect& area) {
  SvgCanvas canvas;
  const double left = area.right() - 175;
  canvas.text({left - 6, 13}, "0 %", {.size = kTickSize, .ink = "soft", .anchor = Anchor::kEnd});
  canvas.text({area.right(), 13}, "100 %",
              {.size = kTickSize, .ink = "soft", .anchor = Anchor::kEnd});
  std::string svg = canvas.elements();
  for (int level = 1; level < kLevels; ++level) {
    svg += fmt::format("<path class=\"h{}\" d=\"M{} 9h14\" stroke-width=\"10\"/>\n", level,
                       svg_number(left + (level - 1) * 14));
  }
  return svg;
}

}  // namespace

std::string plot_html(const HeatMap& map) {
  ORRERY_ASSERT(map.cells.size() == map.columns * map.rows.size(), "one cell a row and column");
  if (map.cells.empty()) return nothing_to_show();
  const Grid grid = reduced(map);
  std::vector<std::string> names;
  names.reserve(grid.rows);
  for (std::size_t row = 0; row < grid.rows; ++row) names.push_back(row_name(map, grid, row));
  const RowFrame frame(FittedAxis(map.x, map.span, {}), std::move(names),
                       {.all = 240, .least = 5, .most = 22});
  return frame.html({.value = map.value,
                     .inside = cells_svg(grid, frame.area()),
                     .above = key_svg(frame.area()),
                     .data = fmt::format(" data-cells=\"{}\"",
                                         std::string(grid.levels.begin(), grid.levels.end()))});
}

}  // namespace orrery
