#include "runtime/collectives/tcp_exchange.hpp"

#include <algorithm>

namespace orrery {

Shared<std::vector<std::span<const std::byte>>> TcpExchange::show(
    std::span<const ShownPart> parts, std::span<const std::uint32_t> from) {
  if (Shared<void> settled = settle(); !settled) return tl::unexpected(settled.error());
  for (const ShownPart& part : parts) {
    mesh_.send(seat_.members[part.to], {MessageKind::kData, seat_.generation, part.bytes});
  }
  arrived_.reserve(from.size());
  for (const std::uint32_t rank : from) arrived_.push_back({rank, std::nullopt});
  while (!all_arrived()) {
    if (const auto lost = anyone_lost()) return give_up(*lost);
    mesh_.pump(Duration::seconds(1));
  }
  std::vector<std::span<const std::byte>> views;
  views.reserve(arrived_.size());
  for (const Arrived& each : arrived_) views.emplace_back(each.message->bytes);
  return views;
}

Shared<void> TcpExchange::settle() {
  for (Arrived& each : arrived_) {
    if (each.message) mesh_.recycle(seat_.members[each.rank], std::move(*each.message));
  }
  arrived_.clear();
  const auto idle = [this](MemberId member) { return mesh_.idle(member); };
  while (!std::all_of(seat_.members.begin(), seat_.members.end(), idle)) {
    if (const auto lost = anyone_lost()) return give_up(*lost);
    mesh_.pump(Duration::seconds(1));
  }
  return {};
}

/// The caller's parts go away with it.
tl::unexpected<PeerLost> TcpExchange::give_up(const PeerLost& lost) {
  mesh_.keep_pending();
  return tl::unexpected(lost);
}

bool TcpExchange::all_arrived() {
  bool all = true;
  for (Arrived& each : arrived_) {
    if (!each.message) each.message = mesh_.take(seat_.members[each.rank], MessageKind::kData);
    all = all && each.message.has_value();
  }
  return all;
}

std::optional<PeerLost> TcpExchange::anyone_lost() const {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (mesh_.lost(seat_.members[rank])) return PeerLost{rank};
  }
  // Who has gone in peace may still be waited for by mistake.
  for (const Arrived& each : arrived_) {
    if (!each.message && !mesh_.connected(seat_.members[each.rank])) return PeerLost{each.rank};
  }
  return std::nullopt;
}

}  // namespace orrery
