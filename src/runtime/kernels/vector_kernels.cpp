// runtime/kernels/vector_kernels.cpp - the kernels, built once for each kind of vector unit under
// the name ORRERY_KERNELS. Nothing here may call an inline function of another header: the linker
// would keep one copy of it for the whole program, perhaps the one that an older CPU does not run.
#include "base/numbers/math.hpp"
#include "runtime/kernels/decode_kernels.hpp"
#include "runtime/kernels/kernels.hpp"

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
using UnsignedWords = std::uint32_t __attribute__((vector_size(64)));
using HalfWords = std::uint16_t __attribute__((vector_size(32)));
using WideLanes = double __attribute__((vector_size(128)));

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

ORRERY_INLINE Lanes sigmoid(Lanes x) { return 1.0F / (1.0F + exponential(-x)); }

enum class Centre { kMean, kZero };

template <Centre kCentre>
void norm(const NormForward& call) {
  const auto width = static_cast<float>(call.width);
  for (std::int64_t row = 0; row < call.rows; ++row) {
    const float* x = call.x + row * call.width;
    float mean = 0;
    if constexpr (kCentre == Centre::kMean) {
      Lanes total{};
      for (std::int64_t i = 0; i < call.width; i += kLanes) total += load(x + i);
      mean = sum(total) / width;
      call.mean[row] = mean;
    }
    Lanes squares{};
    for (std::int64_t i = 0; i < call.width; i += kLanes) {
      const Lanes centred = load(x + i) - mean;
      squares += centred * centred;
    }
    const float inverse = 1.0F / __builtin_sqrtf(sum(squares) / width + call.epsilon);
    call.inverse_deviation[row] = inverse;
    float* out = call.out + row * call.width;
    for (std::int64_t i = 0; i < call.width; i += kLanes) {
      Lanes y = (load(x + i) - mean) * inverse * load(call.weight + i);
      if constexpr (kCentre == Centre::kMean) y += load(call.bias + i);
      store(out + i, y);
    }
  }
}

// With z the normed row and g the gradient of z: x's is (g - mean(g) - z mean(g z)) / deviation.
template <Centre kCentre>
void norm_backward(const NormBackward& call) {
  const auto width = static_cast<float>(call.width);
  for (std::int64_t row = 0; row < call.rows; ++row) {
    const float* x = call.x + row * call.width;
    const float* dy = call.out_gradient + row * call.width;
    const float mean = kCentre == Centre::kMean ? call.mean[row] : 0.0F;
    const float inverse = call.inverse_deviation[row];
    Lanes along{};
    Lanes total{};
    for (std::int64_t i = 0; i < call.width; i += kLanes) {
      const Lanes z = (load(x + i) - mean) * inverse;
      const Lanes dyi = load(dy + i);
      const Lanes g = dyi * load(call.weight + i);
      along += g * z;
      total += g;
      store(call.weight_gradient + i, load(call.weight_gradient + i) + dyi * z);
      if constexpr (kCentre == Centre::kMean) {
        store(call.bias_gradient + i, load(call.bias_gradient + i) + dyi);
      }
    }
    const float along_mean = sum(along) / width;
    const float total_mean = kCentre == Centre::kMean ? sum(total) / width : 0.0F;
    float* dx = call.x_gradient + row * call.width;
    for (std::int64_t i = 0; i < call.width; i += kLanes) {
      const Lanes z = (load(x + i) - mean) * inverse;
      const Lanes g = load(dy + i) * load(call.weight + i);
      store(dx + i, load(dx + i) + (g - total_mean - z * along_mean) * inverse);
    }
  }
}

void fill_rows(const RowFill& call) {
  for (std::int64_t row = 0; row < call.rows; ++row) {
    const std::int64_t begin = row * call.width;
    for (std::int64_t i = 0; i < call.width; i += kLanes) {
      const std::int64_t left = call.width - i;
      Lanes y{};
      if (call.x != nullptr) y = load(call.x + begin + i, left, 0);
      if (call.bias != nullptr) y += load(call.bias + i, left, 0);
      store(call.out + begin + i, left, y);
    }
  }
}

