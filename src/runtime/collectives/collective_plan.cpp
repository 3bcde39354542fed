#include "runtime/collectives/collective_plan.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "base/numbers/streaming_copy.hpp"

namespace orrery {
namespace {

constexpr std::size_t kPartAlign = 64;
/// The most bytes that a rank reads in a single round, although two rounds would read fewer.
constexpr std::size_t kOneRound = 4 << 10;
constexpr std::size_t kStreamed = 16 << 10;  ///< bytes from which a copy goes past the cache

template <class Byte>
std::span<Byte> part(std::span<Byte> all, std::size_t index, std::size_t parts) {
  const std::size_t size = all.size() / parts;
  return all.subspan(index * size, size);
}

void copy(std::span<const std::byte> from, std::span<std::byte> to) {
  ORRERY_ASSERT(from.size() == to.size(), "ranks agree on the sizes of what they exchange");
  if (from.empty() || from.data() == to.data()) return;
  // The ranks that have just read `to` have it in their caches.
  const bool aligned = reinterpret_cast<std::uintptr_t>(to.data()) % 16 == 0;
  if (aligned && from.size() >= kStreamed) {
    streaming_copy(reinterpret_cast<char*>(to.data()), from.data(), from.size());
  } else {
    std::memcpy(to.data(), from.data(), from.size());
  }
}

/// Whether `leaves` is a node of the tree below `root`.
bool is_node(const LeafRange& leaves, LeafRange root) {
  while (root != leaves && root.size() > 1) {
    const std::uint32_t split = split_of(root);
    if (leaves.begin < split) {
      root.end = split;
    } else {
      root.begin = split;
    }
  }
  return root == leaves;
}

Rounds only(Round round) {
  Rounds rounds;
  rounds.push_back(std::move(round));
  return rounds;
}

}  // namespace

void use_views(Round& round, std::span<const std::span<const std::byte>> views) {
  if (round.sum) {
    RoundSum& sum = *round.sum;
    for (std::size_t source = 0, next = 0; source < sum.sources.size(); ++source) {
      std::span<const std::byte>& elements = sum.sources[source].elements;
      if (source != sum.own) elements = views[next++];
      ORRERY_ASSERT(elements.size() == sum.out.size(),
                    "ranks agree on the sizes of what they exchange");
    }
    sum_by_tree(sum.type, sum.sources, sum.out);
  }
  for (std::size_t i = 0; i < round.into.size(); ++i) copy(views[i], round.into[i]);
  copy(round.own, round.own_to);
}

CollectivePlan::CollectivePlan(const PeerExchange& exchange, std::vector<std::uint32_t> members)
    : all_(team_of(std::move(members), exchange.rank())) {
  for (std::uint32_t rank = 0; rank < size(); ++rank) a_leaf_a_rank_.push_back({rank, rank + 1});
  find_teams(exchange);
}

void CollectivePlan::find_teams(const PeerExchange& exchange) {
  const auto machine = [&](std::uint32_t rank) { return exchange.machine_of(member(rank)); };
  std::uint32_t each = 0;
  while (each < size() && machine(each) == machine(0)) ++each;
  if (each == 1 || each == size() || size() % each != 0) return;
  std::vector<std::uint32_t> machines;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const std::uint32_t first = machine(rank - rank % each);
    if (machine(rank) != first) return;
    if (rank % each == 0) machines.push_back(first);
  }
  std::ranges::sort(machines);
  if (std::ranges::adjacent_find(machines) != machines.end()) return;
  std::vector<std::uint32_t> here;
  std::vector<std::uint32_t> same_place;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (rank / each == this->rank() / each) here.push_back(member(rank));
    if (rank % each == this->rank() % each) same_place.push_back(member(rank));
  }
  machine_ = team_of(std::move(here), exchange.rank());
  column_ = team_of(std::move(same_place), exchange.rank());
}

std::vector<LeafRange> CollectivePlan::machine_nodes(
    std::span<const LeafRange> owned_by_rank) const {
  std::vector<LeafRange> nodes;
  const std::size_t each = machine_.members.size();
  const LeafRange root{owned_by_rank.front().begin, owned_by_rank.back().end};
  for (std::size_t first = 0; each > 0 && first < owned_by_rank.size(); first += each) {
    nodes.push_back({owned_by_rank[first].begin, owned_by_rank[first + each - 1].end});
    if (!is_node(nodes.back(), root)) return {};
  }
  return nodes;
}

