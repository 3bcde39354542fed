// runtime/trainer/model_part.hpp - the part that one rank has of a model that several ranks compute
// together, divided as in M. Shoeybi et al., "Megatron-LM", 2019, and D. Narayanan et al.,
// "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", 2021.
//
// Along the layers the model is cut into stages: each has some layers, the first also the
// embeddings, the last also norm and head; an embedding that is also the head is on both. With
// several chunks a stage has layers in several places of the model: chunk k of all is on stage k %
// stages (Narayanan et al., section 2.2), so activations also go from the last stage to the first.
// The ranks of a stage share its layers: each has some of a layer's heads and some of its inner
// columns, the weights that make them and those that lead from them back into the stream. In a
// mixture of experts a rank has some of the experts, or the inner columns of some, and the whole
// router. What these add to the stream is a partial sum. The stream and the output of the norms are
// cut along the rows (sequence parallel; V. Korthikanti et al., "Reducing Activation Recomputation
// in Large Transformer Models", 2022): a rank keeps its own rows, and receives the others before a
// product. Weights of norms, embeddings and head are on every rank of a stage, with the same bits.
// Plain values; the part of a rank that is alone is the whole model.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/trainer/transformer_config.hpp"

namespace orrery {

struct ModelPart {
  std::uint32_t tensor_rank = 0;
  std::uint32_t tensor_ranks = 1;
  std::uint32_t stage = 0;
  std::uint32_t stages = 1;
  std::uint32_t chunks = 1;  ///< layer chunks of a stage
  /// Number of groups of the tensor ranks; each group has some of a layer's experts whole.
  std::uint32_t expert_ranks = 1;

  [[nodiscard]] bool whole() const { return ranks() == 1; }
  [[nodiscard]] bool first() const { return stage == 0; }
  [[nodiscard]] bool last() const { return stage + 1 == stages; }
  /// Whether a chunk of this stage is the model's first, or last.
  [[nodiscard]] bool begins_with(std::size_t chunk) const { return first() && chunk == 0; }
  [[nodiscard]] bool ends_with(std::size_t chunk) const { return last() && chunk + 1 == chunks; }
  /// Number of ranks that together have the model, and the place of this one; ranks of a stage are
  /// consecutive.
  [[nodiscard]] std::uint32_t ranks() const { return tensor_ranks * stages; }
  [[nodiscard]] std::uint32_t number() const { return stage * tensor_ranks + tensor_rank; }
  /// Returns another part of the same model.
  [[nodiscard]] ModelPart at(std::uint32_t number) const {
    ModelPart other = *this;
    other.tensor_rank = number % tensor_ranks;
    other.stage = number / tensor_ranks;
    return other;
  }
};

/// Rows [begin, end).
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

/// Returns which of the `rows` rows of a micro-batch's stream a tensor rank keeps: equal parts in
/// order; the last ones may be smaller, or empty.
[[nodiscard]] RowRange own_rows(std::int64_t rows, std::uint32_t rank, std::uint32_t ranks);

/// Checks that the model can be cut in this way. Input errors at `config.where`: layers that do not
/// make equal chunks; heads, key-value heads, inner columns or experts that do not divide.
/// Precondition: check(config) is fine.
[[nodiscard]] Status check_parts(const TransformerConfig& config, const ModelPart& part);

/// The ranks that compute a model together, as one of them sees them. If a rank is lost, the
/// results are undefined and must not be used.
class PartPeers {
 public:
  /// The direction from stage to stage: with the layers, or against them. With several chunks the
  /// stages are a ring.
  enum class Way { kOn, kBack };

  virtual ~PartPeers() = default;
  /// Returns memory of at least `floats` floats in which the exchanges below are fastest; the same
  /// memory at each call.
  [[nodiscard]] virtual std::span<float> room(std::size_t floats) = 0;
  /// Sums in place over the ranks of this stage, which all call it; all get the same bits.
  virtual void sum(std::span<float> floats) = 0;
  /// Gathers rows of `width` floats, of which each rank has its own_rows(): afterwards all ranks
  /// have all rows.
  virtual void gather_rows(std::span<float> floats, std::int64_t width) = 0;
  /// The inverse of gather_rows(): sums what each rank has of all rows; afterwards a rank has the
  /// sum in its own rows, and undefined values in the others.
  virtual void sum_rows(std::span<float> floats, std::int64_t width) = 0;
  /// Sends to the rank with the same tensor rank in the next stage in that direction. `floats` may
  /// change at once; the call does not wait for the receiver while at most two messages are on
  /// their way.
  virtual void send(Way way, std::span<const float> floats) = 0;
  /// Receives what the previous stage in that direction has sent.
  virtual void receive(Way way, std::span<float> floats) = 0;
  /// Sums in place over the first and the last stage, which alone call it; both get the same bits.
  virtual void sum_ends(std::span<float> floats) = 0;
};

}  // namespace orrery
