// runtime/kernels/rounded_products.hpp - products with weights in bf16 and in integers of 8 bits,
// in vector registers. The rows are rounded as the weights are.
//
// Built like vector_lanes.hpp, and for the same reason: every function is inlined, or of one
// source.
#pragma once

#include "runtime/kernels/panel_tiles.hpp"

#if defined(__AVX512VNNI__)
#include <immintrin.h>  // its functions are inlined everywhere
#endif

namespace orrery {
namespace {

using WholeWords = std::uint32_t __attribute__((vector_size(64)));

ORRERY_INLINE Lanes lanes_of(WholeWords words) {
  Lanes lanes;
  __builtin_memcpy(&lanes, &words, sizeof(lanes));
  return lanes;
}

// Rounds floats to upper halves, as those of weights are rounded; the lower halves are 0.
ORRERY_INLINE WholeWords rounded_halves(Lanes x) {
  const Lanes sizes = greater(x, -x);
  x = sizes < splat(PanelHalves::kLeast) ? Lanes{} : x;
  WholeWords bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  return (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000U;
}

// Rounds the rows to upper halves; each has 32 floats a group.
ORRERY_INLINE void round_to_halves(const PanelProduct& call) {
  auto* to = static_cast<float*>(call.row_room);
  for (std::int64_t row = 0; row < call.rows; ++row) {
    const float* x = call.x + row * call.inner;
    for (std::int64_t k = 0; k < groups_of(call) * PanelProduct::kGroup; k += kLanes) {
      store(to, lanes_of(rounded_halves(load(x + k, call.inner - k, 0))));
      to += kLanes;
    }
  }
}

// Computes with upper halves what the tile of floats does. Products of two of these are exact, and
// the even and the odd ones of a group have sums of their own: so do tile registers add.
template <std::int64_t kRows, std::int64_t kPanels>
void panel_tile(const PanelHalves* panels, const PanelProduct& call, std::int64_t row,
                std::int64_t panel) {
  const std::int64_t groups = groups_of(call);
  const std::int64_t stride = groups * PanelProduct::kGroup;
  const PanelHalves* w = panels + panel * groups;
  const float* x = static_cast<const float*>(call.row_room) + row * stride;
  Lanes totals[kRows][kPanels] = {};
  for (std::int64_t group = 0; group < groups; ++group, ++w, x += PanelProduct::kGroup) {
    Lanes even[kRows][kPanels] = {};
    Lanes odd[kRows][kPanels] = {};
    for (std::int64_t pair = 0; pair < PanelProduct::kGroup / 2; ++pair) {
#pragma GCC unroll 4
      for (std::int64_t p = 0; p < kPanels; ++p) {
        WholeWords words;
        __builtin_memcpy(&words, w[p * groups].weights[pair], sizeof(words));
        __builtin_prefetch(w[p * groups + 2].weights[pair]);
        const Lanes evens = lanes_of(words << 16);
        const Lanes odds = lanes_of(words & 0xffff0000U);
#pragma GCC unroll 8
        for (std::int64_t r = 0; r < kRows; ++r) {
          even[r][p] += x[r * stride + 2 * pair] * evens;
          odd[r][p] += x[r * stride + 2 * pair + 1] * odds;
        }
      }
    }
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t p = 0; p < kPanels; ++p) totals[r][p] += even[r][p] + odd[r][p];
    }
  }
  for (std::int64_t p = 0; p < kPanels; ++p) {
    float room[kRows * kLanes];
    for (std::int64_t r = 0; r < kRows; ++r) store(room + r * kLanes, totals[r][p]);
    finish_panel(call, {row, kRows, panel + p, panel + p + 1}, room);
  }
}

// 32 floats of a row as integers.
struct RowGroup {
  std::int8_t values[PanelProduct::kGroup];
  float scale;
  std::int32_t offset;  // -128 times their sum, for the weights are 128 too large
};

ORRERY_INLINE Lanes rounded(Lanes x, float inverse) {
  constexpr float kShift = 12582912.0F;  // 1.5 x 2^23: adding it rounds to a whole number
  return lesser(greater(x * inverse + kShift - kShift, splat(-127.0F)), splat(127.0F));
}

// Rounds 32 floats of a row, of which `count` exist, to integers; returns their scale.
ORRERY_INLINE float round_group(const float* x, std::int64_t count, std::int8_t* to) {
  using Bytes = std::int8_t __attribute__((vector_size(kLanes)));
  constexpr float kTiny = 1e-30F;
  const Lanes parts[2] = {load(x, count, 0), load(x + kLanes, count - kLanes, 0)};
  const Lanes sizes[2] = {greater(parts[0], -parts[0]), greater(parts[1], -parts[1])};
  const float most = greatest(greater(sizes[0], sizes[1]));
  const float inverse = most > kTiny ? 127.0F / most : 0.0F;
  for (std::int64_t i = 0; i < 2; ++i) {
    const Bytes bytes =
        __builtin_convertvector(__builtin_convertvector(rounded(parts[i], inverse), Words), Bytes);
    __builtin_memcpy(to + i * kLanes, &bytes, sizeof(bytes));
  }
  return most / 127.0F;
}

// Rounds the rows to integers.
ORRERY_INLINE void round_to_integers(const PanelProduct& call) {
  auto* to = static_cast<RowGroup*>(call.row_room);
  for (std::int64_t row = 0; row < call.rows; ++row) {
    const float* x = call.x + row * call.inner;
    for (std::int64_t k = 0; k < call.inner; k += PanelProduct::kGroup, ++to) {
      to->scale = round_group(x + k, call.inner - k, to->values);
      to->offset = 0;
      for (const std::int8_t value : to->values) to->offset -= 128 * value;
    }
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
  for (std::int64_t four = 0; four < PanelProduct::kGroup / 4; ++four) {
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
  for (std::int64_t four = 0; four < PanelProduct::kGroup / 4; ++four) {
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

// Computes with integers what the tile of floats does.
template <std::int64_t kRows, std::int64_t kPanels>
void panel_tile(const PanelGroup* panels, const PanelProduct& call, std::int64_t row,
                std::int64_t panel) {
  const std::int64_t groups = groups_of(call);
  const PanelGroup* w = panels + panel * groups;
  const RowGroup* x = static_cast<const RowGroup*>(call.row_room) + row * groups;
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
  for (std::int64_t p = 0; p < kPanels; ++p) {
    float room[kRows * kLanes];
    for (std::int64_t r = 0; r < kRows; ++r) store(room + r * kLanes, totals[r][p]);
    finish_panel(call, {row, kRows, panel + p, panel + p + 1}, room);
  }
}

}  // namespace
}  // namespace orrery
