// runtime/ranks/rank_memory.hpp - bytes that a rank of a training will allocate, computed in
// advance.
//
// A value computed from a spec by a pure function. Other memory of a process (programs, text,
// buffers of sockets) is not counted.
#pragma once

#include "base/quantity.hpp"
#include "runtime/training/training_spec.hpp"

namespace orrery {

struct RankMemory {
  Bytes weights;
  Bytes moments;      ///< the optimiser's
  Bytes gradients;    ///< one, plus one for each level of the tree of its shards
  Bytes activations;  ///< for all micro-batches in flight
  Bytes exchange;     ///< messages between ranks of a replica
  Bytes checkpoint;   ///< copies being written
  Bytes copies;       ///< copies of its own and another rank's state

  [[nodiscard]] Bytes total() const {
    return weights + moments + gradients + activations + exchange + checkpoint + copies;
  }
};

/// Returns the memory of the rank that needs the most, with all `replicas` present. Preconditions:
/// the spec is checked, 1 <= replicas <= shards. O(parts x tensors).
[[nodiscard]] RankMemory rank_memory(const TrainingSpec& spec, std::uint32_t replicas);

}  // namespace orrery
