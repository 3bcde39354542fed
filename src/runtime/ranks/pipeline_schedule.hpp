// runtime/ranks/pipeline_schedule.hpp - in which order a pipeline stage processes the
// micro-batches of a shard: one forward, one backward, interleaved if stages have several chunks
// (D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
// Megatron-LM", 2021, section 2.2).
//
// Pure functions. Invariants: a chunk gets the micro-batches in their order, forward and backward;
// stages that follow their schedules never deadlock if two messages may be on their way from one
// rank to another, and receive messages from a rank in the order in which they are sent. The latter
// is why messages need no tags: with two stages, activations and gradients take the same way.
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
  std::uint32_t slot = 0;  ///< holds its activations from forward to backward pass

  friend bool operator==(const PipelineStep&, const PipelineStep&) = default;
};

/// Returns the schedule of the part's stage. Precondition: with several chunks, micro-batches are a
/// multiple of the stages. O(micro-batches x chunks).
[[nodiscard]] std::vector<PipelineStep> pipeline_schedule(const ModelPart& part,
                                                          std::uint32_t micro_batches);

/// Returns how many slots the schedule uses; never fewer than the part's chunks.
[[nodiscard]] std::uint32_t pipeline_slots(const ModelPart& part, std::uint32_t micro_batches);

}  // namespace orrery
