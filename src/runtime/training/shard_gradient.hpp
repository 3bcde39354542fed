// runtime/training/shard_gradient.hpp - the gradient of the batch's shards that a rank owns, summed
// in the order of the fixed tree.
//
// Made with a rank's part of the model, whose other parts are computed by other ranks at the same
// time. A shard's micro-batches flow through the stages as their schedule says
// (pipeline_schedule.hpp); between shards the stages run empty, as the tree needs each shard's own
// gradient. Owns the activations and a buffer for each level of the
// tree it has had to sum. Invariant: a shard's gradient depends on the weights, the step, its
// number and how the model is cut alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/collectives/reduction_tree.hpp"
#include "runtime/trainer/text_stream.hpp"
#include "runtime/trainer/transformer.hpp"
#include "runtime/training/pipeline_schedule.hpp"
#include "runtime/training/training_spec.hpp"

namespace orrery {

/// The same for the same bits.
[[nodiscard]] std::uint64_t checksum_of_floats(std::span<const float> floats);

class ShardGradient {
 public:
  /// `stream` outlives it.
  ShardGradient(const TrainingSpec& spec, const TextStream& stream, const ModelPart& part = {});

  [[nodiscard]] const ParameterLayout& layout() const { return model_.layout(); }
  [[nodiscard]] TrainableTransformer& model() { return model_; }

  /// Of the shards of `node` in step `step` (counted from 0): the sum of their gradients into the
  /// first layout().size() floats of `out`, the sum of their losses into the one after, and of
  /// their TrainableTransformer::router_loss() into one more where there are experts. What is
  /// summed over all shards is divided by their number to be the mean.
  void compute(std::span<const float> parameters, std::uint64_t step, const LeafRange& node,
               std::span<float> out);

  /// Floats that compute() writes behind the gradient.
  [[nodiscard]] std::size_t losses() const { return layout().config().experts > 0 ? 2 : 1; }

  /// Keeps the checksum of this shard's gradient when compute() comes by it; nothing: of none.
  void watch(std::optional<std::uint32_t> shard);
  /// Of the watched shard; 0: it was not computed.
  [[nodiscard]] std::uint64_t watched() const { return watched_; }
  /// Computes it alone. The same as watched() on every machine that works.
  [[nodiscard]] std::uint64_t checksum_of(std::span<const float> parameters, std::uint64_t step,
                                          std::uint32_t shard);
  /// Flips a bit of what is computed next of this step, as a broken machine might: for rehearsals.
  void flip_in(std::uint64_t step) { flip_in_ = step; }

  /// The mean loss of the held-out sequences, at most `sequences` of them, where the last stage is;
  /// nothing without any.
  [[nodiscard]] std::optional<double> evaluate(std::span<const float> parameters,
                                               std::uint32_t sequences);

 private:
  void compute_shard(std::span<const float> parameters, std::uint64_t step, std::uint32_t shard,
                     std::span<float> out);
  void compute_node(std::span<const float> parameters, std::uint64_t step, const LeafRange& node,
                    std::pair<std::size_t, std::span<float>> place);

  TrainingBatch batch_;
  const TextStream& stream_;
  std::vector<PipelineStep> schedule_;  ///< of a shard
  TrainableTransformer model_;
  std::vector<std::int32_t> tokens_;
  std::vector<AlignedFloats> right_;  ///< the right half's sum, by depth
  AlignedFloats again_;               ///< a shard that is computed again
  std::optional<std::uint32_t> watches_;
  std::uint64_t watched_ = 0;
  std::optional<std::uint64_t> flip_in_;
};

}  // namespace orrery
