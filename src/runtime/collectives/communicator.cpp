#include "runtime/collectives/communicator.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/assert.hpp"

namespace orrery {
namespace {

constexpr std::size_t kPartAlign = 64;

std::vector<std::uint32_t> all_ranks(const PeerExchange& exchange) {
  std::vector<std::uint32_t> ranks(exchange.size());
  std::iota(ranks.begin(), ranks.end(), 0u);
  return ranks;
}

std::span<const std::byte> part(std::span<const std::byte> all, std::size_t index,
                                std::size_t parts) {
  const std::size_t size = all.size() / parts;
  return all.subspan(index * size, size);
}

void copy(std::span<const std::byte> from, std::span<std::byte> to) {
  ORRERY_ASSERT(from.size() == to.size(), "ranks agree on the sizes of what they exchange");
  if (!from.empty() && from.data() != to.data()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace

Communicator::Communicator(PeerExchange& exchange) : Communicator(exchange, all_ranks(exchange)) {}

Communicator::Communicator(PeerExchange& exchange, std::vector<std::uint32_t> members)
    : exchange_(exchange), members_(std::move(members)), rank_(size()) {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (members_[rank] == exchange.rank()) {
      rank_ = rank;
    } else {
      peers_.push_back(rank);
    }
    a_leaf_a_rank_.push_back({rank, rank + 1});
  }
  ORRERY_ASSERT(rank_ < size() && std::is_sorted(members_.begin(), members_.end()),
                "a group is of ascending ranks, this one among them");
}

Shared<Communicator::Views> Communicator::show(std::span<const ShownPart> parts,
                                               std::span<const std::uint32_t> from) {
  std::vector<ShownPart> shown(parts.begin(), parts.end());
  for (ShownPart& part : shown) part.to = members_[part.to];
  std::vector<std::uint32_t> awaited(from.begin(), from.end());
  for (std::uint32_t& rank : awaited) rank = members_[rank];
  return exchange_.show(shown, awaited);
}

Shared<void> Communicator::barrier() {
  std::vector<ShownPart> parts;
  parts.reserve(peers_.size());
  for (const std::uint32_t peer : peers_) parts.push_back({peer, {}});
  auto views = show(parts, peers_);
  if (!views) return tl::unexpected(views.error());
  return exchange_.settle();
}

std::vector<RankPart> Communicator::even_parts(std::size_t bytes) const {
  const std::size_t lines = (bytes + kPartAlign - 1) / kPartAlign;
  const std::size_t each = (lines + size() - 1) / size() * kPartAlign;
  std::vector<RankPart> parts(size());
  for (std::size_t rank = 0; rank < size(); ++rank) {
    const std::size_t begin = std::min(bytes, rank * each);
    parts[rank] = {begin, std::min(bytes - begin, each)};
  }
  return parts;
}

Shared<void> Communicator::all_reduce(const Elements& in_out) {
  return all_reduce_shards(in_out, a_leaf_a_rank_);
}

Shared<void> Communicator::all_reduce_shards(const Elements& in_out,
                                             std::span<const LeafRange> owned_by_rank) {
  ORRERY_ASSERT(owned_by_rank.size() == size(), "each rank owns a node");
  if (size() == 1) return {};
  const std::vector<RankPart> parts = even_parts(in_out.bytes.size());
  if (auto reduced = reduce_scatter_shards(in_out, owned_by_rank, parts); !reduced) return reduced;
  return all_gather_parts(in_out.bytes, parts);
}

Shared<void> Communicator::reduce_scatter_shards(const Elements& in_out,
                                                 std::span<const LeafRange> owned_by_rank,
                                                 std::span<const RankPart> parts) {
  ORRERY_ASSERT(owned_by_rank.size() == size() && parts.size() == size(),
                "each rank owns a node and a part");
  std::vector<ShownPart> shown;
  shown.reserve(peers_.size());
  for (const std::uint32_t peer : peers_) {
    shown.push_back({peer, in_out.bytes.subspan(parts[peer].begin, parts[peer].size)});
  }
  Shared<Views> views = show(shown, peers_);
  if (!views) return tl::unexpected(views.error());
  const std::span<std::byte> own = in_out.bytes.subspan(parts[rank_].begin, parts[rank_].size);
  std::vector<NodeSum> sources;
  sources.reserve(size());
  for (std::uint32_t rank = 0, next = 0; rank < size(); ++rank) {
    const std::span<const std::byte> from = rank == rank_ ? own : (*views)[next++];
    ORRERY_ASSERT(from.size() == own.size(), "ranks agree on the sizes of what they exchange");
    sources.push_back({owned_by_rank[rank], from});
  }
  sum_by_tree(in_out.type, sources, own);
  return exchange_.settle();
}

Shared<void> Communicator::all_gather_parts(std::span<std::byte> in_out,
                                            std::span<const RankPart> parts) {
  ORRERY_ASSERT(parts.size() == size(), "each rank has a part");
  std::vector<ShownPart> shown;
  shown.reserve(peers_.size());
  for (const std::uint32_t peer : peers_) {
    shown.push_back({peer, in_out.subspan(parts[rank_].begin, parts[rank_].size)});
  }
  Shared<Views> views = show(shown, peers_);
  if (!views) return tl::unexpected(views.error());
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const RankPart& from = parts[peers_[i]];
    copy((*views)[i], in_out.subspan(from.begin, from.size));
  }
  return exchange_.settle();
}

Shared<void> Communicator::reduce_scatter(const Elements& in, std::span<std::byte> out) {
  std::vector<ShownPart> parts;
  parts.reserve(peers_.size());
  for (const std::uint32_t peer : peers_) parts.push_back({peer, part(in.bytes, peer, size())});
  Shared<Views> views = show(parts, peers_);
  if (!views) return tl::unexpected(views.error());
  std::vector<NodeSum> sources;
  sources.reserve(size());
  for (std::uint32_t rank = 0, next = 0; rank < size(); ++rank) {
    const bool own = rank == this->rank();
    sources.push_back(
        {a_leaf_a_rank_[rank], own ? part(in.bytes, rank, size()) : (*views)[next++]});
  }
  sum_by_tree(in.type, sources, out);
  return exchange_.settle();
}

Shared<void> Communicator::all_gather(std::span<const std::byte> in, std::span<std::byte> out) {
  std::vector<ShownPart> parts;
  parts.reserve(peers_.size());
  for (const std::uint32_t peer : peers_) parts.push_back({peer, in});
  Shared<Views> views = show(parts, peers_);
  if (!views) return tl::unexpected(views.error());
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    copy((*views)[i], out.subspan(peers_[i] * in.size(), in.size()));
  }
  copy(in, out.subspan(rank() * in.size(), in.size()));
  return exchange_.settle();
}

Shared<void> Communicator::broadcast(std::span<std::byte> in_out, std::uint32_t root) {
  std::vector<ShownPart> parts;
  if (rank() == root) {
    for (const std::uint32_t peer : peers_) parts.push_back({peer, in_out});
    auto shown = show(parts, {});
    if (!shown) return tl::unexpected(shown.error());
    return exchange_.settle();
  }
  return receive(in_out, root);
}

Shared<void> Communicator::scatter(std::span<const std::byte> in, std::span<std::byte> out,
                                   std::uint32_t root) {
  if (rank() != root) return receive(out, root);
  std::vector<ShownPart> parts;
  for (const std::uint32_t peer : peers_) parts.push_back({peer, part(in, peer, size())});
  auto shown = show(parts, {});
  if (!shown) return tl::unexpected(shown.error());
  copy(part(in, root, size()), out);
  return exchange_.settle();
}

Shared<void> Communicator::gather(std::span<const std::byte> in, std::span<std::byte> out,
                                  std::uint32_t root) {
  if (rank() != root) return send(in, root);
  Shared<Views> views = show({}, peers_);
  if (!views) return tl::unexpected(views.error());
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    copy((*views)[i], out.subspan(peers_[i] * in.size(), in.size()));
  }
  copy(in, out.subspan(root * in.size(), in.size()));
  return exchange_.settle();
}

