// runtime/exchange/tcp_exchange.hpp - a PeerExchange over the sockets of a PeerMesh.
//
// All parts travel at the same time, so a round takes as long as its slowest peer. Cost:
// O(bytes) and one copy out of the kernel's memory.
#pragma once

#include "runtime/exchange/peer_exchange.hpp"

namespace orrery {

class TcpExchange final : public PeerExchange {
 public:
  /// `mesh` outlives it and is connected to all other members.
  TcpExchange(PeerMesh& mesh, ExchangeSeat seat) : mesh_(mesh), seat_(std::move(seat)) {}
  /// Copies messages that are still being sent, since their owners may free them.
  ~TcpExchange() override { mesh_.keep_pending(); }

  [[nodiscard]] std::uint32_t rank() const override { return seat_.rank; }
  [[nodiscard]] std::uint32_t size() const override {
    return static_cast<std::uint32_t>(seat_.members.size());
  }
  [[nodiscard]] std::uint32_t machine_of(std::uint32_t rank) const override { return rank; }
  [[nodiscard]] Shared<std::size_t> show(std::span<const ShownPart> parts, Wait wait) override;
  [[nodiscard]] Shared<std::optional<std::span<const std::byte>>> look(std::uint32_t from,
                                                                       Wait wait) override;
  [[nodiscard]] Shared<bool> settle(Wait wait) override;
  [[nodiscard]] Shared<PartOnItsWay> begin_show(const ShownPart& part) override;
  [[nodiscard]] Shared<void> arrived(const PartOnItsWay& part) override;
  [[nodiscard]] std::optional<PeerLost> watch(Duration patience) override {
    return watch_peers(mesh_, seat_, patience);
  }

 private:
  struct Arrived {
    std::uint32_t rank = 0;
    PeerMessage message;
  };

  /// Returns the memory of the part that arrived from a rank, to be reused for its next part.
  void give_back(std::uint32_t from);

  PeerMesh& mesh_;
  ExchangeSeat seat_;
  std::vector<Arrived> arrived_;
};

}  // namespace orrery
