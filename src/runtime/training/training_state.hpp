// runtime/training/training_state.hpp - all that a step changes: weights, the optimiser's moments
// and the number of steps done; saved, restored, sent to a peer, and reduced to one hash.
//
// A rank has the whole of it, or its share: the weights of its part of the model, and of the
// moments those of its part, or of what it holds of that. All of a column have the same bits of the
// same part. Ranks share the writing of a checkpoint, which does not tell how they shared the
// state. One thread uses it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint_reader.hpp"
#include "runtime/checkpoint/tensor_piece.hpp"
#include "runtime/trainer/adamw.hpp"
#include "runtime/trainer/aligned_floats.hpp"
#include "runtime/training/whole_model.hpp"

namespace orrery {

/// Of the state, what is here.
struct StateShare {
  ModelPart part;
  std::uint32_t replica = 0;
  std::uint32_t replicas = 1;
  enum class Moments { kOfPart, kOfHeldRange } moments = Moments::kOfPart;

  [[nodiscard]] bool whole() const { return part.whole() && moments == Moments::kOfPart; }
};

/// What a rank saves.
struct SavedPart {
  std::vector<PieceView> pieces;  ///< of the state, or of what was put together for it
  std::array<AlignedFloats, 3> assembled;
};

/// How long the mean gradient is, and how long it may be; 0: any length.
struct GradientClip {
  double length = 0;
  double limit = 0;
};

class TrainingState {
 public:
  /// Weights, first and second moments.
  static constexpr std::size_t kVectors = 3;

  /// New weights by the seed.
  TrainingState(const TransformerConfig& config, std::uint64_t seed, const StateShare& share = {});

  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] std::span<const float> parameters() const { return parameters_; }
  /// Of its part's vector, what step() changes: that whose moments are here.
  [[nodiscard]] const FloatRange& stepped() const { return stepped_; }

  /// One step by the mean gradient of `shards` shards, whose sum over stepped() is given. Error:
  /// the gradient is not finite; nothing has changed then.
  [[nodiscard]] Status step(const AdamW& optimizer, std::span<const float> gradient_sum,
                            const OptimizerStep& how, const GradientClip& clip);
  /// After step(), where replicas share the moments out: all weights of the part from those who
  /// stepped them. `room` for all of the part's floats is written.
  [[nodiscard]] Shared<void> gather_weights(Communicator& column, std::span<float> room);

  /// What this rank saves of the whole; goes before the state does. Weights stand under the model's
  /// names. Where ranks have shares, all of them call it.
  [[nodiscard]] Shared<SavedPart> saved_part(Communicator& all) const;
  /// This rank's share of it. Errors: a checkpoint of another model; the state is spoilt then.
  [[nodiscard]] Status restore(CheckpointReader& reader);

  /// Floats of each of the three, of the whole model.
  [[nodiscard]] std::size_t whole_floats() const { return model_.whole().size(); }
  /// Of each, even_range() of this rank among `all`, which all call it.
  [[nodiscard]] Shared<std::array<AlignedFloats, kVectors>> ranges(Communicator& all) const;
  /// Takes over what this rank has of floats from `begin` on of one of them, as ranges() gave it;
  /// what lies between two calls is of no step.
  void take(std::size_t vector, std::size_t begin, std::span<const float> floats);
  void take_steps(std::uint64_t steps) { steps_ = steps; }

  /// Precondition: both have the whole.
  [[nodiscard]] Shared<void> send(Communicator& ranks, std::uint32_t to) const;
  [[nodiscard]] Shared<void> receive(Communicator& ranks, std::uint32_t from);

  /// SHA-256 of steps, weights and moments, as hexadecimal digits. Where ranks have shares, all of
  /// them call it and the first has it.
  [[nodiscard]] Shared<std::string> hash(Communicator& all) const;

 private:
  /// Of the whole model's weights or moments.
  [[nodiscard]] Shared<AlignedFloats> assembled(Communicator& all, std::size_t vector) const;
  [[nodiscard]] const AlignedFloats& vector(std::size_t which) const;
  [[nodiscard]] Status restore_weights(CheckpointReader& reader);

  WholeModel model_;
  StateShare share_;
  FloatRange held_;     ///< what no other replica gives
  FloatRange stepped_;  ///< held_, or all of the part
  AlignedFloats parameters_;
  AlignedFloats first_moment_;
  AlignedFloats second_moment_;
  std::uint64_t steps_ = 0;
};

}  // namespace orrery
