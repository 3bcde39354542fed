// runtime/kernels/vector_kernels.cpp - the kernels, built once for each kind of vector unit under
// the name ORRERY_KERNELS. Nothing here may call an inline function of another header: the linker
// would keep one copy of it for the whole program, perhaps the one that an older CPU does not run.
#include "base/numbers/math.hpp"
#include "runtime/kernels/kernels.hpp"
#include "runtime/kernels/vector_lanes.hpp"

namespace orrery {
namespace {

using UnsignedWords = std::uint32_t __attribute__((vector_size(64)));
using HalfWords = std::uint16_t __attribute__((vector_size(32)));
using WideLanes = double __attribute__((vector_size(128)));

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
}  // namespace orrery
