// runtime/kernels/decode_kernels.hpp - what generating text needs besides the trainer's kernels
// (runtime/kernels/kernels.hpp): products and attention whose rows do not depend on each other.
//
// Built and chosen like those, and with the same promise: every kind of vector unit computes the
// same bits. Pure functions, safe from every thread. Pointers need no alignment.
#pragma once

#include <cstdint>

namespace orrery {

/// How the weights of a product are stored.
enum class WeightFormat : std::uint8_t {
  kF32,
  kBf16,  ///< half the memory; the same products and sums
  /// Integers of 8 bits, each 32 of a column with a scale of their own, as Q8_0 of GGUF has them;
  /// the rows are rounded in the same way. A quarter of the memory.
  kInt8,
};

/// 32 rows of a panel as integers.
struct PanelGroup {
  static constexpr std::int64_t kRows = 32;

  float scales[16];                ///< of each column
  std::uint8_t weights[8][16][4];  ///< four rows of each column together; 128 more than they are
};

/// 32 floats of a row as integers.
struct RowGroup {
  std::int8_t values[PanelGroup::kRows];
  float scale;
  std::int32_t offset;  ///< -128 times their sum, for the weights are 128 too large
};

/// out = x w + bias + residual; bias and residual may be absent. Each sum runs over `inner` in
/// ascending order, so a row's result depends on neither the number of rows nor its place among
/// them. With integers the terms of the sum are those of 32 rows of the weights, which are exact.
struct PanelProduct {
  static constexpr std::int64_t kPanel = 16;  ///< columns of a panel

  const float* x = nullptr;  ///< rows x inner
  /// The weights in panels: for each 16 columns, `inner` rows of 16 floats, of 16 upper halves of
  /// floats, or a PanelGroup for each 32 rows. Columns and rows beyond the last are 0.
  const void* panels = nullptr;
  WeightFormat format = WeightFormat::kF32;
  /// Room for the rows as integers: rows x groups(inner); kInt8 alone needs it.
  RowGroup* row_groups = nullptr;
  const float* bias = nullptr;      ///< columns
  const float* residual = nullptr;  ///< rows x columns; may be `out`
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t inner = 0;
  float* out = nullptr;  ///< rows x columns

  [[nodiscard]] static constexpr std::int64_t groups(std::int64_t inner) {
    return (inner + PanelGroup::kRows - 1) / PanelGroup::kRows;
  }
};

/// The attention of one token over keys and values that are stored in blocks of 16 tokens. A block
/// has for each key-value head `head_width` rows of 16 keys, a column for each token; then for each
/// head 16 rows of `head_width` values.
struct PagedAttention {
  static constexpr std::int64_t kBlock = 16;  ///< tokens of a block

  const float* query = nullptr;          ///< heads x head_width
  const float* const* blocks = nullptr;  ///< blocks of the tokens in their order
  std::int64_t visible = 0;              ///< tokens that it sees
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_width = 0;
  float scale = 1;          ///< factor of the scores
  float* scores = nullptr;  ///< room for `visible` floats, rounded up to whole blocks
  float* out = nullptr;     ///< heads x head_width
};

/// The kernels of one kind of vector unit.
struct DecodeKernels {
  void (*panel_product)(const PanelProduct&) = nullptr;
  void (*paged_attention)(const PagedAttention&) = nullptr;
  /// The greatest of `count` floats, at least one, none of them a NaN.
  float (*peak)(const float* x, std::int64_t count) = nullptr;
};

/// Returns the fastest that this CPU can run.
[[nodiscard]] const DecodeKernels& decode_kernels();

/// Returns those beside kernels_of(isa), or of "avx512vnni", which has products of integers of 8
/// bits; nullptr: this CPU lacks it.
[[nodiscard]] const DecodeKernels* decode_kernels_of(const char* isa);

}  // namespace orrery
