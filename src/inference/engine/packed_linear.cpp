#include "inference/engine/packed_linear.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

namespace orrery {
namespace {

/// The weights of a column one after another, 0 beyond its end.
class ColumnReader {
 public:
  ColumnReader(std::span<const float> parameters, const LinearParameters& linear)
      : weight_(parameters.data() + linear.weight),
        rows_(linear.in),
        by_input_(linear.storage == LinearParameters::Storage::kInOut),
        columns_(linear.out) {}

  [[nodiscard]] float at(std::int64_t row, std::int64_t column) const {
    if (row >= rows_) return 0;
    return by_input_ ? weight_[row * columns_ + column] : weight_[column * rows_ + row];
  }

 private:
  const float* weight_;
  std::int64_t rows_;
  bool by_input_;
  std::int64_t columns_;
};

/// The upper half of a float, rounded to the nearest, of two that are as near to the even one.
std::uint16_t upper_half(float value) {
  if (std::abs(value) < PanelHalves::kLeast) return 0;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Writes the column of a group that begins at a row.
void round_group(const ColumnReader& weights, std::int64_t row, std::int64_t column,
                 PanelGroup& to) {
  constexpr std::int64_t kRows = PanelProduct::kGroup;
  std::array<float, kRows> values{};
  float most = 0;
  for (std::int64_t i = 0; i < kRows; ++i) {
    values[static_cast<std::size_t>(i)] = weights.at(row + i, column);
    most = std::max(most, std::abs(values[static_cast<std::size_t>(i)]));
  }
  const float scale = most / 127;
  const std::int64_t place = column % PanelProduct::kPanel;
  to.scales[place] = scale;
  for (std::int64_t i = 0; i < kRows; ++i) {
    const float whole = scale > 0 ? std::nearbyint(values[static_cast<std::size_t>(i)] / scale) : 0;
    to.weights[i / 4][place][i % 4] =
        static_cast<std::uint8_t>(128 + std::clamp(whole, -127.0F, 127.0F));
  }
}

/// Bytes of the panels of a matrix.
std::size_t bytes_of(const LinearParameters& linear, WeightFormat format) {
  constexpr std::int64_t kPanel = PanelProduct::kPanel;
  const auto panels = static_cast<std::size_t>((linear.out + kPanel - 1) / kPanel);
  const auto groups = panels * static_cast<std::size_t>(PanelProduct::groups(linear.in));
  switch (format) {
    case WeightFormat::kF32:
      break;
    case WeightFormat::kBf16:
      return groups * sizeof(PanelHalves);
    case WeightFormat::kInt8:
      return groups * sizeof(PanelGroup);
  }
  return panels * static_cast<std::size_t>(linear.in) * kPanel * sizeof(float);
}

}  // namespace

PackedLinear::PackedLinear(std::span<const float> parameters, const LinearParameters& linear,
                           WeightFormat format)
    : in_(linear.in), out_(linear.out), format_(format), panels_(bytes_of(linear, format)) {
  constexpr std::int64_t kPanel = PanelProduct::kPanel;
  const ColumnReader weights(parameters, linear);
  const std::int64_t groups = PanelProduct::groups(in_);
  for (std::int64_t column = 0; column < out_; ++column) {
    const std::int64_t first = column / kPanel * in_ * kPanel + column % kPanel;
    if (format == WeightFormat::kInt8) {
      auto* to = reinterpret_cast<PanelGroup*>(panels_.data()) + column / kPanel * groups;
      for (std::int64_t i = 0; i < groups; ++i) {
        round_group(weights, i * PanelProduct::kGroup, column, to[i]);
      }
    } else if (format == WeightFormat::kBf16) {
      auto* to = reinterpret_cast<PanelHalves*>(panels_.data()) + column / kPanel * groups;
      for (std::int64_t k = 0; k < in_; ++k) {
        const std::int64_t pair = k % PanelProduct::kGroup / 2;
        to[k / PanelProduct::kGroup].weights[pair][column % kPanel][k % 2] =
            upper_half(weights.at(k, column));
      }
    } else {
      auto* to = reinterpret_cast<float*>(panels_.data()) + first;
      for (std::int64_t k = 0; k < in_; ++k) to[k * kPanel] = weights.at(k, column);
    }
  }
  if (!linear.bias) return;
  const float* bias = parameters.data() + *linear.bias;
  bias_.assign(bias, bias + out_);
}

void PackedLinear::multiply(const DecodeKernels& kernels, const Rows& rows) const {
  kernels.panel_product({.x = rows.x,
                         .panels = panels_.data(),
                         .format = format_,
                         .row_room = rows.room,
                         .bias = bias_.empty() ? nullptr : bias_.data(),
                         .residual = rows.residual,
                         .rows = rows.rows,
                         .columns = out_,
                         .inner = in_,
                         .out = rows.out});
}

}  // namespace orrery