Shared<void> Communicator::all_to_all(std::span<const std::byte> in, std::span<std::byte> out) {
  std::vector<ShownPart> parts;
  parts.reserve(peers_.size());
  for (const std::uint32_t peer : peers_) parts.push_back({peer, part(in, peer, size())});
  Shared<Views> views = show(parts, peers_);
  if (!views) return tl::unexpected(views.error());
  const std::size_t each = out.size() / size();
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    copy((*views)[i], out.subspan(peers_[i] * each, each));
  }
  copy(part(in, rank(), size()), out.subspan(rank() * each, each));
  return exchange_.settle();
}

Shared<void> Communicator::send(std::span<const std::byte> bytes, std::uint32_t to) {
  const ShownPart part{to, bytes};
  auto shown = show({&part, 1}, {});
  if (!shown) return tl::unexpected(shown.error());
  return exchange_.settle();
}

Shared<PartOnItsWay> Communicator::begin_send(std::span<const std::byte> bytes, std::uint32_t to) {
  return exchange_.begin_show({members_[to], bytes});
}

Shared<void> Communicator::receive(std::span<std::byte> bytes, std::uint32_t from) {
  Shared<Views> views = show({}, {&from, 1});
  if (!views) return tl::unexpected(views.error());
  copy(views->front(), bytes);
  return exchange_.settle();
}

}  // namespace orrery
