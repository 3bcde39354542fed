// runtime/kernels/register_tiles.hpp - products with weights in bf16 and in integers of 8 bits, in
// the tile registers of AMX: 16 rows by 16 columns at a time, with the bits of
// rounded_products.hpp.
//
// Built like vector_lanes.hpp, and for the same reason: every function is inlined, or of one
// source.
#pragma once

#include "runtime/kernels/rounded_products.hpp"

#if defined(__AMX_INT8__)
namespace orrery {
namespace {

constexpr std::int64_t kBlockRows = 16;
// The rows of a product from which on tile registers are faster than vectors.
constexpr std::int64_t kTilesPayForHalves = 4;
constexpr std::int64_t kTilesPayForIntegers = 12;

// The shapes of the tile registers.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t first_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16];
  std::uint8_t rows[16];
};

// GCC 12 does not know that tiles are loaded from memory, so it must have stored what they read.
ORRERY_INLINE void finish_stores(const void* of) { __asm__ volatile("" : : "r"(of) : "memory"); }

// A group of 16 rows as integers, one after another as tiles are loaded.
struct RowBlock {
  std::int8_t values[kBlockRows][PanelProduct::kGroup];
  float scales[kBlockRows];
};
static_assert(sizeof(RowBlock) <= kBlockRows * sizeof(RowGroup));

struct BlockSums {
  alignas(64) std::int32_t of[kBlockRows][PanelProduct::kPanel];
};

// The sums of group_sums() for 16 rows and a panel. Weights are 128 too large, which the product
// with -128s makes up for.
ORRERY_INLINE void tile_sums(const PanelGroup& w, const RowBlock& x, BlockSums& sums) {
  _tile_loadd(1, x.values, PanelProduct::kGroup);
  _tile_loadd(2, w.weights, 64);
  _tile_zero(0);
  _tile_dpbsud(0, 1, 2);
  _tile_dpbssd(0, 1, 3);
  _tile_stored(0, sums.of, 64);
}

ORRERY_INLINE void add_sums(const PanelGroup& w, const RowBlock& x, const BlockSums& sums,
                            Lanes (&totals)[kBlockRows]) {
  const Lanes scales = load(w.scales);
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kBlockRows; ++r) {
    const __m512 floats = _mm512_cvtepi32_ps(_mm512_load_si512(sums.of[r]));
    Lanes exact;
    __builtin_memcpy(&exact, &floats, sizeof(exact));
    totals[r] += exact * (scales * x.scales[r]);
  }
}

// Computes 16 rows of a panel, or what there is of them. The tiles of a group are computed while
// sums of those before are added.
void block_tile(const PanelProduct& call, const RowBlock* x, const Tile& tile) {
  const std::int64_t groups = groups_of(call);
  const PanelGroup* w = static_cast<const PanelGroup*>(call.panels) + tile.panel * groups;
  Lanes totals[kBlockRows] = {};
  constexpr std::int64_t kAhead = 2;
  BlockSums sums[kAhead + 1];
  for (std::int64_t group = 0; group < groups + kAhead; ++group) {
    if (group < groups) tile_sums(w[group], x[group], sums[group % (kAhead + 1)]);
    if (group < kAhead) continue;
    const std::int64_t done = group - kAhead;
    add_sums(w[done], x[done], sums[done % (kAhead + 1)], totals);
  }
  float room[kBlockRows * kLanes];
  for (std::int64_t r = 0; r < kBlockRows; ++r) store(room + r * kLanes, totals[r]);
  finish_panel(call, tile, room);
}

// A product of many rows of integers.
ORRERY_INLINE void integer_block_product(const PanelProduct& call) {
  const std::int64_t groups = groups_of(call);
  auto* blocks = static_cast<RowBlock*>(call.row_room);
  for (std::int64_t row = 0; row < call.rows; ++row) {
    RowBlock* to = blocks + row / kBlockRows * groups;
    const std::int64_t place = row % kBlockRows;
    for (std::int64_t k = 0; k < call.inner; k += PanelProduct::kGroup, ++to) {
      to->scales[place] =
          round_group(call.x + row * call.inner + k, call.inner - k, to->values[place]);
    }
  }
  for (std::int64_t row = call.rows; row % kBlockRows != 0; ++row) {
    RowBlock* to = blocks + row / kBlockRows * groups;
    for (std::int64_t group = 0; group < groups; ++group) to[group].scales[row % kBlockRows] = 0;
  }
  alignas(64) std::int8_t lowest[64];
  for (std::int8_t& each : lowest) each = -128;
  const TileShapes shapes{.row_bytes = {64, 32, 64, 64}, .rows = {16, 16, 8, 8}};
  finish_stores(&shapes);
  finish_stores(lowest);
  _tile_loadconfig(&shapes);
  _tile_loadd(3, lowest, 0);
  for (std::int64_t panel = 0; panel < panels_of(call); ++panel) {
    for (std::int64_t row = 0; row < call.rows; row += kBlockRows) {
      const std::int64_t rows = call.rows - row < kBlockRows ? call.rows - row : kBlockRows;
      block_tile(call, blocks + row / kBlockRows * groups, {row, rows, panel, panel + 1});
    }
  }
  _tile_release();
}

