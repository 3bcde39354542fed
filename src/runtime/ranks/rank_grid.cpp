#include "runtime/ranks/rank_grid.hpp"

namespace orrery {
namespace {

/// Returns `count` ranks from `first` on, each `apart` after the one before.
std::vector<std::uint32_t> ranks_from(std::uint32_t first, std::uint32_t count,
                                      std::uint32_t apart) {
  std::vector<std::uint32_t> ranks;
  ranks.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) ranks.push_back(first + i * apart);
  return ranks;
}

}  // namespace

std::uint32_t RankGrid::places(const TrainingSpec& spec, std::uint32_t ranks) {
  return ranks / spec.layout.ranks() * spec.layout.ranks();
}

RankGrid::RankGrid(const TrainingSpec& spec, MemberGroup& group)
    : replica_number_(group.rank() / spec.layout.ranks()),
      part_(spec.layout.parts().at(group.rank() % spec.layout.ranks())),
      shards_(share_leaves(spec.batch.shards, group.size() / part_.ranks())),
      all_(group.among(ranks_from(0, places(spec, group.size()), 1))),
      replica_(group.among(ranks_from(group.rank() - part_.number(), part_.ranks(), 1))),
      stage_(group.among(ranks_from(group.rank() - part_.tensor_rank, part_.tensor_ranks, 1))),
      column_(
          group.among(ranks_from(part_.number(), group.size() / part_.ranks(), part_.ranks()))) {
  if (part_.stages == 1 || (!part_.first() && !part_.last())) return;
  const std::uint32_t first = group.rank() - part_.stage * part_.tensor_ranks;
  ends_.emplace(group.among(ranks_from(first, 2, (part_.stages - 1) * part_.tensor_ranks)));
}

}  // namespace orrery
