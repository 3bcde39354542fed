#include "runtime/collectives/communicator.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"

namespace orrery {
namespace {

using Views = std::vector<std::span<const std::byte>>;

/// Chunks begin at cache lines, so that no two ranks write the same one.
constexpr std::size_t kChunkAlign = 64;

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

Communicator::Communicator(PeerExchange& exchange) : exchange_(exchange) {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (rank != exchange.rank()) peers_.push_back(rank);
    a_leaf_a_rank_.push_back({rank, rank + 1});
  }
}

Shared<void> Communicator::barrier() {
  std::vector<ShownPart> parts;
  parts.reserve(peers_.size());
  for (const std::uint32_t peer : peers_) parts.push_back({peer, {}});
  auto views = exchange_.show(parts, peers_);
  if (!views) return tl::unexpected(views.error());
  return exchange_.settle();
}

Communicator::Chunk Communicator::chunk_of(const Elements& all, std::uint32_t rank) const {
  const std::size_t lines = (all.bytes.size() + kChunkAlign - 1) / kChunkAlign;
  const std::size_t each = (lines + size() - 1) / size() * kChunkAlign;
  const std::size_t begin = std::min(all.bytes.size(), rank * each);
  return {begin, std::min(all.bytes.size() - begin, each)};
}

Shared<void> Communicator::all_reduce(const Elements& in_out) {
  return all_reduce_shards(in_out, a_leaf_a_rank_);
}

Shared<void> Communicator::all_reduce_shards(const Elements& in_out,
                                             std::span<const LeafRange> owned_by_rank) {
  ORRERY_ASSERT(owned_by_rank.size() == size(), "each rank owns a node");
  if (size() == 1) return {};
  const Chunk mine = chunk_of(in_out, rank());
  std::vector<ShownPart> parts;
  parts.reserve(peers_.size());
  for (const std::uint32_t peer : peers_) {
    const Chunk chunk = chunk_of(in_out, peer);
    parts.push_back({peer, in_out.bytes.subspan(chunk.begin, chunk.size)});
  }
  Shared<Views> views = exchange_.show(parts, peers_);
  if (!views) return tl::unexpected(views.error());
  const std::span<std::byte> own = in_out.bytes.subspan(mine.begin, mine.size);
  std::vector<NodeSum> sources;
  sources.reserve(size());
  for (std::uint32_t rank = 0, next = 0; rank < size(); ++rank) {
    const std::span<const std::byte> from = rank == this->rank() ? own : (*views)[next++];
    ORRERY_ASSERT(from.size() == own.size(), "ranks agree on the sizes of what they exchange");
    sources.push_back({owned_by_rank[rank], from});
  }
  sum_by_tree(in_out.type, sources, own);
  if (auto settled = exchange_.settle(); !settled) return settled;
  return gather_chunks(in_out);
}

Shared<void> Communicator::gather_chunks(const Elements& in_out) {
  const Chunk mine = chunk_of(in_out, rank());
  std::vector<ShownPart> parts;
  parts.reserve(peers_.size());
  for (const std::uint32_t peer : peers_) {
    parts.push_back({peer, in_out.bytes.subspan(mine.begin, mine.size)});
  }
  Shared<Views> views = exchange_.show(parts, peers_);
  if (!views) return tl::unexpected(views.error());
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const Chunk chunk = chunk_of(in_out, peers_[i]);
    copy((*views)[i], in_out.bytes.subspan(chunk.begin, chunk.size));
  }
  return exchange_.settle();
}

Shared<void> Communicator::reduce_scatter(const Elements& in, std::span<std::byte> out) {
  std::vector<ShownPart> parts;
  parts.reserve(peers_.size());
  for (const std::uint32_t peer : peers_) parts.push_back({peer, part(in.bytes, peer, size())});
  Shared<Views> views = exchange_.show(parts, peers_);
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
  Shared<Views> views = exchange_.show(parts, peers_);
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
    auto shown = exchange_.show(parts, {});
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
  auto shown = exchange_.show(parts, {});
  if (!shown) return tl::unexpected(shown.error());
  copy(part(in, root, size()), out);
  return exchange_.settle();
}

Shared<void> Communicator::gather(std::span<const std::byte> in, std::span<std::byte> out,
                                  std::uint32_t root) {
  if (rank() != root) return send(in, root);
  Shared<Views> views = exchange_.show({}, peers_);
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
  Shared<Views> views = exchange_.show(parts, peers_);
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
  auto shown = exchange_.show({&part, 1}, {});
  if (!shown) return tl::unexpected(shown.error());
  return exchange_.settle();
}

Shared<void> Communicator::receive(std::span<std::byte> bytes, std::uint32_t from) {
  Shared<Views> views = exchange_.show({}, {&from, 1});
  if (!views) return tl::unexpected(views.error());
  copy(views->front(), bytes);
  return exchange_.settle();
}

}  // namespace orrery
