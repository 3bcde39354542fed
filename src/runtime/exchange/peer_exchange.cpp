#include "runtime/exchange/peer_exchange.hpp"

#include "runtime/collectives/operation_queue.hpp"

namespace orrery {

PeerExchange::PeerExchange() : operations_(std::make_unique<OperationQueue>(*this)) {}

PeerExchange::~PeerExchange() = default;

std::optional<PeerLost> in_vain(const PeerMesh& mesh, const ExchangeSeat& seat,
                                std::uint32_t awaited) {
  for (std::uint32_t rank = 0; rank < seat.members.size(); ++rank) {
    const MemberId member = seat.members[rank];
    const bool away = seat.unsettled && mesh.reported(member, seat.generation);
    if (away || mesh.lost(member)) return PeerLost{rank};
  }
  const MemberId peer = seat.members[awaited];
  const bool there = mesh.connected(peer) && !mesh.left(peer);
  if (there && !mesh.reported(peer, seat.generation)) return std::nullopt;
  return PeerLost{awaited};
}

std::optional<PeerMessage> take_data(PeerMesh& mesh, const ExchangeSeat& seat, std::uint32_t from) {
  while (auto message = mesh.take(seat.members[from], MessageKind::kData, seat.generation)) {
    if (message->generation == seat.generation) return message;
  }
  return std::nullopt;
}

Shared<std::optional<PeerMessage>> await_data(PeerMesh& mesh, const ExchangeSeat& seat,
                                              std::uint32_t from, Wait wait) {
  auto message = take_data(mesh, seat, from);
  if (!message && wait == Wait::kNo) {
    mesh.pump(Duration());
    message = take_data(mesh, seat, from);
  }
  while (!message) {
    if (const auto lost = in_vain(mesh, seat, from)) return give_up(mesh, *lost);
    if (wait == Wait::kNo) return std::nullopt;
    mesh.pump(Duration::seconds(1));
    message = take_data(mesh, seat, from);
  }
  return message;
}

Shared<bool> flush(PeerMesh& mesh, const ExchangeSeat& seat, Wait wait) {
  for (std::uint32_t rank = 0; rank < seat.members.size(); ++rank) {
    const MemberId peer = seat.members[rank];
    if (wait == Wait::kNo && !mesh.idle(peer)) mesh.pump(Duration());
    if (wait == Wait::kNo && !mesh.idle(peer) && !mesh.left(peer)) {
      if (const auto lost = in_vain(mesh, seat, rank)) return give_up(mesh, *lost);
      return false;
    }
    if (auto flushed = flush_to(mesh, seat, rank); !flushed) {
      return tl::unexpected(flushed.error());
    }
  }
  return true;
}

Shared<void> flush_to(PeerMesh& mesh, const ExchangeSeat& seat, std::uint32_t rank) {
  const MemberId peer = seat.members[rank];
  // A peer that has left in peace needs nothing more.
  while (!mesh.idle(peer) && !mesh.left(peer)) {
    if (const auto lost = in_vain(mesh, seat, rank)) return give_up(mesh, *lost);
    mesh.pump(Duration::seconds(1));
  }
  if (!mesh.idle(peer)) mesh.keep_pending();
  return {};
}

std::optional<PeerLost> watch_peers(PeerMesh& mesh, const ExchangeSeat& seat, Duration patience) {
  mesh.pump(patience);
  for (std::uint32_t rank = 0; rank < seat.members.size(); ++rank) {
    if (rank == seat.rank) continue;
    if (const auto lost = in_vain(mesh, seat, rank)) return lost;
  }
  return std::nullopt;
}

tl::unexpected<PeerLost> give_up(PeerMesh& mesh, const PeerLost& lost) {
  mesh.keep_pending();
  return tl::unexpected(lost);
}

}  // namespace orrery
