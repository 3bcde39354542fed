#include "runtime/collectives/tcp_exchange.hpp"

namespace orrery {

Shared<std::vector<std::span<const std::byte>>> TcpExchange::show(
    std::span<const ShownPart> parts, std::span<const std::uint32_t> from) {
  if (Shared<void> settled = settle(); !settled) return tl::unexpected(settled.error());
  for (const ShownPart& part : parts) {
    mesh_.send(seat_.members[part.to], {MessageKind::kData, seat_.generation, part.bytes});
  }
  arrived_.reserve(from.size());
  for (const std::uint32_t rank : from) arrived_.push_back({rank, std::nullopt});
  for (Arrived& each : arrived_) {
    while (!(each.message = take_data(mesh_, seat_, each.rank))) {
      if (const auto lost = in_vain(mesh_, seat_, each.rank)) return give_up(mesh_, *lost);
      mesh_.pump(Duration::seconds(1));
    }
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
  return flush(mesh_, seat_);
}

Shared<PartOnItsWay> TcpExchange::begin_show(const ShownPart& part) {
  mesh_.send(seat_.members[part.to], {MessageKind::kData, seat_.generation, part.bytes});
  mesh_.pump(Duration());
  return PartOnItsWay{.to = part.to};
}

Shared<void> TcpExchange::arrived(const PartOnItsWay& part) {
  return flush_to(mesh_, seat_, part.to);
}

}  // namespace orrery
