// runtime/trainer/model_part.hpp - what one rank has of a model that several ranks compute
// together, as M. Shoeybi et al., "Megatron-LM", 2019, and D. Narayanan et al., "Efficient
// Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", 2021, cut it.
//
// Along the layers it is cut into stages: each has some of them, the first the embeddings, the last
// norm and head; an embedding that is also the head is on both. With several chunks a stage has
// layers in several places of the model: chunk k of all is on stage k % stages (the same, section
// 2.2), so activations go round, from the last stage to the first. The ranks of a stage share its
// layers: each has some of a layer's heads and some of its inner columns, the weights that make
// them and those that lead from them back into the stream. Of a mixture of experts it has some of
// the experts, or the inner columns of some, and all of the router. What these add to the stream is
// a partial sum. The stream and what the norms make of it is cut along the rows (sequence parallel;
// V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022):
// a rank keeps its own, and before a product gets the others'. Weights of norms, embeddings and
// head are everybody's of a stage, and the same bits at all. Values; the part of a rank that is
// alone is the whole.
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
  std::uint32_t chunks = 1;  ///< of a stage
  /// Groups of the tensor ranks that each have some of a layer's experts whole.
  std::uint32_t expert_ranks = 1;

  [[nodiscard]] bool whole() const { return ranks() == 1; }
  [[nodiscard]] bool first() const { return stage == 0; }
  [[nodiscard]] bool last() const { return stage + 1 == stages; }
  /// Of a chunk of this stage: it is the model's first, or last.
  [[nodiscard]] bool begins_with(std::size_t chunk) const { return first() && chunk == 0; }
  [[nodiscard]] bool ends_with(std::size_t chunk) const { return last() && chunk + 1 == chunks; }
  /// That together have the model, and which of them this one is: those of a stage stand together.
  [[nodiscard]] std::uint32_t ranks() const { return tensor_ranks * stages; }
  [[nodiscard]] std::uint32_t number() const { return stage * tensor_ranks + tensor_rank; }
  /// Another part of the same model.
  [[nodiscard]] ModelPart at(std::uint32_t number) const {
    ModelPart other = *this;
    other.tensor_rank = number % tensor_ranks;
    other.stage = number / tensor_ranks;
    return other;
  }
};

/// Of rows.
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

/// Which of `rows` rows of a micro-batch's stream are those of a tensor rank: equal parts in their
/// order; the last ones may be smaller, or empty.
[[nodiscard]] RowRange own_rows(std::int64_t rows, std::uint32_t rank, std::uint32_t ranks);

/// Why the model cannot be cut so, as an input error at `config.where`: layers that are no equal
/// chunks; heads, key-value heads, inner columns or experts that do not divide. Precondition:
/// check(config) is fine.
[[nodiscard]] Status check_parts(const TransformerConfig& config, const ModelPart& part);

/// The ranks that compute a model together, as one of them sees them. Of what cannot be said
/// because a rank is lost nobody will ask for the result.
class PartPeers {
 public:
  /// From stage to stage: with the layers, against them. With chunks stages are a ring.
  enum class Way { kOn, kBack };

  virtual ~PartPeers() = default;
  /// Room of at least `floats` floats where the exchanges below are fastest. The same memory at
  /// each call.
  [[nodiscard]] virtual std::span<float> room(std::size_t floats) = 0;
  /// In place: the sum over the ranks of this stage, which all call it, with the same bits at all.
  virtual void sum(std::span<float> floats) = 0;
  /// Rows of `width` floats, of which a rank has its own_rows(): all have all of them then.
  virtual void gather_rows(std::span<float> floats, std::int64_t width) = 0;
  /// The other way: of what each has of all rows, a rank has the sum in its own ones then, and
  /// nothing of worth in the others.
  virtual void sum_rows(std::span<float> floats, std::int64_t width) = 0;
  /// To this rank's like in the next stage that way. What is sent may change at once; nobody waits
  /// for the receiver as long as two are on their way at most.
  virtual void send(Way way, std::span<const float> floats) = 0;
  /// What the stage before this one that way has sent.
  virtual void receive(Way way, std::span<float> floats) = 0;
  /// In place: the sum over first and last stage, which alone call it, with the same bits at both.
  virtual void sum_ends(std::span<float> floats) = 0;
};

}  // namespace orrery