void sum_rows(const RowFill& call) {
  for (std::int64_t row = 0; row < call.rows; ++row) {
    const float* x = call.x + row * call.width;
    for (std::int64_t i = 0; i < call.width; i += kLanes) {
      const std::int64_t left = call.width - i;
      store(call.out + i, left, load(call.out + i, left, 0) + load(x + i, left, 0));
    }
  }
}

// gelu(x) = x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3); and 1 + tanh u = 2 sigmoid(2u).
constexpr float kGeluSlope = 1.5957691216F;  // 2 sqrt(2/pi)
constexpr float kGeluCubic = 0.044715F;

ORRERY_INLINE Lanes gelu_gate(Lanes x) {
  return sigmoid(kGeluSlope * (x + kGeluCubic * (x * x * x)));
}

void gelu(const float* x, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const Lanes v = load(x + i, count - i, 0);
    store(out + i, count - i, v * gelu_gate(v));
  }
}

void gelu_backward(const float* x, std::int64_t count, float* gradient) {
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const std::int64_t left = count - i;
    const Lanes v = load(x + i, left, 0);
    const Lanes gate = gelu_gate(v);
    const Lanes inner = kGeluSlope * (1.0F + 3.0F * kGeluCubic * (v * v));
    const Lanes slope = gate + v * gate * (1.0F - gate) * inner;
    store(gradient + i, left, load(gradient + i, left, 0) * slope);
  }
}

void swiglu(const SwigluRows& call) {
  for (std::int64_t row = 0; row < call.rows; ++row) {
    const float* gate = call.gate_and_value + row * 2 * call.width;
    const float* value = gate + call.width;
    float* out = call.out + row * call.width;
    for (std::int64_t i = 0; i < call.width; i += kLanes) {
      const Lanes g = load(gate + i);
      store(out + i, g * sigmoid(g) * load(value + i));
    }
  }
}

void swiglu_backward(const SwigluRows& call) {
  for (std::int64_t row = 0; row < call.rows; ++row) {
    const float* gate = call.gate_and_value + row * 2 * call.width;
    const float* dy = call.out_gradient + row * call.width;
    float* gradient = call.gradient + row * 2 * call.width;
    for (std::int64_t i = 0; i < call.width; i += kLanes) {
      const Lanes g = load(gate + i);
      const Lanes value = load(gate + call.width + i);
      const Lanes d = load(dy + i);
      const Lanes s = sigmoid(g);
      store(gradient + i, d * value * (s + g * s * (1.0F - s)));
      store(gradient + call.width + i, d * (g * s));
    }
  }
}

