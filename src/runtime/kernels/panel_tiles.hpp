// runtime/kernels/panel_tiles.hpp - parts of products with panels of weights
// (runtime/kernels/decode_kernels.hpp) that all formats of weights share.
//
// Built like vector_lanes.hpp, and for the same reason: every function is inlined.
#pragma once

#include "runtime/kernels/decode_kernels.hpp"
#include "runtime/kernels/vector_lanes.hpp"

namespace orrery {
namespace {

// The floats of a vector register, and the most sums and rows of a tile: with factors and weights
// they fill the registers.
#if defined(__AVX512F__)
constexpr std::int64_t kStrip = 16;
constexpr std::int64_t kTileSums = 16;
constexpr std::int64_t kTileRows = 8;
#elif defined(__AVX__)
constexpr std::int64_t kStrip = 8;
constexpr std::int64_t kTileSums = 8;
constexpr std::int64_t kTileRows = 4;
#else
constexpr std::int64_t kStrip = 4;
constexpr std::int64_t kTileSums = 8;
constexpr std::int64_t kTileRows = 2;
#endif

// Rows and panels of a product.
struct Tile {
  std::int64_t row;
  std::int64_t rows;
  std::int64_t panel;
  std::int64_t panels_end;
};

// Where a row of a tile goes; `count` of its columns exist.
struct TileRow {
  std::int64_t row;
  std::int64_t column;
  std::int64_t count;
};

ORRERY_INLINE void finish_row(const PanelProduct& call, const TileRow& to, const float* sums) {
  const std::int64_t at = to.row * call.columns + to.column;
  for (std::int64_t i = 0; i < to.count; ++i) {
    float base = 0;
    if (call.residual != nullptr) base = call.residual[at + i];
    if (call.bias != nullptr) base += call.bias[to.column + i];
    call.out[at + i] = sums[i] + base;
  }
}

// Finishes the rows of a panel, whose sums are 16 floats each.
ORRERY_INLINE void finish_panel(const PanelProduct& call, const Tile& tile, const float* sums) {
  constexpr std::int64_t kPanel = PanelProduct::kPanel;
  const std::int64_t column = tile.panel * kPanel;
  const std::int64_t left = call.columns - column;
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    finish_row(call, {tile.row + r, column, left < kPanel ? left : kPanel}, sums + r * kPanel);
  }
}

ORRERY_INLINE std::int64_t panels_of(const PanelProduct& call) {
  return (call.columns + PanelProduct::kPanel - 1) / PanelProduct::kPanel;
}

ORRERY_INLINE std::int64_t groups_of(const PanelProduct& call) {
  return (call.inner + PanelProduct::kGroup - 1) / PanelProduct::kGroup;
}

}  // namespace
}  // namespace orrery
