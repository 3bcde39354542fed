// runtime/kernels/decode_vector_kernels.cpp - the kernels that generate text, built once for each
// kind of vector unit under the name ORRERY_KERNELS. Nothing here may call an inline function of
// another header than those beside vector_lanes.hpp, which says why.
//
// Each number has a sum of its own, whose terms are added in one order. So how many rows, panels
// and blocks are computed together decides the speed alone.
#include "runtime/kernels/register_tiles.hpp"
#include "runtime/kernels/rounded_products.hpp"

namespace orrery {
namespace {

using Strip = float __attribute__((vector_size(kStrip * sizeof(float))));
constexpr std::int64_t kStripsOfPanel = PanelProduct::kPanel / kStrip;

ORRERY_INLINE Strip load_strip(const float* p) {
  Strip v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

// Loads the first `count` floats; the others are 0.
ORRERY_INLINE Strip load_strip(const float* p, std::int64_t count) {
  if (count >= kStrip) return load_strip(p);
  float room[kStrip];
  for (std::int64_t i = 0; i < kStrip; ++i) room[i] = i < count ? p[i] : 0;
  return load_strip(room);
}

ORRERY_INLINE void store_strip(float* p, Strip v) { __builtin_memcpy(p, &v, sizeof(v)); }

// Computes kRows rows of kPanels panels, whose sums stay in registers. Weights are asked for before
// they are needed: what a processor looks ahead by itself is too little while it computes many
// rows.
template <std::int64_t kRows, std::int64_t kPanels>
void panel_tile(const float* panels, const PanelProduct& call, std::int64_t row,
                std::int64_t panel) {
  constexpr std::int64_t kPanel = PanelProduct::kPanel;
  constexpr std::int64_t kStrips = kPanels * kStripsOfPanel;
  constexpr std::int64_t kAhead = 64;  // weights of a column
  const std::int64_t inner = call.inner;
  const float* x = call.x + row * inner;
  const float* w = panels + panel * inner * kPanel;
  Strip sums[kRows][kStrips] = {};
  for (std::int64_t k = 0; k < inner; ++k) {
#pragma GCC unroll 16
    for (std::int64_t s = 0; s < kStrips; ++s) {
      const float* at =
          w + s / kStripsOfPanel * inner * kPanel + k * kPanel + s % kStripsOfPanel * kStrip;
      const Strip weight = load_strip(at);
      if (s % kStripsOfPanel == 0) __builtin_prefetch(at + kAhead * kPanel);
#pragma GCC unroll 8
      for (std::int64_t r = 0; r < kRows; ++r) sums[r][s] += x[r * inner + k] * weight;
    }
  }
  const std::int64_t column = panel * kPanel;
  const std::int64_t left = call.columns - column;
  const std::int64_t count = left < kStrips * kStrip ? left : kStrips * kStrip;
  for (std::int64_t r = 0; r < kRows; ++r) {
    float room[kStrips * kStrip];
    for (std::int64_t s = 0; s < kStrips; ++s) store_strip(room + s * kStrip, sums[r][s]);
    finish_row(call, {row + r, column, count}, room);
  }
}

// The registers of a sum: what is rounded needs more than one.
template <class Weight>
constexpr std::int64_t kRegistersOfSum = 2;
template <>
constexpr std::int64_t kRegistersOfSum<float> = 1;

// Computes kRows rows of the panels of a tile, as many at once as registers hold.
template <class Weight, std::int64_t kRows>
void product_rows(const PanelProduct& call, const Tile& tile) {
  constexpr std::int64_t kFit = kTileSums / (kRows * kStripsOfPanel * kRegistersOfSum<Weight>);
  constexpr std::int64_t kPanels = kFit >= 4 ? 4 : kFit >= 2 ? 2 : 1;
  const auto* panels = static_cast<const Weight*>(call.panels);
  std::int64_t panel = tile.panel;
  for (; panel + kPanels <= tile.panels_end; panel += kPanels) {
    panel_tile<kRows, kPanels>(panels, call, tile.row, panel);
  }
  for (; panel < tile.panels_end; ++panel) panel_tile<kRows, 1>(panels, call, tile.row, panel);
}

// Computes up to kRowsMax rows at once.
template <class Weight, std::int64_t kRowsMax>
void product_rows_up_to(const PanelProduct& call, const Tile& tile) {
  if constexpr (kRowsMax > 1) {
    if (tile.rows < kRowsMax) return product_rows_up_to<Weight, kRowsMax - 1>(call, tile);
  }
  product_rows<Weight, kRowsMax>(call, tile);
}

// Weights are read from memory once: those of a few panels stay in the cache while all rows pass
// them, in equal shares.
template <class Weight>
void product(const PanelProduct& call) {
  constexpr std::int64_t kCacheFloats = std::int64_t{1} << 16;
  constexpr std::int64_t kPanelsMax = 4;
  const std::int64_t panels = panels_of(call);
  const std::int64_t passes = (call.rows + kTileRows - 1) / kTileRows;
  const bool all_stay =
      passes == 1 || kPanelsMax * PanelProduct::kPanel * call.inner < kCacheFloats;
  const std::int64_t together = all_stay ? kPanelsMax : kPanelsMax / 2;
  for (std::int64_t begin = 0; begin < panels; begin += together) {
    const std::int64_t end = begin + together < panels ? begin + together : panels;
    std::int64_t row = 0;
    for (std::int64_t left = passes; left > 0; --left) {
      const std::int64_t rows = (call.rows - row + left - 1) / left;
      product_rows_up_to<Weight, kTileRows>(call, {row, rows, begin, end});
      row += rows;
    }
  }
}

void panel_product(const PanelProduct& call) {
  switch (call.format) {
    case WeightFormat::kF32:
      return product<float>(call);
    case WeightFormat::kBf16:
#if defined(__AMX_INT8__)
      if (call.rows >= kTilesPayForHalves) return halves_block_product(call);
#endif
      round_to_halves(call);
      return product<PanelHalves>(call);
    case WeightFormat::kInt8:
#if defined(__AMX_INT8__)
      if (call.rows >= kTilesPayForIntegers) return integer_block_product(call);
#endif
      round_to_integers(call);
      return product<PanelGroup>(call);
  }
}

// Heads of an attention that share keys and values: where the query and the result of the first
// are, and its keys and values in a block.
struct Heads {
  const float* query;
  std::int64_t keys;
  std::int64_t values;
  float* out;
  std::int64_t scores;  // floats of a head
};

// The scores of kBlocks blocks of 16 tokens for kHeads heads: a lane for each token. Each sum waits
// for its own last term, so several are computed at once.
template <std::int64_t kHeads, std::int64_t kBlocks>
ORRERY_INLINE void block_scores(const PagedAttention& call, const Heads& heads,
                                std::int64_t first) {
  constexpr std::int64_t kBlock = PagedAttention::kBlock;
  Strip sums[kHeads][kBlocks][kStripsOfPanel] = {};
  for (std::int64_t d = 0; d < call.head_width; ++d) {
#pragma GCC unroll 4
    for (std::int64_t b = 0; b < kBlocks; ++b) {
      const float* keys = call.blocks[first + b] + heads.keys + d * kBlock;
#pragma GCC unroll 4
      for (std::int64_t s = 0; s < kStripsOfPanel; ++s) {
        const Strip key = load_strip(keys + s * kStrip);
#pragma GCC unroll 4
        for (std::int64_t h = 0; h < kHeads; ++h) {
          sums[h][b][s] += heads.query[h * call.head_width + d] * key;
        }
      }
    }
  }
  for (std::int64_t h = 0; h < kHeads; ++h) {
    for (std::int64_t b = 0; b < kBlocks; ++b) {
      float* scores = call.scores + h * heads.scores + (first + b) * kBlock;
      for (std::int64_t s = 0; s < kStripsOfPanel; ++s) {
        store_strip(scores + s * kStrip, sums[h][b][s] * call.scale);
      }
    }
  }
}

template <std::int64_t kHeads>
ORRERY_INLINE void all_scores(const PagedAttention& call, const Heads& heads) {
  constexpr std::int64_t kTogether = kStrip / 4;
  const std::int64_t blocks = heads.scores / PagedAttention::kBlock;
  std::int64_t block = 0;
  for (; block + kTogether <= blocks; block += kTogether) {
    block_scores<kHeads, kTogether>(call, heads, block);
  }
  for (; block < blocks; ++block) block_scores<kHeads, 1>(call, heads, block);
}

// Strips of the sums of values by their probabilities, token by token, from column d on.
template <std::int64_t kHeads, std::int64_t kStrips>
ORRERY_INLINE void weighted_values(const PagedAttention& call, const Heads& heads, std::int64_t d) {
  constexpr std::int64_t kBlock = PagedAttention::kBlock;
  const std::int64_t left = call.head_width - d;
  Strip totals[kHeads][kStrips] = {};
  for (std::int64_t first = 0; first < call.visible; first += kBlock) {
    const float* value = call.blocks[first / kBlock] + heads.values + d;
    const std::int64_t end = first + kBlock < call.visible ? first + kBlock : call.visible;
    for (std::int64_t t = first; t < end; ++t, value += call.head_width) {
#pragma GCC unroll 4
      for (std::int64_t s = 0; s < kStrips; ++s) {
        const Strip strip = load_strip(value + s * kStrip, kStrips == 1 ? left : kStrip);
#pragma GCC unroll 4
        for (std::int64_t h = 0; h < kHeads; ++h) {
          totals[h][s] += call.scores[h * heads.scores + t] * strip;
        }
      }
    }
  }
  for (std::int64_t h = 0; h < kHeads; ++h) {
    float room[kStrips * kStrip];
    for (std::int64_t s = 0; s < kStrips; ++s) store_strip(room + s * kStrip, totals[h][s]);
    float* out = heads.out + h * call.head_width + d;
    for (std::int64_t i = 0; i < kStrips * kStrip && i < left; ++i) out[i] = room[i];
  }
}

template <std::int64_t kHeads>
void attend_heads(const PagedAttention& call, const Heads& heads) {
  all_scores<kHeads>(call, heads);
  for (std::int64_t h = 0; h < kHeads; ++h) {
    float* scores = call.scores + h * heads.scores;
    const float highest = row_peak(scores, call.visible);
    const float inverse = 1.0F / exponentials(scores, call.visible, highest);
    for (std::int64_t i = 0; i < call.visible; i += kLanes) {
      const std::int64_t left = call.visible - i;
      store(scores + i, left, load(scores + i, left, 0) * inverse);
    }
  }
  const std::int64_t width = call.head_width;
  std::int64_t d = 0;
  for (; d + 4 * kStrip <= width; d += 4 * kStrip) weighted_values<kHeads, 4>(call, heads, d);
  for (; d + 2 * kStrip <= width; d += 2 * kStrip) weighted_values<kHeads, 2>(call, heads, d);
  for (; d < width; d += kStrip) weighted_values<kHeads, 1>(call, heads, d);
}

// Attends with as many of `count` heads as registers hold; returns how many.
template <std::int64_t kHeadsMax>
std::int64_t attend_up_to(const PagedAttention& call, const Heads& heads, std::int64_t count) {
  if constexpr (kHeadsMax > 1) {
    if (count < kHeadsMax) return attend_up_to<kHeadsMax - 1>(call, heads, count);
  }
  attend_heads<kHeadsMax>(call, heads);
  return kHeadsMax;
}

void paged_attention(const PagedAttention& call) {
  constexpr std::int64_t kBlock = PagedAttention::kBlock;
  constexpr std::int64_t kHeadsMax =
      kTileRows / 2 < PagedAttention::kHeadsMax ? kTileRows / 2 : PagedAttention::kHeadsMax;
  const std::int64_t head_floats = call.head_width * kBlock;
  const std::int64_t shared = call.heads / call.kv_heads;
  for (std::int64_t kv_head = 0; kv_head < call.kv_heads; ++kv_head) {
    for (std::int64_t done = 0; done < shared;) {
      const std::int64_t at = (kv_head * shared + done) * call.head_width;
      const Heads heads{.query = call.query + at,
                        .keys = kv_head * head_floats,
                        .values = (call.kv_heads + kv_head) * head_floats,
                        .out = call.out + at,
                        .scores = (call.visible + kBlock - 1) / kBlock * kBlock};
      done += attend_up_to<kHeadsMax>(call, heads, shared - done);
    }
  }
}

float peak(const float* x, std::int64_t count) { return row_peak(x, count); }

}  // namespace

namespace decode_kernel_tables {

extern const DecodeKernels ORRERY_KERNELS;
const DecodeKernels ORRERY_KERNELS{
    .panel_product = panel_product, .paged_attention = paged_attention, .peak = peak};

}  // namespace decode_kernel_tables
}  // namespace orrery
