// runtime/trainer/model_part.hpp - what one rank has of a model whose layers several ranks share:
// tensor parallelism (M. Shoeybi et al., "Megatron-LM", 2019).
//
// Each has some of a layer's heads and some of its inner columns: the weights that make them, and
// those that lead from them back into the stream. What these add to the stream is a partial sum.
// Stream, norms, embeddings and head are everybody's, and the same bits at all. Values; the part of
// a rank that shares with nobody is the whole.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/trainer/transformer_config.hpp"

namespace orrery {

struct ModelPart {
  std::uint32_t tensor_rank = 0;
  std::uint32_t tensor_ranks = 1;

  [[nodiscard]] bool whole() const { return tensor_ranks == 1; }
};

/// Why so many ranks cannot share the model's layers, as an input error at `config.where`: heads,
/// key-value heads or inner columns that do not divide. Precondition: check(config) is fine.
[[nodiscard]] Status check_tensor_ranks(const TransformerConfig& config,
                                        std::uint32_t tensor_ranks);

/// The ranks that share a model's layers, as one of them sees them.
class PartialSums {
 public:
  virtual ~PartialSums() = default;
  /// Room of at least `floats` floats where sum() is fastest. The same memory at each call.
  [[nodiscard]] virtual std::span<float> room(std::size_t floats) = 0;
  /// In place: the sum over all ranks, which all call it, with the same bits at all. Of what cannot
  /// be summed because a rank is lost, nobody will ask for the result.
  virtual void sum(std::span<float> floats) = 0;
};

}  // namespace orrery