CollectivePlan::Team CollectivePlan::team_of(std::vector<std::uint32_t> members,
                                             std::uint32_t own) {
  const auto found = std::find(members.begin(), members.end(), own);
  ORRERY_ASSERT(found != members.end() && std::is_sorted(members.begin(), members.end()),
                "a group is of ascending ranks, this one among them");
  const auto rank = static_cast<std::uint32_t>(found - members.begin());
  return {std::move(members), rank};
}

std::vector<RankPart> CollectivePlan::even_parts(std::size_t bytes, std::size_t ranks) {
  const std::size_t lines = (bytes + kPartAlign - 1) / kPartAlign;
  const std::size_t each = (lines + ranks - 1) / ranks * kPartAlign;
  std::vector<RankPart> parts(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::size_t begin = std::min(bytes, rank * each);
    parts[rank] = {begin, std::min(bytes - begin, each)};
  }
  return parts;
}

/// Each rank shows the others their parts of its elements, and sums its own part.
Round CollectivePlan::sum_parts(const Team& team, const Elements& in_out,
                                std::span<const LeafRange> nodes, std::span<const RankPart> parts) {
  const std::size_t ranks = team.members.size();
  const RankPart& own = parts[team.rank];
  Round round;
  round.shown.reserve(ranks);
  round.from.reserve(ranks);
  round.sum = RoundSum{
      .type = in_out.type, .own = team.rank, .out = in_out.bytes.subspan(own.begin, own.size)};
  round.sum->sources.reserve(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    round.sum->sources.push_back({nodes[rank], round.sum->out});
    if (rank == team.rank) continue;
    round.shown.push_back(
        {team.members[rank], in_out.bytes.subspan(parts[rank].begin, parts[rank].size)});
    round.from.push_back(team.members[rank]);
  }
  return round;
}

/// Each rank shows the others all of its elements, and sums all.
Round CollectivePlan::sum_whole(const Team& team, const Elements& in_out,
                                std::span<const LeafRange> nodes) {
  const std::size_t ranks = team.members.size();
  Round round;
  round.kept.assign(in_out.bytes.begin(), in_out.bytes.end());
  round.shown.reserve(ranks);
  round.from.reserve(ranks);
  round.sum = RoundSum{.type = in_out.type, .own = team.rank, .out = in_out.bytes};
  round.sum->sources.reserve(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    round.sum->sources.push_back({nodes[rank], round.kept});
    if (rank == team.rank) continue;
    round.shown.push_back({team.members[rank], round.kept});
    round.from.push_back(team.members[rank]);
  }
  return round;
}

/// Each rank shows the others its own part, and copies theirs.
Round CollectivePlan::gather_parts(const Team& team, std::span<std::byte> in_out,
                                   std::span<const RankPart> parts) {
  const std::size_t ranks = team.members.size();
  const RankPart& own = parts[team.rank];
  Round round;
  round.shown.reserve(ranks);
  round.from.reserve(ranks);
  round.into.reserve(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (rank == team.rank) continue;
    round.shown.push_back({team.members[rank], in_out.subspan(own.begin, own.size)});
    round.from.push_back(team.members[rank]);
    round.into.push_back(in_out.subspan(parts[rank].begin, parts[rank].size));
  }
  return round;
}

Rounds CollectivePlan::barrier() const { return all_gather({}, {}); }

Rounds CollectivePlan::all_reduce(const Elements& in_out) const {
  return all_reduce_shards(in_out, a_leaf_a_rank_);
}

Rounds CollectivePlan::all_reduce_shards(const Elements& in_out,
                                         std::span<const LeafRange> owned_by_rank) const {
  ORRERY_ASSERT(owned_by_rank.size() == size(), "each rank owns a node");
  Rounds rounds;
  if (size() == 1) return rounds;
  // A bfloat16 sum over a machine's ranks would be rounded once more when it is sent.
  std::vector<LeafRange> nodes;
  if (in_out.type != SumType::kBfloat16) nodes = machine_nodes(owned_by_rank);
  if (!nodes.empty()) {
    const std::size_t each = machine_.members.size();
    const std::size_t first = rank() - machine_.rank;
    const std::vector<RankPart> slices = even_parts(in_out.bytes.size(), each);
    const RankPart& own = slices[machine_.rank];
    const Elements slice(in_out.bytes.subspan(own.begin, own.size), in_out.type);
    const std::vector<RankPart> parts = even_parts(own.size, nodes.size());
    rounds.reserve(4);
    rounds.push_back(sum_parts(machine_, in_out, owned_by_rank.subspan(first, each), slices));
    rounds.push_back(sum_parts(column_, slice, nodes, parts));
    rounds.push_back(gather_parts(column_, slice.bytes, parts));
    rounds.push_back(gather_parts(machine_, in_out.bytes, slices));
    return rounds;
  }
  if ((size() - 1) * in_out.bytes.size() <= kOneRound) {
    return only(sum_whole(all_, in_out, owned_by_rank));
  }
  const std::vector<RankPart> parts = even_parts(in_out.bytes.size(), size());
  rounds.reserve(2);
  rounds.push_back(sum_parts(all_, in_out, owned_by_rank, parts));
  rounds.push_back(gather_parts(all_, in_out.bytes, parts));
  return rounds;
}

