#include "inference/engine/packed_linear.hpp"

#include <cstddef>

namespace orrery {

PackedLinear::PackedLinear(std::span<const float> parameters, const LinearParameters& linear)
    : in_(linear.in), out_(linear.out) {
  constexpr std::int64_t kPanel = PanelProduct::kPanel;
  const std::int64_t panels = (out_ + kPanel - 1) / kPanel;
  panels_.resize(static_cast<std::size_t>(panels * in_ * kPanel));
  const float* weight = parameters.data() + linear.weight;
  const bool by_input = linear.storage == LinearParameters::Storage::kInOut;
  for (std::int64_t column = 0; column < out_; ++column) {
    float* to = panels_.data() + column / kPanel * in_ * kPanel + column % kPanel;
    for (std::int64_t k = 0; k < in_; ++k) {
      to[k * kPanel] = by_input ? weight[k * out_ + column] : weight[column * in_ + k];
    }
  }
  if (!linear.bias) return;
  const float* bias = parameters.data() + *linear.bias;
  bias_.assign(bias, bias + out_);
}

void PackedLinear::multiply(const DecodeKernels& kernels, const Rows& rows) const {
  kernels.panel_product({.x = rows.x,
                         .panels = panels_.data(),
                         .bias = bias_.empty() ? nullptr : bias_.data(),
                         .residual = rows.residual,
                         .rows = rows.rows,
                         .columns = out_,
                         .inner = in_,
                         .out = rows.out});
}

}  // namespace orrery
