// runtime/training/training_state.hpp - all that a step changes: weights, the optimiser's moments
// and the number of steps done; saved, restored, sent to a peer, and reduced to one hash.
//
// Each rank has the whole of it and the same bits; ranks share the writing of a checkpoint. One
// thread uses it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint_reader.hpp"
#include "runtime/checkpoint/tensor_piece.hpp"
#include "runtime/collectives/communicator.hpp"
#include "runtime/trainer/adamw.hpp"
#include "runtime/trainer/aligned_floats.hpp"
#include "runtime/trainer/parameter_layout.hpp"

namespace orrery {

class TrainingState {
 public:
  /// New weights by the seed. `layout` outlives it.
  TrainingState(const ParameterLayout& layout, std::uint64_t seed);

  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] std::span<const float> parameters() const { return parameters_; }

  /// One step by the mean gradient of `shards` shards, whose sum is given. Returns its length
  /// before clipping. Error: the gradient is not finite; nothing has changed then.
  [[nodiscard]] Result<double> step(const AdamW& optimizer, std::span<const float> gradient_sum,
                                    const OptimizerStep& how, double clip);

  /// The part of rank `rank` of `world`, borrowed. Weights stand under the model's names.
  [[nodiscard]] std::vector<PieceView> pieces(std::uint32_t rank, std::uint32_t world) const;
  /// Errors: a checkpoint of another model; the state is spoilt then.
  [[nodiscard]] Status restore(CheckpointReader& reader);

  [[nodiscard]] Shared<void> send(Communicator& ranks, std::uint32_t to) const;
  [[nodiscard]] Shared<void> receive(Communicator& ranks, std::uint32_t from);

  /// SHA-256 of steps, weights and moments, as hexadecimal digits.
  [[nodiscard]] std::string hash() const;

 private:
  [[nodiscard]] Status read_tensor(CheckpointReader& reader, const TensorRange& range,
                                   std::span<float> out) const;

  const ParameterLayout& layout_;
  AlignedFloats parameters_;
  AlignedFloats first_moment_;
  AlignedFloats second_moment_;
  std::uint64_t steps_ = 0;
};

}  // namespace orrery
