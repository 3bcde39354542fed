// runtime/kernels/decode_kernels.hpp - what generating text needs besides the trainer's kernels
// (runtime/kernels/kernels.hpp): products and attention whose rows do not depend on each other.
//
// Built and chosen like those, and with the same promise: every kind of vector unit computes the
// same bits. Pure functions, safe from every thread. Pointers need no alignment.
#pragma once

#include <cstdint>

namespace orrery {

/// out = x w + bias + residual; bias and residual may be absent. Each sum runs over `inner` in
/// ascending order, so a row's result depends on neither the number of rows nor its place among
/// them.
struct PanelProduct {
  static constexpr std::int64_t kPanel = 16;  ///< columns of a panel

  const float* x = nullptr;  ///< rows x inner
  /// The weights in panels: for each 16 columns, `inner` rows of 16 floats. Columns beyond the last
  /// are 0.
  const float* panels = nullptr;
  const float* bias = nullptr;      ///< columns
  const float* residual = nullptr;  ///< rows x columns; may be `out`
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t inner = 0;
  float* out = nullptr;  ///< rows x columns
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

/// Returns those beside kernels_of(isa), or nullptr.
[[nodiscard]] const DecodeKernels* decode_kernels_of(const char* isa);

}  // namespace orrery