void rotate(const RotaryRows& call) {
  for (std::int64_t row = 0; row < call.rows; ++row) {
    const std::int64_t position = row % call.time;
    const float* cosine = call.cosine + position * call.half;
    const float* sine = call.sine + position * call.half;
    for (std::int64_t head = 0; head < call.heads; ++head) {
      float* a = call.x + row * call.stride + head * 2 * call.half;
      float* b = a + call.half;
      for (std::int64_t i = 0; i < call.half; i += kLanes) {
        const std::int64_t left = call.half - i;
        const Lanes c = load(cosine + i, left, 0);
        const Lanes s = load(sine + i, left, 0) * call.direction;
        const Lanes first = load(a + i, left, 0);
        const Lanes second = load(b + i, left, 0);
        store(a + i, left, first * c - second * s);
        store(b + i, left, second * c + first * s);
      }
    }
  }
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

void softmax(const CausalSoftmax& call) {
  for (std::int64_t row = 0; row < call.rows; ++row) {
    float* x = call.scores + row * call.columns;
    const std::int64_t visible = call.visible + row;
    const float peak = row_peak(x, visible);
    const float inverse = 1.0F / exponentials(x, visible, peak);
    call.peak[row] = peak;
    call.inverse_sum[row] = inverse;
    for (std::int64_t i = 0; i < visible; i += kLanes) {
      store(x + i, visible - i, load(x + i, visible - i, 0) * inverse);
    }
    for (std::int64_t i = visible; i < call.columns; ++i) x[i] = 0;
  }
}

// With p the probabilities and g their gradient: the scores' is p (g - sum(p g)).
void softmax_backward(const CausalSoftmaxBackward& call) {
  for (std::int64_t row = 0; row < call.rows; ++row) {
    float* x = call.scores + row * call.columns;
    float* g = call.gradient + row * call.columns;
    const std::int64_t visible = call.visible + row;
    const float peak = call.peak[row];
    const float inverse = call.inverse_sum[row];
    Lanes along{};
    for (std::int64_t i = 0; i < visible; i += kLanes) {
      const std::int64_t left = visible - i;
      const Lanes p = exponential(load(x + i, left, peak) - peak) * inverse;
      store(x + i, left, p);
      along += p * load(g + i, left, 0);
    }
    const float along_sum = sum(along);
    for (std::int64_t i = 0; i < visible; i += kLanes) {
      const std::int64_t left = visible - i;
      store(g + i, left, load(x + i, left, 0) * (load(g + i, left, 0) - along_sum));
    }
    for (std::int64_t i = visible; i < call.columns; ++i) x[i] = g[i] = 0;
  }
}

void cross_entropy(const CrossEntropy& call) {
  for (std::int64_t row = 0; row < call.rows; ++row) {
    float* x = call.logits + row * call.vocab;
    const std::int32_t target = call.targets[row];
    const float peak = row_peak(x, call.vocab);
    const float depth = peak - x[target];
    const float total = exponentials(x, call.vocab, peak);
    call.loss[row] = static_cast<float>(math::log(static_cast<double>(total))) + depth;
    if (call.gradient == CrossEntropy::Gradient::kNone) continue;
    const float factor = call.scale / total;
    for (std::int64_t i = 0; i < call.vocab; i += kLanes) {
      const std::int64_t left = call.vocab - i;
      store(x + i, left, load(x + i, left, 0) * factor);
    }
    x[target] -= call.scale;
  }
}

ORRERY_INLINE Lanes square_root(Lanes v) {
  float lanes[kLanes];
  store(lanes, v);
  for (float& lane : lanes) lane = __builtin_sqrtf(lane);
  return load(lanes);
}

void adam(const AdamStep& call) {
  for (std::int64_t i = 0; i < call.count; i += kLanes) {
    const std::int64_t left = call.count - i;
    const Lanes g = load(call.gradient + i, left, 0) * call.gradient_scale;
    const Lanes p = load(call.parameters + i, left, 0);
    const Lanes m = load(call.first + i, left, 0) * call.beta1 + g * (1.0F - call.beta1);
    const Lanes v = load(call.second + i, left, 0) * call.beta2 + g * g * (1.0F - call.beta2);
    store(call.first + i, left, m);
    store(call.second + i, left, v);
    const Lanes deviation = square_root(v * call.second_correction) + call.epsilon;
    const Lanes step = m * call.first_correction / deviation;
    store(call.parameters + i, left, p - step * call.rate - p * call.decay);
  }
}

void to_bfloat16(const Bfloat16Rows& call) {
  for (std::int64_t row = 0; row < call.rows; ++row) {
    const float* x = call.x + row * call.stride;
    std::uint16_t* out = call.out + row * call.width;
    for (std::int64_t i = 0; i < call.width; i += kLanes) {
      const std::int64_t left = call.width - i;
      const Lanes v = load(x + i, left, 0);
      UnsignedWords bits;
      __builtin_memcpy(&bits, &v, sizeof(bits));
      const UnsignedWords rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
      const UnsignedWords nan = UnsignedWords{} + 0x7fc0U;
      const HalfWords halves = __builtin_convertvector(v == v ? rounded : nan, HalfWords);
      if (left >= kLanes) {
        __builtin_memcpy(out + i, &halves, sizeof(halves));
      } else {
        __builtin_memcpy(out + i, &halves, static_cast<std::size_t>(left) * sizeof(*out));
      }
    }
  }
}

double squares(const float* x, std::int64_t count) {
  WideLanes total{};
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const WideLanes wide = __builtin_convertvector(load(x + i, count - i, 0), WideLanes);
    total += wide * wide;
  }
  double lanes[kLanes];
  __builtin_memcpy(lanes, &total, sizeof(total));
  for (std::int64_t step = kLanes / 2; step > 0; step /= 2) {
    for (std::int64_t i = 0; i < step; ++i) lanes[i] += lanes[i + step];
  }
  return lanes[0];
}

