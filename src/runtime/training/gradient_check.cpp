#include "runtime/training/gradient_check.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace orrery {
namespace {

struct Vote {
  std::uint32_t rank = 0;
  std::uint64_t value = 0;
};

/// Adds the ranks whose vote differs from that of more than half; false: no value has so many
/// votes.
bool add_minority(const std::vector<Vote>& votes, std::set<std::uint32_t>& wrong) {
  std::map<std::uint64_t, std::size_t> counts;
  for (const Vote& vote : votes) ++counts[vote.value];
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == counts.end() || 2 * most->second <= votes.size()) return false;
  for (const Vote& vote : votes) {
    if (vote.value != most->first) wrong.insert(vote.rank);
  }
  return true;
}

}  // namespace

std::optional<CheckedShard> checked_shard(std::uint64_t step, std::uint64_t every,
                                          std::span<const LeafRange> owned_by_rank) {
  const std::uint64_t ranks = owned_by_rank.size();
  if (every == 0 || ranks < 2 || (step + 1) % every != 0) return std::nullopt;
  const std::uint64_t number = (step + 1) / every - 1;
  const std::uint64_t shards = owned_by_rank.back().end;
  CheckedShard checked;
  checked.shard = static_cast<std::uint32_t>(number % shards);
  while (owned_by_rank[checked.owner].end <= checked.shard) ++checked.owner;
  const std::uint64_t further = 1 + number / shards % (ranks - 1);
  checked.other = static_cast<std::uint32_t>((checked.owner + further) % ranks);
  return checked;
}

bool comparable(std::span<const GradientOpinion> by_rank) {
  return std::all_of(by_rank.begin(), by_rank.end(), [&](const GradientOpinion& each) {
    return each.machine == by_rank[0].machine;
  });
}

bool agree(std::span<const GradientOpinion> by_rank, const CheckedShard& checked) {
  const auto same_sum = [&](const GradientOpinion& each) { return each.sum == by_rank[0].sum; };
  return std::all_of(by_rank.begin(), by_rank.end(), same_sum) &&
         by_rank[checked.owner].shard == by_rank[checked.other].shard;
}

std::optional<std::vector<std::uint32_t>> wrong_ranks(std::span<const GradientOpinion> first,
                                                      std::span<const GradientOpinion> again,
                                                      const CheckedShard& checked) {
  std::vector<Vote> sums;
  std::vector<Vote> shards{{checked.owner, first[checked.owner].shard},
                           {checked.other, first[checked.other].shard}};
  for (std::uint32_t rank = 0; rank < again.size(); ++rank) {
    sums.push_back({rank, first[rank].sum});
    sums.push_back({rank, again[rank].sum});
    shards.push_back({rank, again[rank].shard});
  }
  std::set<std::uint32_t> wrong;
  if (!add_minority(sums, wrong) || !add_minority(shards, wrong)) return std::nullopt;
  return std::vector<std::uint32_t>(wrong.begin(), wrong.end());
}

}  // namespace orrery
