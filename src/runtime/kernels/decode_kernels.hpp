// runtime/kernels/decode_kernels.hpp - what generating text needs besides the trainer's kernels
// (runtime/kernels/kernels.hpp): products and attention whose rows do not depend on each other.
//
// Built and chosen like those, and with the same promise: every kind of vector unit computes the
// same bits. Pure functions, safe from every thread. Pointers need no alignment.
#pragma once

#include <cstdint>

namespace orrery {

/// How the weights of a product are stored. But for kF32, the rows are rounded in the same way.
enum class WeightFormat : std::uint8_t {
  kF32,
  kBf16,  ///< the upper halves of floats, half the memory; less than 2^-50 counts as 0
  /// Integers of 8 bits, each 32 of a column with a scale of their own, as Q8_0 of GGUF has them. A
  /// quarter of the memory.
  kInt8,
};

/// 32 rows of a panel as upper halves of floats.
struct PanelHalves {
  static constexpr float kLeast = 0x1p-50F;  ///< so that no sum of products is a denormal number

  std::uint16_t weights[16][16][2];  ///< two rows of each column together
};

/// 32 rows of a panel as integers.
struct PanelGroup {
  float scales[16];                ///< of each column
  std::uint8_t weights[8][16][4];  ///< four rows of each column together; 128 more than they are
};

/// out = x w + bias + residual; bias and residual may be absent. Each sum runs over `inner` in one
/// order, so a row's result depends on neither the number of rows nor its place among them: in f32
/// term by term, in bf16 by 32 rows of the weights, of which even and odd ones have sums of their
/// own, with integers by the exact sums of 32 rows.
struct PanelProduct {
  static constexpr std::int64_t kPanel = 16;  ///< columns of a panel
  static constexpr std::int64_t kGroup = 32;  ///< rows of the weights that are rounded together

  const float* x = nullptr;  ///< rows x inner
  /// The weights in panels: for each 16 columns, `inner` rows of 16 floats, or for each 32 rows a
  /// PanelHalves or a PanelGroup. Columns and rows beyond the last are 0.
  const void* panels = nullptr;
  WeightFormat format = WeightFormat::kF32;
  /// row_room_of() bytes for the rounded rows, at a multiple of 64; kF32 needs none.
  void* row_room = nullptr;
  const float* bias = nullptr;      ///< columns
  const float* residual = nullptr;  ///< rows x columns; may be `out`
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t inner = 0;
  float* out = nullptr;  ///< rows x columns

  [[nodiscard]] static constexpr std::int64_t groups(std::int64_t inner) {
    return (inner + kGroup - 1) / kGroup;
  }
  /// Four bytes a number; rows are computed by 16, and numbers by 32.
  [[nodiscard]] static constexpr std::int64_t row_room_of(std::int64_t rows, std::int64_t inner) {
    return (rows + 15) / 16 * 16 * groups(inner) * kGroup * 4;
  }
};

/// The attention of one token over keys and values that are stored in blocks of 16 tokens. A block
/// has for each key-value head `head_width` rows of 16 keys, a column for each token; then for each
/// head 16 rows of `head_width` values.
struct PagedAttention {
  static constexpr std::int64_t kBlock = 16;    ///< tokens of a block
  static constexpr std::int64_t kHeadsMax = 4;  ///< heads of the same keys, computed together

  const float* query = nullptr;          ///< heads x head_width
  const float* const* blocks = nullptr;  ///< blocks of the tokens in their order
  std::int64_t visible = 0;              ///< tokens that it sees
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_width = 0;
  float scale = 1;  ///< factor of the scores
  /// Room for kHeadsMax times `visible` floats, rounded up to whole blocks.
  float* scores = nullptr;
  float* out = nullptr;  ///< heads x head_width
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

/// Returns those beside kernels_of(isa), or of "avx512vnni" and "avx512amx", which have products of
/// integers of 8 bits in vectors and in tiles; nullptr: this CPU, or its kernel, lacks it. For
/// tiles the first call asks the operating system.
[[nodiscard]] const DecodeKernels* decode_kernels_of(const char* isa);

}  // namespace orrery
