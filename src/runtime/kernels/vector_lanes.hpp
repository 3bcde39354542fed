// runtime/kernels/vector_lanes.hpp - vectors of 16 floats as the kernels compute with them, for the
// sources that are built once for each kind of vector unit under the name ORRERY_KERNELS.
//
// Every function is inlined and known to its source alone: the linker would keep one copy of any
// other for the whole program, perhaps the one that an older CPU does not run. Pure functions.
#pragma once

#include <cstdint>

#ifndef ORRERY_KERNELS
#define ORRERY_KERNELS baseline
#endif
#define ORRERY_TEXT_OF(x) #x
#define ORRERY_TEXT(x) ORRERY_TEXT_OF(x)
#define ORRERY_INLINE [[gnu::always_inline]] inline

// How a call passes a whole vector differs between vector units; all of these are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace orrery {
namespace {

using Lanes = float __attribute__((vector_size(64)));
using Words = std::int32_t __attribute__((vector_size(64)));

constexpr std::int64_t kLanes = 16;

ORRERY_INLINE Lanes load(const float* p) {
  Lanes v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

ORRERY_INLINE void store(float* p, Lanes v) { __builtin_memcpy(p, &v, sizeof(v)); }

// Loads the first `count` lanes, and sets the others to `rest`.
ORRERY_INLINE Lanes load(const float* p, std::int64_t count, float rest) {
  if (count >= kLanes) return load(p);
  float lanes[kLanes];
  for (std::int64_t i = 0; i < kLanes; ++i) lanes[i] = i < count ? p[i] : rest;
  return load(lanes);
}

ORRERY_INLINE void store(float* p, std::int64_t count, Lanes v) {
  if (count >= kLanes) return store(p, v);
  float lanes[kLanes];
  store(lanes, v);
  for (std::int64_t i = 0; i < count; ++i) p[i] = lanes[i];
}

ORRERY_INLINE Lanes splat(float x) { return Lanes{} + x; }
ORRERY_INLINE Lanes greater(Lanes a, Lanes b) { return a > b ? a : b; }
ORRERY_INLINE Lanes lesser(Lanes a, Lanes b) { return a < b ? a : b; }

ORRERY_INLINE float sum(Lanes v) {
  float lanes[kLanes];
  store(lanes, v);
  for (std::int64_t step = kLanes / 2; step > 0; step /= 2) {
    for (std::int64_t i = 0; i < step; ++i) lanes[i] += lanes[i + step];
  }
  return lanes[0];
}

ORRERY_INLINE float greatest(Lanes v) {
  float lanes[kLanes];
  store(lanes, v);
  for (std::int64_t i = 1; i < kLanes; ++i) lanes[0] = lanes[0] > lanes[i] ? lanes[0] : lanes[i];
  return lanes[0];
}

// e^x = 2^n e^r, n the nearest whole number to x / ln 2, so |r| <= ln 2 / 2; ln 2 in two parts, the
// first of few bits, so that n times it is exact. The polynomial is Cephes' expf (S. L. Moshier,
// 1989).
ORRERY_INLINE Lanes exponential(Lanes x) {
  constexpr float kShift = 12582912.0F;  // 1.5 x 2^23: adding it rounds to a whole number
  x = greater(lesser(x, splat(87.0F)), splat(-87.0F));
  const Lanes shifted = x * 1.44269504F + kShift;
  const Lanes n = shifted - kShift;
  const Lanes r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  Lanes p = splat(1.9875691500e-4F);
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
  Words bits;
  __builtin_memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits - 0x4b400000 + 127) << 23;
  Lanes power;
  __builtin_memcpy(&power, &bits, sizeof(power));
  return p * power;
}

constexpr float kLowest = -3e38F;

ORRERY_INLINE float row_peak(const float* x, std::int64_t count) {
  Lanes peak = splat(kLowest);
  for (std::int64_t i = 0; i < count; i += kLanes) {
    peak = greater(peak, load(x + i, count - i, kLowest));
  }
  return greatest(peak);
}

// Replaces x by exp(x - peak); returns the sum.
ORRERY_INLINE float exponentials(float* x, std::int64_t count, float peak) {
  Lanes total{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Lanes e = exponential(load(x + i) - peak);
    store(x + i, e);
    total += e;
  }
  if (i < count) {
    store(x + i, count - i, exponential(load(x + i, count - i, peak) - peak));
    total += load(x + i, count - i, 0);
  }
  return sum(total);
}

}  // namespace
}  // namespace orrery
