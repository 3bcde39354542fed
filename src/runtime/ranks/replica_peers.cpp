#include "runtime/ranks/replica_peers.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "runtime/trainer/transformer.hpp"

namespace orrery {
namespace {

/// Floats of one message, in whole cache lines.
std::size_t message_floats(const TrainingSpec& spec) {
  return (TrainableTransformer::stream_floats(spec.model, spec.batch.micro) + 15) / 16 * 16;
}

/// Number of rooms, each for a micro-batch's whole stream, if ranks share layers.
std::size_t rooms_of(const TrainingSpec& spec) {
  return spec.layout.tp > 1 ? TrainableTransformer::rooms(spec.model) : 0;
}

}  // namespace

std::size_t ReplicaPeers::room_floats(const TrainingSpec& spec) {
  const std::size_t mailboxes = spec.layout.pp > 1 ? 2 * kMailboxes : 0;
  return (rooms_of(spec) + mailboxes) * message_floats(spec);
}

ReplicaPeers::ReplicaPeers(const TrainingSpec& spec, RankGrid& grid, std::span<float> room)
    : grid_(grid) {
  const std::size_t each = message_floats(spec);
  std::size_t used = 0;
  const auto take = [&](std::size_t messages) {
    used += messages * each;
    return room.subspan(used - messages * each, messages * each);
  };
  room_ = take(rooms_of(spec));
  for (std::uint32_t rank = 0; rank < grid.stage().size(); ++rank) {
    a_leaf_a_rank_.push_back({rank, rank + 1});
  }
  if (spec.layout.pp == 1) return;
  for (auto& way : mailboxes_) {
    for (Mailbox& mailbox : way) mailbox.floats = take(1);
  }
}

std::span<float> ReplicaPeers::room(std::size_t floats) {
  ORRERY_ASSERT(floats <= room_.size(), "the room is as large as the model asks for");
  return room_.first(floats);
}

void ReplicaPeers::sum(std::span<float> floats) {
  if (broken_) return;
  broken_ = !grid_.stage().all_reduce(Elements(floats)).has_value();
}

std::vector<RankPart> ReplicaPeers::parts_of(std::span<float> floats, std::int64_t width) {
  const std::uint32_t ranks = grid_.stage().size();
  const auto row = static_cast<std::size_t>(width) * sizeof(float);
  const auto rows = static_cast<std::int64_t>(floats.size_bytes() / row);
  std::vector<RankPart> parts;
  parts.reserve(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const RowRange own = own_rows(rows, rank, ranks);
    parts.push_back(
        {static_cast<std::size_t>(own.begin) * row, static_cast<std::size_t>(own.size()) * row});
  }
  return parts;
}

void ReplicaPeers::gather_rows(std::span<float> floats, std::int64_t width) {
  if (broken_) return;
  const std::vector<RankPart> parts = parts_of(floats, width);
  const auto bytes = std::as_writable_bytes(floats);
  broken_ = !grid_.stage().all_gather_parts(bytes, parts).has_value();
}

void ReplicaPeers::sum_rows(std::span<float> floats, std::int64_t width) {
  if (broken_) return;
  const std::vector<RankPart> parts = parts_of(floats, width);
  const Elements elements(floats);
  broken_ = !grid_.stage().reduce_scatter_shards(elements, a_leaf_a_rank_, parts).has_value();
}

std::uint32_t ReplicaPeers::neighbour(Way way) const {
  const ModelPart& part = grid_.part();
  const bool ends = way == Way::kOn ? part.last() : part.first();
  ORRERY_ASSERT(!ends || part.chunks > 1, "there is a stage that way");
  const std::uint32_t stages_on = way == Way::kOn ? 1 : part.stages - 1;
  return (part.number() + stages_on * part.tensor_ranks) % part.ranks();
}

Shared<ReplicaPeers::Mailbox*> ReplicaPeers::free_mailbox(Way way) {
  const auto index = static_cast<std::size_t>(way);
  Mailbox& mailbox = mailboxes_.at(index).at(messages_.at(index)++ % kMailboxes);
  if (mailbox.sent) {
    if (auto there = grid_.replica().end_send(*mailbox.sent); !there) {
      return tl::unexpected(there.error());
    }
  }
  return &mailbox;
}

void ReplicaPeers::send(Way way, std::span<const float> floats) {
  if (broken_) return;
  const Shared<Mailbox*> mailbox = free_mailbox(way);
  broken_ = !mailbox.has_value();
  if (broken_) return;
  const std::span<float> copy = (*mailbox)->floats.first(floats.size());
  std::ranges::copy(floats, copy.begin());
  const auto sent = grid_.replica().begin_send(std::as_bytes(copy), neighbour(way));
  broken_ = !sent.has_value();
  if (!broken_) (*mailbox)->sent = *sent;
}

void ReplicaPeers::receive(Way way, std::span<float> floats) {
  if (broken_) return;
  const std::uint32_t from = neighbour(way == Way::kOn ? Way::kBack : Way::kOn);
  broken_ = !grid_.replica().receive(std::as_writable_bytes(floats), from).has_value();
}

void ReplicaPeers::sum_ends(std::span<float> floats) {
  if (broken_) return;
  broken_ = !grid_.ends().all_reduce(Elements(floats)).has_value();
}

}  // namespace orrery