// A group of 16 rows as upper halves.
struct HalvesBlock {
  std::uint16_t values[kBlockRows][PanelProduct::kGroup];
};

// The sums of two times 16 rows and two panels.
struct HalvesSums {
  alignas(64) float of[2][2][kBlockRows * PanelProduct::kPanel];
};

// Computes up to 32 rows of up to two panels. Tiles add the products of a group as panel_tile() of
// upper halves does.
inline void halves_tile(const PanelProduct& call, const HalvesBlock* x, const Tile& tile) {
  const std::int64_t groups = groups_of(call);
  const PanelHalves* w = static_cast<const PanelHalves*>(call.panels) + tile.panel * groups;
  const bool two_panels = tile.panels_end - tile.panel > 1;
  const bool two_blocks = tile.rows > kBlockRows;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (std::int64_t group = 0; group < groups; ++group, ++x, ++w) {
    _tile_loadd(4, x->values, 64);
    _tile_loadd(6, w->weights, 64);
    _tile_dpbf16ps(0, 4, 6);
    if (two_panels) {
      _tile_loadd(7, w[groups].weights, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (!two_blocks) continue;
    _tile_loadd(5, x[groups].values, 64);
    _tile_dpbf16ps(2, 5, 6);
    if (two_panels) _tile_dpbf16ps(3, 5, 7);
  }
  HalvesSums sums;
  _tile_stored(0, sums.of[0][0], 64);
  _tile_stored(1, sums.of[0][1], 64);
  _tile_stored(2, sums.of[1][0], 64);
  _tile_stored(3, sums.of[1][1], 64);
  for (std::int64_t panel = tile.panel; panel < tile.panels_end; ++panel) {
    const std::int64_t first = two_blocks ? kBlockRows : tile.rows;
    const std::int64_t at = panel - tile.panel;
    finish_panel(call, {tile.row, first, panel, panel + 1}, sums.of[0][at]);
    finish_panel(call, {tile.row + first, tile.rows - first, panel, panel + 1}, sums.of[1][at]);
  }
}

// A product of some rows of upper halves.
ORRERY_INLINE void halves_block_product(const PanelProduct& call) {
  using Halves = std::uint16_t __attribute__((vector_size(32)));
  const std::int64_t groups = groups_of(call);
  auto* blocks = static_cast<HalvesBlock*>(call.row_room);
  for (std::int64_t row = 0; row < call.rows; ++row) {
    const float* x = call.x + row * call.inner;
    for (std::int64_t k = 0; k < groups * PanelProduct::kGroup; k += kLanes) {
      const Halves halves =
          __builtin_convertvector(rounded_halves(load(x + k, call.inner - k, 0)) >> 16, Halves);
      HalvesBlock& to = blocks[row / kBlockRows * groups + k / PanelProduct::kGroup];
      __builtin_memcpy(&to.values[row % kBlockRows][k % PanelProduct::kGroup], &halves,
                       sizeof(halves));
    }
  }
  const TileShapes shapes{.row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                          .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
  finish_stores(&shapes);
  _tile_loadconfig(&shapes);
  const std::int64_t panels = panels_of(call);
  for (std::int64_t panel = 0; panel < panels; panel += 2) {
    const std::int64_t end = panel + 2 < panels ? panel + 2 : panels;
    for (std::int64_t row = 0; row < call.rows; row += 2 * kBlockRows) {
      const std::int64_t left = call.rows - row;
      halves_tile(call, blocks + row / kBlockRows * groups,
                  {row, left < 2 * kBlockRows ? left : 2 * kBlockRows, panel, end});
    }
  }
  _tile_release();
}

}  // namespace
}  // namespace orrery
#endif
