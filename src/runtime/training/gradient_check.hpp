// runtime/training/gradient_check.hpp - finds ranks that compute wrong results: in some steps,
// ranks compare the gradient sums they have and one shard's gradient, which a second rank
// recomputes.
//
// Pure functions over the values that ranks have exchanged, so that all come to the same verdict. A
// gradient is a pure function of weights, step and shard, to the bit, on one kind of machine: if
// two differ, hardware is at fault. Ranks on different kinds of machines are not compared. The
// effect of a wrong gradient on the weights in an unchecked step is not undone.
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
  std::uint32_t other = 0;  ///< rank that recomputes it

  friend bool operator==(const CheckedShard&, const CheckedShard&) = default;
};

/// Returns the shard to check in step `step` (counted from 0) if every `every`th step is checked;
/// nothing: it is not checked, or there is no second rank. All shards and all pairs of ranks get
/// their turn.
[[nodiscard]] std::optional<CheckedShard> checked_shard(std::uint64_t step, std::uint64_t every,
                                                        std::span<const LeafRange> owned_by_rank);

/// Checksums of the values that a rank has.
struct GradientOpinion {
  std::uint64_t sum = 0;      ///< checksum of the gradient of all shards
  std::uint64_t shard = 0;    ///< the checked shard's; at first by owner and other only
  std::uint64_t machine = 0;  ///< what else the bits depend on: instructions, library

  friend bool operator==(const GradientOpinion&, const GradientOpinion&) = default;
};

/// Whether all compute on one kind of machine: other kinds may round differently and be right.
[[nodiscard]] bool comparable(std::span<const GradientOpinion> by_rank);

[[nodiscard]] bool agree(std::span<const GradientOpinion> by_rank, const CheckedShard& checked);

/// Returns the ranks, ascending, whose opinion differs from that of more than half, counting the
/// `first` opinions and those of all ranks `again`, after each has computed the shard; nothing: no
/// opinion has more than half of the votes.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> wrong_ranks(
    std::span<const GradientOpinion> first, std::span<const GradientOpinion> again,
    const CheckedShard& checked);

}  // namespace orrery
