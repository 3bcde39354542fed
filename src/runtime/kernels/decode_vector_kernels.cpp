// runtime/kernels/decode_vector_kernels.cpp - the kernels that generate text, built once for each
// kind of vector unit under the name ORRERY_KERNELS. Nothing here may call an inline function of
// another header than vector_lanes.hpp, which says why.
//
// Each number has a sum of its own, whose terms are added in one order. So how many rows, panels
// and blocks are computed together decides the speed alone.
#include "runtime/kernels/decode_kernels.hpp"
#include "runtime/kernels/vector_lanes.hpp"

#if defined(__AVX512VNNI__)
#include <immintrin.h>  // its functions are inlined everywhere
#endif

namespace orrery {
namespace {

// A vector register, and the most sums and rows of a tile: with factors and weights they fill the
// registers.
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
using Strip = float __attribute__((vector_size(kStrip * sizeof(float))));
using StripWords = std::uint32_t __attribute__((vector_size(kStrip * sizeof(float))));
using StripHalves = std::uint16_t __attribute__((vector_size(kStrip * sizeof(std::uint16_t))));
constexpr std::int64_t kStripsOfPanel = PanelProduct::kPanel / kStrip;

ORRERY_INLINE Strip load_strip(const float* p) {
  Strip v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

// Loads the upper halves of floats.
ORRERY_INLINE Strip load_strip(const std::uint16_t* p) {
  StripHalves halves;
  __builtin_memcpy(&halves, p, sizeof(halves));
  const StripWords words = __builtin_convertvector(halves, StripWords) << 16;
  Strip v;
  __builtin_memcpy(&v, &words, sizeof(v));
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

// Computes kRows rows of kPanels panels, whose sums stay in registers. Weights are asked for before
// they are needed: what a processor looks ahead by itself is too little while it computes many
// rows.
template <class Weight, std::int64_t kRows, std::int64_t kPanels>
void product_tile(const Weight* panels, const PanelProduct& call, std::int64_t row,
                  std::int64_t panel) {
  constexpr std::int64_t kPanel = PanelProduct::kPanel;
  constexpr std::int64_t kStrips = kPanels * kStripsOfPanel;
  constexpr std::int64_t kAhead = 64;  // weights of a column
  const std::int64_t inner = call.inner;
  const float* x = call.x + row * inner;
  const Weight* w = panels + panel * inner * kPanel;
  Strip sums[kRows][kStrips] = {};
  for (std::int64_t k = 0; k < inner; ++k) {
#pragma GCC unroll 16
    for (std::int64_t s = 0; s < kStrips; ++s) {
      const Weight* at =
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

// The sums of the products of 32 integers: kRows rows by kPanels panels, each of which has its next
// group `stride` further. A sum is a whole number below 2^24, so floats hold it.
template <std::int64_t kRows, std::int64_t kPanels>
ORRERY_INLINE void group_sums(const PanelGroup* w, const RowGroup* x, std::int64_t stride,
                              Lanes (&sums)[kRows][kPanels]) {
#if defined(__AVX512VNNI__)
  __m512i whole[kRows][kPanels];
#pragma GCC unroll 8
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t p = 0; p < kPanels; ++p) {
      whole[r][p] = _mm512_set1_epi32(x[r * stride].offset);
    }
  }
#pragma GCC unroll 8
  for (std::int64_t four = 0; four < PanelGroup::kRows / 4; ++four) {
    __m512i weights[kPanels];
    for (std::int64_t p = 0; p < kPanels; ++p) {
      weights[p] = _mm512_loadu_si512(w[p * stride].weights[four]);
    }
#pragma GCC unroll 8
    for (std::int64_t r = 0; r < kRows; ++r) {
      std::int32_t values;
      __builtin_memcpy(&values, x[r * stride].values + 4 * four, sizeof(values));
      const __m512i all = _mm512_set1_epi32(values);
      for (std::int64_t p = 0; p < kPanels; ++p) {
        whole[r][p] = _mm512_dpbusd_epi32(whole[r][p], weights[p], all);
      }
    }
  }
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t p = 0; p < kPanels; ++p) {
      const __m512 floats = _mm512_cvtepi32_ps(whole[r][p]);
      __builtin_memcpy(&sums[r][p], &floats, sizeof(floats));
    }
  }
#else
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t p = 0; p < kPanels; ++p) {
      sums[r][p] = splat(static_cast<float>(x[r * stride].offset));
    }
  }
  for (std::int64_t four = 0; four < PanelGroup::kRows / 4; ++four) {
    for (std::int64_t p = 0; p < kPanels; ++p) {
      Words words;
      __builtin_memcpy(&words, w[p * stride].weights[four], sizeof(words));
      for (std::int64_t i = 0; i < 4; ++i) {
        const Lanes weights = __builtin_convertvector(words >> (8 * i) & 255, Lanes);
        for (std::int64_t r = 0; r < kRows; ++r) {
          const std::int8_t value = x[r * stride].values[4 * four + i];
          sums[r][p] += weights * static_cast<float>(value);
        }
      }
    }
  }
#endif
}

ORRERY_INLINE std::int64_t groups_of(const PanelProduct& call) {
  return (call.inner + PanelGroup::kRows - 1) / PanelGroup::kRows;
}

// Computes with integers what product_tile() does.
template <std::int64_t kRows, std::int64_t kPanels>
void group_tile(const PanelGroup* panels, const PanelProduct& call, std::int64_t row,
                std::int64_t panel) {
  const std::int64_t groups = groups_of(call);
  const PanelGroup* w = panels + panel * groups;
  const RowGroup* x = call.row_groups + row * groups;
  Lanes totals[kRows][kPanels] = {};
  for (std::int64_t group = 0; group < groups; ++group, ++w, ++x) {
    Lanes sums[kRows][kPanels];
    group_sums<kRows, kPanels>(w, x, groups, sums);
    for (std::int64_t p = 0; p < kPanels; ++p) {
      const Lanes scales = load(w[p * groups].scales);
      for (std::int64_t r = 0; r < kRows; ++r) {
        totals[r][p] += sums[r][p] * (scales * x[r * groups].scale);
      }
    }
  }
  const std::int64_t column = panel * PanelProduct::kPanel;
  const std::int64_t left = call.columns - column;
  const std::int64_t count = left < kPanels * kLanes ? left : kPanels * kLanes;
  for (std::int64_t r = 0; r < kRows; ++r) {
    float room[kPanels * kLanes];
    for (std::int64_t p = 0; p < kPanels; ++p) store(room + p * kLanes, totals[r][p]);
    finish_row(call, {row + r, column, count}, room);
  }
}

template <class Weight>
constexpr bool kIntegers = false;
template <>
constexpr bool kIntegers<PanelGroup> = true;

// Computes kRows rows of the panels of a tile, as many at once as registers hold; integers need two
// registers for a sum.
template <class Weight, std::int64_t kRows>
void product_rows(const PanelProduct& call, const Tile& tile) {
  constexpr std::int64_t kSums = kRows * kStripsOfPanel * (kIntegers<Weight> ? 2 : 1);
  constexpr std::int64_t kFit = kTileSums / kSums;
  constexpr std::int64_t kPanels = kFit >= 4 ? 4 : kFit >= 2 ? 2 : 1;
  const auto* panels = static_cast<const Weight*>(call.panels);
  std::int64_t panel = tile.panel;
  if constexpr (kIntegers<Weight>) {
    for (; panel + kPanels <= tile.panels_end; panel += kPanels) {
      group_tile<kRows, kPanels>(panels, call, tile.row, panel);
    }
    for (; panel < tile.panels_end; ++panel) group_tile<kRows, 1>(panels, call, tile.row, panel);
  } else {
    for (; panel + kPanels <= tile.panels_end; panel += kPanels) {
      product_tile<Weight, kRows, kPanels>(panels, call, tile.row, panel);
    }
    for (; panel < tile.panels_end; ++panel) {
      product_tile<Weight, kRows, 1>(panels, call, tile.row, panel);
    }
  }
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
  const std::int64_t panels = (call.columns + PanelProduct::kPanel - 1) / PanelProduct::kPanel;
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

ORRERY_INLINE Lanes rounded(Lanes x, float inverse) {
  constexpr float kShift = 12582912.0F;  // 1.5 x 2^23: adding it rounds to a whole number
  return lesser(greater(x * inverse + kShift - kShift, splat(-127.0F)), splat(127.0F));
}

// Rounds the rows to integers.
void round_rows(const PanelProduct& call) {
  using Bytes = std::int8_t __attribute__((vector_size(kLanes)));
  constexpr float kTiny = 1e-30F;
  RowGroup* to = call.row_groups;
  for (std::int64_t row = 0; row < call.rows; ++row) {
    const float* x = call.x + row * call.inner;
    for (std::int64_t k = 0; k < call.inner; k += PanelGroup::kRows, ++to) {
      const Lanes parts[2] = {load(x + k, call.inner - k, 0),
                              load(x + k + kLanes, call.inner - k - kLanes, 0)};
      const Lanes sizes[2] = {greater(parts[0], -parts[0]), greater(parts[1], -parts[1])};
      const float most = greatest(greater(sizes[0], sizes[1]));
      const float inverse = most > kTiny ? 127.0F / most : 0.0F;
      to->scale = most / 127.0F;
      to->offset = 0;
      for (std::int64_t i = 0; i < 2; ++i) {
        const Bytes bytes = __builtin_convertvector(
            __builtin_convertvector(rounded(parts[i], inverse), Words), Bytes);
        __builtin_memcpy(to->values + i * kLanes, &bytes, sizeof(bytes));
      }
      for (const std::int8_t value : to->values) to->offset -= 128 * value;
    }
  }
}

void panel_product(const PanelProduct& call) {
  switch (call.format) {
    case WeightFormat::kF32:
      return product<float>(call);
    case WeightFormat::kBf16:
      return product<std::uint16_t>(call);
    case WeightFormat::kInt8:
      round_rows(call);
      return product<PanelGroup>(call);
  }
}

// A head of an attention: where its query and its result are, and its keys and values in a block.
struct Head {
  const float* query;
  std::int64_t keys;
  std::int64_t values;
  float* out;
};

// The scores of kBlocks blocks of 16 tokens: a lane for each token. Each sum waits for its own last
// term, so several are computed at once.
template <std::int64_t kBlocks>
ORRERY_INLINE void block_scores(const PagedAttention& call, const Head& head, std::int64_t first) {
  constexpr std::int64_t kBlock = PagedAttention::kBlock;
  Strip sums[kBlocks][kStripsOfPanel] = {};
  for (std::int64_t d = 0; d < call.head_width; ++d) {
#pragma GCC unroll 4
    for (std::int64_t b = 0; b < kBlocks; ++b) {
      const float* keys = call.blocks[first + b] + head.keys + d * kBlock;
#pragma GCC unroll 4
      for (std::int64_t s = 0; s < kStripsOfPanel; ++s) {
        sums[b][s] += head.query[d] * load_strip(keys + s * kStrip);
      }
    }
  }
  for (std::int64_t b = 0; b < kBlocks; ++b) {
    float* scores = call.scores + (first + b) * kBlock;
    for (std::int64_t s = 0; s < kStripsOfPanel; ++s) {
      store_strip(scores + s * kStrip, sums[b][s] * call.scale);
    }
  }
}

ORRERY_INLINE void all_scores(const PagedAttention& call, const Head& head) {
  constexpr std::int64_t kTogether = kStrip / 4;
  const std::int64_t blocks = (call.visible + PagedAttention::kBlock - 1) / PagedAttention::kBlock;
  std::int64_t block = 0;
  for (; block + kTogether <= blocks; block += kTogether)
    block_scores<kTogether>(call, head, block);
  for (; block < blocks; ++block) block_scores<1>(call, head, block);
}

// Strips of the sum of values by their probabilities, token by token, from column d on.
template <std::int64_t kStrips>
ORRERY_INLINE void weighted_values(const PagedAttention& call, const Head& head, std::int64_t d) {
  constexpr std::int64_t kBlock = PagedAttention::kBlock;
  const std::int64_t left = call.head_width - d;
  Strip totals[kStrips] = {};
  for (std::int64_t first = 0; first < call.visible; first += kBlock) {
    const float* value = call.blocks[first / kBlock] + head.values + d;
    const std::int64_t end = first + kBlock < call.visible ? first + kBlock : call.visible;
    for (std::int64_t t = first; t < end; ++t, value += call.head_width) {
#pragma GCC unroll 4
      for (std::int64_t s = 0; s < kStrips; ++s) {
        const std::int64_t count = kStrips == 1 ? left : kStrip;
        totals[s] += call.scores[t] * load_strip(value + s * kStrip, count);
      }
    }
  }
  float room[kStrips * kStrip];
  for (std::int64_t s = 0; s < kStrips; ++s) store_strip(room + s * kStrip, totals[s]);
  for (std::int64_t i = 0; i < kStrips * kStrip && i < left; ++i) head.out[d + i] = room[i];
}

void attend_head(const PagedAttention& call, const Head& head) {
  all_scores(call, head);
  const float peak = row_peak(call.scores, call.visible);
  const float inverse = 1.0F / exponentials(call.scores, call.visible, peak);
  for (std::int64_t i = 0; i < call.visible; i += kLanes) {
    const std::int64_t left = call.visible - i;
    store(call.scores + i, left, load(call.scores + i, left, 0) * inverse);
  }
  std::int64_t d = 0;
  for (; d + 4 * kStrip <= call.head_width; d += 4 * kStrip) weighted_values<4>(call, head, d);
  for (; d + 2 * kStrip <= call.head_width; d += 2 * kStrip) weighted_values<2>(call, head, d);
  for (; d < call.head_width; d += kStrip) weighted_values<1>(call, head, d);
}

void paged_attention(const PagedAttention& call) {
  const std::int64_t head_floats = call.head_width * PagedAttention::kBlock;
  const std::int64_t shared = call.heads / call.kv_heads;
  for (std::int64_t head = 0; head < call.heads; ++head) {
    const std::int64_t keys = head / shared * head_floats;
    attend_head(call, {.query = call.query + head * call.head_width,
                       .keys = keys,
                       .values = keys + call.kv_heads * head_floats,
                       .out = call.out + head * call.head_width});
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