void exponential(const float* x, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; i += kLanes) {
    store(out + i, count - i, exponential(load(x + i, count - i, 0)));
  }
}

// A vector register. Its width decides the speed alone: each column has a sum of its own.
#if defined(__AVX512F__)
constexpr std::int64_t kStrip = 16;
#elif defined(__AVX__)
constexpr std::int64_t kStrip = 8;
#else
constexpr std::int64_t kStrip = 4;
#endif
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

// Computes kRows rows of kPanels panels, whose sums stay in registers.
template <std::int64_t kRows, std::int64_t kPanels>
void product_tile(const PanelProduct& call, std::int64_t row, std::int64_t panel) {
  constexpr std::int64_t kPanel = PanelProduct::kPanel;
  constexpr std::int64_t kStrips = kPanels * kStripsOfPanel;
  const std::int64_t inner = call.inner;
  const float* x = call.x + row * inner;
  const float* w = call.panels + panel * inner * kPanel;
  Strip sums[kRows][kStrips] = {};
  for (std::int64_t k = 0; k < inner; ++k) {
#pragma GCC unroll 16
    for (std::int64_t s = 0; s < kStrips; ++s) {
      const Strip weight = load_strip(w + s / kStripsOfPanel * inner * kPanel + k * kPanel +
                                      s % kStripsOfPanel * kStrip);
#pragma GCC unroll 4
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

// Computes rows of the panels from `panel` on, kPanels at a time; returns the first that is left.
template <std::int64_t kRows, std::int64_t kPanels>
std::int64_t product_rows(const PanelProduct& call, std::int64_t row, std::int64_t panel,
                          std::int64_t end) {
  for (; panel + kPanels <= end; panel += kPanels) product_tile<kRows, kPanels>(call, row, panel);
  return panel;
}

template <std::int64_t kRows>
void product_rows(const PanelProduct& call, std::int64_t row, std::int64_t begin,
                  std::int64_t end) {
  constexpr std::int64_t kTogether = kStrip == 16 || kRows == 1 ? 4 : kRows == 2 ? 2 : 1;
  begin = product_rows<kRows, kTogether>(call, row, begin, end);
  product_rows<kRows, 1>(call, row, begin, end);
}

// The weights of a few panels stay in the cache while all rows pass them.
void panel_product(const PanelProduct& call) {
  constexpr std::int64_t kPanelsInCache = 4;
  const std::int64_t panels = (call.columns + PanelProduct::kPanel - 1) / PanelProduct::kPanel;
  for (std::int64_t begin = 0; begin < panels; begin += kPanelsInCache) {
    const std::int64_t end = begin + kPanelsInCache < panels ? begin + kPanelsInCache : panels;
    std::int64_t row = 0;
    for (; row + 4 <= call.rows; row += 4) product_rows<4>(call, row, begin, end);
    if (call.rows - row == 3) product_rows<3>(call, row, begin, end);
    if (call.rows - row == 2) product_rows<2>(call, row, begin, end);
    if (call.rows - row == 1) product_rows<1>(call, row, begin, end);
  }
}

// The scores of 16 tokens: a lane for each.
ORRERY_INLINE void block_scores(const PagedAttention& call, const float* query, const float* keys,
                                float* scores) {
  Strip sums[kStripsOfPanel] = {};
  for (std::int64_t d = 0; d < call.head_width; ++d) {
#pragma GCC unroll 4
    for (std::int64_t s = 0; s < kStripsOfPanel; ++s) {
      sums[s] += query[d] * load_strip(keys + d * PagedAttention::kBlock + s * kStrip);
    }
  }
  for (std::int64_t s = 0; s < kStripsOfPanel; ++s) {
    store_strip(scores + s * kStrip, sums[s] * call.scale);
  }
}

// The sum of values by their probabilities, token by token.
ORRERY_INLINE void weighted_values(const PagedAttention& call, std::int64_t values, float* out) {
  constexpr std::int64_t kBlock = PagedAttention::kBlock;
  for (std::int64_t d = 0; d < call.head_width; d += kStrip) {
    const std::int64_t left = call.head_width - d;
    Strip total{};
    for (std::int64_t first = 0; first < call.visible; first += kBlock) {
      const float* value = call.blocks[first / kBlock] + values + d;
      const std::int64_t end = first + kBlock < call.visible ? first + kBlock : call.visible;
      for (std::int64_t t = first; t < end; ++t, value += call.head_width) {
        total += call.scores[t] * load_strip(value, left);
      }
    }
    float room[kStrip];
    store_strip(room, total);
    for (std::int64_t i = 0; i < kStrip && i < left; ++i) out[d + i] = room[i];
  }
}

void paged_attention(const PagedAttention& call) {
  constexpr std::int64_t kBlock = PagedAttention::kBlock;
  const std::int64_t head_floats = call.head_width * kBlock;
  const std::int64_t shared = call.heads / call.kv_heads;
  float peak = 0;
  float inverse_sum = 0;
  for (std::int64_t head = 0; head < call.heads; ++head) {
    const std::int64_t keys = head / shared * head_floats;
    const std::int64_t values = keys + call.kv_heads * head_floats;
    for (std::int64_t token = 0; token < call.visible; token += kBlock) {
      block_scores(call, call.query + head * call.head_width, call.blocks[token / kBlock] + keys,
                   call.scores + token);
    }
    softmax({.scores = call.scores,
             .rows = 1,
             .columns = call.visible,
             .visible = call.visible,
             .peak = &peak,
             .inverse_sum = &inverse_sum});
    weighted_values(call, values, call.out + head * call.head_width);
  }
}

}  // namespace

namespace kernel_tables {

extern const KernelTable ORRERY_KERNELS;
const KernelTable ORRERY_KERNELS{.isa = ORRERY_TEXT(ORRERY_KERNELS),
                                 .layer_norm = norm<Centre::kMean>,
                                 .rms_norm = norm<Centre::kZero>,
                                 .layer_norm_backward = norm_backward<Centre::kMean>,
                                 .rms_norm_backward = norm_backward<Centre::kZero>,
                                 .fill_rows = fill_rows,
                                 .sum_rows = sum_rows,
                                 .gelu = gelu,
                                 .gelu_backward = gelu_backward,
                                 .swiglu = swiglu,
                                 .swiglu_backward = swiglu_backward,
                                 .rotate = rotate,
                                 .softmax = softmax,
                                 .softmax_backward = softmax_backward,
                                 .cross_entropy = cross_entropy,
                                 .adam = adam,
                                 .to_bfloat16 = to_bfloat16,
                                 .squares = squares,
                                 .exponential = exponential};

}  // namespace kernel_tables

namespace decode_kernel_tables {

extern const DecodeKernels ORRERY_KERNELS;
const DecodeKernels ORRERY_KERNELS{.panel_product = panel_product,
                                   .paged_attention = paged_attention};

}  // namespace decode_kernel_tables
}  // namespace orrery
