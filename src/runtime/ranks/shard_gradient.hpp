// runtime/ranks/shard_gradient.hpp - the gradient of the batch's shards that a rank owns, summed
// in the order of the fixed tree.
//
// Made with a rank's part of the model, whose other parts are computed by other ranks at the same
// time. A shard's micro-batches flow through the stages in the order of pipeline_schedule.hpp;
// between shards the pipeline drains, because the tree needs each shard's own gradient. Owns the
// activations and a buffer for each level of the tree that it has summed. Invariant: a shard's
// gradient depends only on the weights, the step, its number and how the model is cut.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/collectives/reduction_tree.hpp"
#include "runtime/ranks/pipeline_schedule.hpp"
#include "runtime/text/text_stream.hpp"
#include "runtime/trainer/transformer.hpp"
#include "runtime/training/training_spec.hpp"

namespace orrery {

/// Returns a checksum of the bits of some floats.
[[nodiscard]] std::uint64_t checksum_of_floats(std::span<const float> floats);

class ShardGradient {
 public:
  /// `stream` outlives it.
  ShardGradient(const TrainingSpec& spec, const TextStream& stream, const ModelPart& part = {});

  [[nodiscard]] const ParameterLayout& layout() const { return model_.layout(); }
  [[nodiscard]] TrainableTransformer& model() { return model_; }

  /// For the shards of `node` in step `step` (counted from 0), writes the sum of their gradients to
  /// the first layout().size() floats of `out`, the sum of their losses to the next, and with
  /// experts the sum of their TrainableTransformer::router_loss() to one more. The sum over all
  /// shards, divided by their number, is the mean.
  void compute(std::span<const float> parameters, std::uint64_t step, const LeafRange& node,
               std::span<float> out);

  /// Number of floats that compute() writes after the gradient.
  [[nodiscard]] std::size_t losses() const { return layout().config().experts > 0 ? 2 : 1; }

  /// Makes compute() keep the checksum of this shard's gradient; nothing: of no shard.
  void watch(std::optional<std::uint32_t> shard);
  /// The checksum of the watched shard's gradient; 0: it was not computed.
  [[nodiscard]] std::uint64_t watched() const { return watched_; }
  /// Computes one shard's gradient alone. The checksum equals watched() on every machine that works
  /// correctly.
  [[nodiscard]] std::uint64_t checksum_of(std::span<const float> parameters, std::uint64_t step,
                                          std::uint32_t shard);
  /// Flips a bit of the next gradient computed in this step, as a broken machine might: for
  /// rehearsals.
  void flip_in(std::uint64_t step) { flip_in_ = step; }

  /// Returns the mean loss of at most `sequences` held-out sequences, valid on the last stage;
  /// nothing if there are none.
  [[nodiscard]] std::optional<double> evaluate(std::span<const float> parameters,
                                               std::uint32_t sequences);

 private:
  void compute_shard(std::span<const float> parameters, std::uint64_t step, std::uint32_t shard,
                     std::span<float> out);
  void compute_node(std::span<const float> parameters, std::uint64_t step, const LeafRange& node,
                    std::pair<std::size_t, std::span<float>> place);

  TrainingBatch batch_;
  const TextStream& stream_;
  std::vector<PipelineStep> schedule_;  ///< schedule of a shard
  TrainableTransformer model_;
  std::vector<std::int32_t> tokens_;
  std::vector<AlignedFloats> right_;  ///< the right half's sum, by depth
  AlignedFloats again_;               ///< gradient of a shard that is recomputed
  std::optional<std::uint32_t> watches_;
  std::uint64_t watched_ = 0;
  std::optional<std::uint64_t> flip_in_;
};

}  // namespace orrery
