// runtime/training/gradient_check.hpp - who computes wrong: of some steps, ranks compare the sum
// they have and one shard's gradient, which another rank than its owner computes again.
//
// Pure functions over what ranks have told each other, so that all come to the same verdict. A
// gradient is a pure function of weights, step and shard, to the bit, on one kind of machine: where
// two differ, hardware is at fault. Ranks on unlike machines are not compared. What a wrong
// gradient of a step that is not checked has done to the weights stays.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/collectives/reduction_tree.hpp"

namespace orrery {

struct CheckedShard {
  std::uint32_t shard = 0;
  std::uint32_t owner = 0;  ///< rank that computes it
  std::uint32_t other = 0;  ///< rank that computes it again

  friend bool operator==(const CheckedShard&, const CheckedShard&) = default;
};

/// What is checked of step `step` (counted from 0) when every `every`th is; nothing: it is not, or
/// there is nobody to compare with. All shards and all pairs of ranks have their turn.
[[nodiscard]] std::optional<CheckedShard> checked_shard(std::uint64_t step, std::uint64_t every,
                                                        std::span<const LeafRange> owned_by_rank);

/// Checksums of what a rank has.
struct GradientOpinion {
  std::uint64_t sum = 0;      ///< of the gradient of all shards
  std::uint64_t shard = 0;    ///< of the checked shard's; of owner and other alone, at first
  std::uint64_t machine = 0;  ///< of what its bits depend on besides: instructions, library

  friend bool operator==(const GradientOpinion&, const GradientOpinion&) = default;
};

/// Whether all compute on one kind of machine: others may round differently and be right.
[[nodiscard]] bool comparable(std::span<const GradientOpinion> by_rank);

[[nodiscard]] bool agree(std::span<const GradientOpinion> by_rank, const CheckedShard& checked);

/// The ranks, ascending, that said anything else than more than half of all said, counting what was
/// said `first` and what all said `again`, after each has computed the shard; nothing: no opinion
/// is that of more than half.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> wrong_ranks(
    std::span<const GradientOpinion> first, std::span<const GradientOpinion> again,
    const CheckedShard& checked);

}  // namespace orrery
