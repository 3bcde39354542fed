#include "runtime/collectives/communicator.hpp"

#include <numeric>

namespace orrery {
namespace {

std::vector<std::uint32_t> all_ranks(const PeerExchange& exchange) {
  std::vector<std::uint32_t> ranks(exchange.size());
  std::iota(ranks.begin(), ranks.end(), 0u);
  return ranks;
}

}  // namespace

Communicator::Communicator(PeerExchange& exchange) : Communicator(exchange, all_ranks(exchange)) {}

Communicator::Communicator(PeerExchange& exchange, std::vector<std::uint32_t> members)
    : exchange_(exchange), plan_(exchange, std::move(members)) {}

Shared<PartOnItsWay> Communicator::begin_send(std::span<const std::byte> bytes, std::uint32_t to) {
  if (Shared<void> free = exchange_.operations().finish(); !free) {
    return tl::unexpected(free.error());
  }
  return exchange_.begin_show({plan_.member(to), bytes});
}

}  // namespace orrery
