// runtime/training/pipeline_schedule.hpp - in which order a pipeline stage takes up the
// micro-batches of a shard: one forward, one backward, with several chunks a stage interleaved (D.
// Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
// Megatron-LM", 2021, section 2.2).
//
// Pure functions. Invariants: a chunk sees the micro-batches in their order, forward and backward;
// stages that keep to their schedules come to an end where two messages may be on their way from
// one rank to another, and take what another rank sends in the order in which it is sent. The last
// is why there are no tags: with two stages, activations and gradients go the same way.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/trainer/model_part.hpp"

namespace orrery {

/// A pass of a micro-batch through a chunk of the stage.
struct PipelineStep {
  enum class Pass { kForward, kBackward };
  Pass pass = Pass::kForward;
  std::uint32_t micro_batch = 0;
  std::uint32_t chunk = 0;
  std::uint32_t slot = 0;  ///< where its activations are from forward to backward

  friend bool operator==(const PipelineStep&, const PipelineStep&) = default;
};

/// Of the part's stage. Precondition: with several chunks, micro-batches are a multiple of the
/// stages. O(micro-batches x chunks).
[[nodiscard]] std::vector<PipelineStep> pipeline_schedule(const ModelPart& part,
                                                          std::uint32_t micro_batches);

/// How many slots its steps have; never less than the part's chunks.
[[nodiscard]] std::uint32_t pipeline_slots(const ModelPart& part, std::uint32_t micro_batches);

}  // namespace orrery