Rounds CollectivePlan::reduce_scatter_shards(const Elements& in_out,
                                             std::span<const LeafRange> owned_by_rank,
                                             std::span<const RankPart> parts) const {
  ORRERY_ASSERT(owned_by_rank.size() == size() && parts.size() == size(),
                "each rank owns a node and a part");
  return only(sum_parts(all_, in_out, owned_by_rank, parts));
}

Rounds CollectivePlan::all_gather_parts(std::span<std::byte> in_out,
                                        std::span<const RankPart> parts) const {
  ORRERY_ASSERT(parts.size() == size(), "each rank has a part");
  return only(gather_parts(all_, in_out, parts));
}

Rounds CollectivePlan::reduce_scatter(const Elements& in, std::span<std::byte> out) const {
  std::vector<RankPart> parts(size());
  const std::size_t each = in.bytes.size() / size();
  for (std::size_t rank = 0; rank < size(); ++rank) parts[rank] = {rank * each, each};
  Round round = sum_parts(all_, in, a_leaf_a_rank_, parts);
  round.sum->out = out;
  return only(std::move(round));
}

Rounds CollectivePlan::all_gather(std::span<const std::byte> in, std::span<std::byte> out) const {
  Round round;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const std::span<std::byte> place = out.subspan(rank * in.size(), in.size());
    if (rank == this->rank()) {
      round.own = in;
      round.own_to = place;
    } else {
      round.shown.push_back({member(rank), in});
      round.from.push_back(member(rank));
      round.into.push_back(place);
    }
  }
  return only(std::move(round));
}

Rounds CollectivePlan::broadcast(std::span<std::byte> in_out, std::uint32_t root) const {
  if (rank() != root) return receive(in_out, root);
  Round round;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (rank != root) round.shown.push_back({member(rank), in_out});
  }
  return only(std::move(round));
}

Rounds CollectivePlan::scatter(std::span<const std::byte> in, std::span<std::byte> out,
                               std::uint32_t root) const {
  if (rank() != root) return receive(out, root);
  Round round;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (rank != root) round.shown.push_back({member(rank), part(in, rank, size())});
  }
  round.own = part(in, root, size());
  round.own_to = out;
  return only(std::move(round));
}

Rounds CollectivePlan::gather(std::span<const std::byte> in, std::span<std::byte> out,
                              std::uint32_t root) const {
  if (rank() != root) return send(in, root);
  Round round;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (rank == root) continue;
    round.from.push_back(member(rank));
    round.into.push_back(out.subspan(rank * in.size(), in.size()));
  }
  round.own = in;
  round.own_to = out.subspan(root * in.size(), in.size());
  return only(std::move(round));
}

Rounds CollectivePlan::all_to_all(std::span<const std::byte> in, std::span<std::byte> out) const {
  Round round;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (rank == this->rank()) continue;
    round.shown.push_back({member(rank), part(in, rank, size())});
    round.from.push_back(member(rank));
    round.into.push_back(part(out, rank, size()));
  }
  round.own = part(in, rank(), size());
  round.own_to = part(out, rank(), size());
  return only(std::move(round));
}

Rounds CollectivePlan::send(std::span<const std::byte> bytes, std::uint32_t to) const {
  Round round;
  round.shown.push_back({member(to), bytes});
  return only(std::move(round));
}

Rounds CollectivePlan::receive(std::span<std::byte> bytes, std::uint32_t from) const {
  Round round;
  round.from.push_back(member(from));
  round.into.push_back(bytes);
  return only(std::move(round));
}

}  // namespace orrery
