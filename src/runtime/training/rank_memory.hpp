// runtime/training/rank_memory.hpp - bytes that a rank of a training allocates, counted before
// it does.
//
// A value made from a spec; pure. What a process has besides (programs, text, buffers of sockets)
// is not counted.
#pragma once

#include "base/quantity.hpp"
#include "runtime/training/training_spec.hpp"

namespace orrery {

struct RankMemory {
  Bytes weights;
  Bytes moments;      ///< the optimiser's
  Bytes gradients;    ///< one, and one for each level of the tree of its shards
  Bytes activations;  ///< of all micro-batches on their way
  Bytes exchange;     ///< what ranks of a replica say to each other
  Bytes checkpoint;   ///< copies that are being written
  Bytes copies;       ///< kept for itself and another rank

  [[nodiscard]] Bytes total() const {
    return weights + moments + gradients + activations + exchange + checkpoint + copies;
  }
};

/// Of the rank of `replicas` that needs the most, when none is missing. Preconditions: the spec is
/// checked, 1 <= replicas <= shards. O(parts x tensors).
[[nodiscard]] RankMemory rank_memory(const TrainingSpec& spec, std::uint32_t replicas);

}  // namespace orrery
