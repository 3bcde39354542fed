#include "runtime/trainer/activations.hpp"

#include <algorithm>

#include "runtime/trainer/moe.hpp"

namespace orrery {
namespace {

constexpr std::int64_t kLogitsMax = 1 << 18;
constexpr std::int64_t kLogitRowsMin = 64;

/// Allocates the arena's floats in cache lines; without an arena it only counts them.
class ArenaCursor {
 public:
  explicit ArenaCursor(float* arena) : arena_(arena) {}
  float* take(std::int64_t count) {
    float* taken = arena_ == nullptr ? nullptr : arena_ + used_;
    used_ += (count + 15) / 16 * 16;
    return taken;
  }
  [[nodiscard]] std::int64_t used() const { return used_; }

 private:
  float* arena_;
  std::int64_t used_ = 0;
};

/// Floats of the pieces of a layer.
struct PieceSizes {
  PieceSizes(const ParameterLayout& layout, std::int64_t sequences)
      : rows(sequences * layout.config().sequence),
        own(own_rows(rows, 0, layout.part().tensor_ranks).size()),
        stream(own * layout.config().width),
        qkv(rows * layout.blocks()[0].qkv.out),
        attended(rows * layout.blocks()[0].attention_out.in),
        scales(rows * layout.config().heads / layout.part().tensor_ranks),
        scored(rows * layout.config().experts),
        inner(layout.blocks()[0].up.out),
        activation(layout.blocks()[0].down.in),
        ffn_rows(rows),
        kept_ffn_rows(rows) {
    if (layout.config().experts == 0) return;
    ffn_rows = rows_of_expert(layout.config(), rows);
    kept_ffn_rows = rows_of_experts(layout, rows);
  }

  [[nodiscard]] NormRows take_norm(ArenaCursor& cursor, const float* x) const {
    return {.x = x,
            .mean = cursor.take(own),
            .inverse_deviation = cursor.take(own),
            .out = cursor.take(stream)};
  }
  void take_block(ArenaCursor& cursor, BlockRows& block) const {
    block.attention_norm = take_norm(cursor, block.stream_in);
    block.attention = {.qkv = cursor.take(qkv),
                       .out = cursor.take(attended),
                       .peak = cursor.take(scales),
                       .inverse_sum = cursor.take(scales)};
    block.stream_middle = cursor.take(stream);
    block.ffn_norm = take_norm(cursor, block.stream_middle);
    block.inner = cursor.take(kept_ffn_rows * inner);
    block.activation = cursor.take(kept_ffn_rows * activation);
  }

  std::int64_t rows;
  std::int64_t own;  ///< the most rows a rank keeps as its own
  std::int64_t stream;
  std::int64_t qkv;
  std::int64_t attended;
  std::int64_t scales;
  std::int64_t scored;
  std::int64_t inner;  ///< per row, as is the next
  std::int64_t activation;
  std::int64_t ffn_rows;       ///< in a feed-forward part, or one expert, at once
  std::int64_t kept_ffn_rows;  ///< rows of all experts
};

}  // namespace

std::int64_t logit_rows(const TransformerConfig& config) {
  return std::max(kLogitRowsMin, kLogitsMax / config.vocab);
}

std::size_t lay_activations(const ParameterLayout& layout, std::int64_t sequences,
                            ActivationRows& rows, float* arena) {
  const TransformerConfig& config = layout.config();
  const PieceSizes sizes(layout, sequences);
  ArenaCursor cursor(arena);
  for (std::vector<BlockRows>& blocks : rows.slots) {
    blocks.resize(layout.blocks().size() / layout.part().chunks);
    for (BlockRows& block : blocks) {
      block.stream_in = cursor.take(sizes.stream);
      block.router_scores = cursor.take(sizes.scored);
    }
  }
  const ArenaCursor shared = cursor;
  for (std::vector<BlockRows>& blocks : rows.slots) {
    for (BlockRows& block : blocks) {
      if (config.recompute == ActivationRecompute::kFull) cursor = shared;
      sizes.take_block(cursor, block);
    }
  }
  rows.stream_out = cursor.take(sizes.stream);
  if (layout.part().last()) {
    rows.final_norm = sizes.take_norm(cursor, rows.stream_out);
    rows.logits = cursor.take(std::min(sizes.rows, logit_rows(config)) * config.vocab);
  }
  rows.stream_gradient = cursor.take(sizes.stream);
  if (layout.part().tensor_ranks == 1) rows.norm_gradient = cursor.take(sizes.stream);
  rows.qkv_gradient = cursor.take(sizes.qkv);
  rows.inner_gradient = cursor.take(sizes.ffn_rows * sizes.inner);
  rows.activation_gradient = cursor.take(sizes.ffn_rows * sizes.activation);
  if (config.experts > 0) rows.expert_rows = cursor.take(sizes.ffn_rows * config.width);
  return static_cast<std::size_t>(cursor.used());
}

}  // namespace orrery
