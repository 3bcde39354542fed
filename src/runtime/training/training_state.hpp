// runtime/training/training_state.hpp - all that a step changes: weights, the optimiser's moments
// and the number of steps done; saved, restored, sent to a peer, and reduced to one hash.
//
// A rank has the whole of it, or its share: the weights of its part of the model, and the moments
// of its part or of the range that it holds of that. All ranks of a column have the same bits of
// the same part. Ranks divide the writing of a checkpoint, whose content does not depend on how
// they divided the state. Used by one thread.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint_reader.hpp"
#include "runtime/kernels/aligned_floats.hpp"
#include "runtime/shards/safetensors.hpp"
#include "runtime/shards/tensor_piece.hpp"
#include "runtime/trainer/adamw.hpp"
#include "runtime/training/whole_model.hpp"

namespace orrery {

/// The share of the state on this rank.
struct StateShare {
  ModelPart part;
  std::uint32_t replica = 0;
  std::uint32_t replicas = 1;
  enum class Moments { kOfPart, kOfHeldRange } moments = Moments::kOfPart;

  [[nodiscard]] bool whole() const { return part.whole() && moments == Moments::kOfPart; }
};

/// What a rank saves.
struct SavedPart {
  std::vector<PieceView> pieces;  ///< point into the state, or into `assembled`
  std::array<AlignedFloats, 3> assembled;
};

/// Length of the mean gradient, and its limit; 0: no limit.
struct GradientClip {
  double length = 0;
  double limit = 0;
};

class TrainingState {
 public:
  /// Number of vectors: weights, first and second moments.
  static constexpr std::size_t kVectors = 3;

  /// Starts with new weights from the seed.
  TrainingState(const TransformerConfig& config, std::uint64_t seed, const StateShare& share = {});

  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] std::span<const float> parameters() const { return parameters_; }
  /// The range of its part's vector that step() changes: the one whose moments are on this rank.
  [[nodiscard]] const FloatRange& stepped() const { return stepped_; }

  /// Does one step by the mean gradient; `gradient_sum` is the sum over the shards, for the range
  /// stepped(). Error: the gradient is not finite; nothing has changed then.
  [[nodiscard]] Status step(const AdamW& optimizer, std::span<const float> gradient_sum,
                            const OptimizerStep& how, const GradientClip& clip);
  /// To be called after step() where replicas divide the moments: gathers all weights of the part
  /// from the ranks that stepped them. Overwrites `room`, which has all of the part's floats.
  [[nodiscard]] Shared<void> gather_weights(Communicator& column, std::span<float> room);

  /// Returns what this rank saves of the whole; must not outlive the state. Weights have the
  /// model's names. If ranks have shares, all of them call it.
  [[nodiscard]] Shared<SavedPart> saved_part(Communicator& all) const;
  /// Reads this rank's share from a checkpoint. Errors: a checkpoint of another model; the state is
  /// undefined then.
  [[nodiscard]] Status restore(CheckpointReader& reader);
  /// Reads the weights of this rank's part, all of them float32, from a file. Moments and steps
  /// stay as they are. Errors: those of the file, or a file of another model; the weights are
  /// undefined then.
  [[nodiscard]] Status restore_weights(SafetensorsFile& file);

  /// Floats of each of the three vectors of the whole model.
  [[nodiscard]] std::size_t whole_floats() const { return model_.whole().size(); }
  /// Returns even_range() of this rank among `all` of each vector; all ranks call it.
  [[nodiscard]] Shared<std::array<AlignedFloats, kVectors>> ranges(Communicator& all) const;
  /// Takes over this rank's share of `floats`, which are one of the vectors from `begin` on, as
  /// ranges() returned it; between the first and the last such call the state is of no step.
  void take(std::size_t vector, std::size_t begin, std::span<const float> floats);
  void take_steps(std::uint64_t steps) { steps_ = steps; }

  /// Precondition: both have the whole.
  [[nodiscard]] Shared<void> send(Communicator& ranks, std::uint32_t to) const;
  [[nodiscard]] Shared<void> receive(Communicator& ranks, std::uint32_t from);

  /// Returns the SHA-256 of steps, weights and moments, as hexadecimal digits. If ranks have
  /// shares, all of them call it and only the first gets the hash of the whole.
  [[nodiscard]] Shared<std::string> hash(Communicator& all) const;

 private:
  /// Assembles this rank's even_range() of one of the whole model's vectors.
  [[nodiscard]] Shared<AlignedFloats> assembled(Communicator& all, std::size_t vector) const;
  [[nodiscard]] const AlignedFloats& vector(std::size_t which) const;
  /// `Source` is CheckpointReader or SafetensorsFile.
  template <class Source>
  [[nodiscard]] Status read_weights(Source& source);

  WholeModel model_;
  StateShare share_;
  FloatRange held_;     ///< what this replica contributes
  FloatRange stepped_;  ///< held_, or the whole part
  AlignedFloats parameters_;
  AlignedFloats first_moment_;
  AlignedFloats second_moment_;
  std::uint64_t steps_ = 0;
};

}  // namespace orrery
