#include "runtime/training/rank_grid.hpp"

#include "base/assert.hpp"

namespace orrery {
namespace {

/// `count` ranks, each so many `apart`.
std::vector<std::uint32_t> ranks_from(std::uint32_t first, std::uint32_t count,
                                      std::uint32_t apart) {
  std::vector<std::uint32_t> ranks;
  ranks.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) ranks.push_back(first + i * apart);
  return ranks;
}

}  // namespace

std::uint32_t RankGrid::places(const TrainingSpec& spec, std::uint32_t ranks) {
  return ranks / spec.layout.tp * spec.layout.tp;
}

RankGrid::RankGrid(const TrainingSpec& spec, MemberGroup& group)
    : replica_number_(group.rank() / spec.layout.tp),
      part_{.tensor_rank = group.rank() % spec.layout.tp, .tensor_ranks = spec.layout.tp},
      shards_(share_leaves(spec.batch.shards, group.size() / spec.layout.tp)),
      all_(group.among(ranks_from(0, places(spec, group.size()), 1))),
      replica_(group.among(ranks_from(replica_number_ * spec.layout.tp, spec.layout.tp, 1))),
      column_(group.among(
          ranks_from(part_.tensor_rank, group.size() / spec.layout.tp, spec.layout.tp))) {}

std::span<float> ReplicaSums::room(std::size_t floats) {
  ORRERY_ASSERT(floats <= room_.size(), "the room is as large as the model asks for");
  return room_.first(floats);
}

void ReplicaSums::sum(std::span<float> floats) {
  if (broken_) return;
  broken_ = !replica_.all_reduce(Elements(floats)).has_value();
}

}  // namespace orrery
