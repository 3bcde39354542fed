// inference/engine/packed_linear.hpp - the weights of one matrix product in the order in which the
// kernel reads them.
//
// Made once from trained parameters, which it copies; immutable, safe to use from every thread.
// Invariant: a row of a result depends on that row of the input alone, bit for bit, however many
// rows are computed together and whichever vector unit computes them. Memory: 4 bytes a weight, 2
// in bf16, 1.125 in int8; columns rounded up to 16, rows in bf16 and int8 to 32.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/kernels/aligned_floats.hpp"
#include "runtime/kernels/decode_kernels.hpp"
#include "runtime/trainer/parameter_layout.hpp"

namespace orrery {

class PackedLinear {
 public:
  PackedLinear() = default;
  /// Precondition: `parameters` are those of the layout of `linear`.
  PackedLinear(std::span<const float> parameters, const LinearParameters& linear,
               WeightFormat format = WeightFormat::kF32);

  struct Rows {
    const float* x = nullptr;         ///< rows x in
    void* room = nullptr;             ///< PanelProduct::row_room_of() bytes; f32 needs none
    const float* residual = nullptr;  ///< rows x out, added to the result; may be `out`
    float* out = nullptr;             ///< rows x out
    std::int64_t rows = 0;
  };
  /// Cost: 2 x rows x in x out operations.
  void multiply(const DecodeKernels& kernels, const Rows& rows) const;

  [[nodiscard]] std::int64_t in() const { return in_; }
  [[nodiscard]] std::int64_t out() const { return out_; }
  [[nodiscard]] WeightFormat format() const { return format_; }

 private:
  std::int64_t in_ = 0;
  std::int64_t out_ = 0;
  WeightFormat format_ = WeightFormat::kF32;
  AlignedBytes panels_;
  AlignedFloats bias_;  ///< empty: there is none
};

}  // namespace orrery
