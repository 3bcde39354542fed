// inference/engine/paged_decoder.hpp - the forward pass of tokens of many sequences at once, over
// keys and values that are kept in blocks.
//
// Owned by an InferenceEngine, used by its thread. Owns the memory of the KV cache and the buffers
// of a pass, allocated once; borrows the model. Invariant: the scores of a token depend on the
// tokens of its sequence up to it alone, bit for bit: neither on the other rows of a pass, nor on
// how many passes filled the cache, nor on the kind of vector unit. The scores of
// TrainableTransformer::logits() differ in the last bits, since oneDNN sums in another order.
// Memory of a block: 16 x layers x 2 x key-value width floats.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "inference/engine/kv_block_pool.hpp"
#include "inference/engine/packed_transformer.hpp"
#include "runtime/kernels/aligned_floats.hpp"
#include "runtime/kernels/decode_kernels.hpp"
#include "runtime/kernels/kernels.hpp"

namespace orrery {

/// A token to compute. The rows of a sequence in a pass are consecutive and ascending; all tokens
/// before them are in the blocks.
struct DecoderRow {
  std::int32_t token = 0;
  std::int64_t position = 0;
  std::span<const KvBlockId> blocks;  ///< of the sequence, up to this position at least
  enum class Scores : std::uint8_t { kNone, kWanted } scores = Scores::kNone;
};

class PagedDecoder {
 public:
  struct Limits {
    std::size_t blocks = 0;
    std::int64_t rows = 0;  ///< of a pass
  };
  /// `model` outlives it.
  PagedDecoder(const PackedTransformer& model, const Limits& limits);

  /// Computes the rows, stores their keys and values, and returns the scores of those that want
  /// them, in their order: `vocab` floats each, valid until the next call. Preconditions: at most
  /// limits.rows rows; positions are below config().sequence.
  [[nodiscard]] std::span<const float> compute(std::span<const DecoderRow> rows);

  /// Returns the floats of a block.
  [[nodiscard]] static std::size_t block_floats(const TransformerConfig& config);

 private:
  using Rows = std::span<const DecoderRow>;
  void embed(Rows rows);
  void attend(Rows rows, std::size_t layer);
  void store(const DecoderRow& row, float* qkv, std::size_t layer);
  void norm(const PackedNorm& weights, std::int64_t rows);
  void activate(std::int64_t rows);
  [[nodiscard]] std::span<const float> score(Rows rows);
  [[nodiscard]] float* block_at(KvBlockId block, std::size_t layer);

  const PackedTransformer& model_;
  AlignedFloats cache_;
  AlignedFloats stream_;     ///< rows x width
  AlignedFloats normed_;     ///< rows x width, also the attention's result
  AlignedFloats qkv_;        ///< rows x (width + 2 key-value width)
  AlignedFloats inner_;      ///< rows x up.out
  AlignedFloats activated_;  ///< rows x down.in
  AlignedBytes row_room_;    ///< rounded rows, for a product
  AlignedFloats row_sums_;   ///< two floats a row, which norms write
  AlignedFloats scores_;     ///< of the attention of some heads
  AlignedFloats logits_;
  std::vector<const float*> pointers_;  ///< to the blocks of the current row
};

}  // namespace orrery
