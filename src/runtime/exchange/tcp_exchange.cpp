#include "runtime/exchange/tcp_exchange.hpp"

#include <algorithm>

namespace orrery {

Shared<std::size_t> TcpExchange::show(std::span<const ShownPart> parts, Wait /*wait*/) {
  for (const ShownPart& part : parts) {
    mesh_.send(seat_.members[part.to], {MessageKind::kData, seat_.generation, part.bytes});
  }
  return parts.size();
}

Shared<std::optional<std::span<const std::byte>>> TcpExchange::look(std::uint32_t from, Wait wait) {
  give_back(from);
  Shared<std::optional<PeerMessage>> message = await_data(mesh_, seat_, from, wait);
  if (!message) return tl::unexpected(message.error());
  if (!*message) return std::nullopt;
  arrived_.push_back({from, std::move(**message)});
  return std::span<const std::byte>(arrived_.back().message.bytes);
}

void TcpExchange::give_back(std::uint32_t from) {
  const auto found = std::ranges::find(arrived_, from, &Arrived::rank);
  if (found == arrived_.end()) return;
  mesh_.recycle(seat_.members[from], std::move(found->message));
  arrived_.erase(found);
}

Shared<bool> TcpExchange::settle(Wait wait) {
  while (!arrived_.empty()) give_back(arrived_.back().rank);
  return flush(mesh_, seat_, wait);
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
