// runtime/collectives/tcp_exchange.hpp - an PeerExchange over the sockets of a PeerMesh.
//
// All parts travel at the same time, so one show() takes as long as its slowest peer. Cost:
// O(bytes) and one copy out of the kernel's memory.
#pragma once

#include "runtime/collectives/peer_exchange.hpp"

namespace orrery {

class TcpExchange final : public PeerExchange {
 public:
  struct Seat {
    std::vector<MemberId> members;  ///< by rank
    std::uint32_t rank = 0;
    std::uint32_t generation = 0;
  };
  /// `mesh` outlives it and is connected to all other members.
  TcpExchange(PeerMesh& mesh, Seat seat) : mesh_(mesh), seat_(std::move(seat)) {}

  [[nodiscard]] std::uint32_t rank() const override { return seat_.rank; }
  [[nodiscard]] std::uint32_t size() const override {
    return static_cast<std::uint32_t>(seat_.members.size());
  }
  [[nodiscard]] Shared<std::vector<std::span<const std::byte>>> show(
      std::span<const ShownPart> parts, std::span<const std::uint32_t> from) override;
  [[nodiscard]] Shared<void> settle() override;

 private:
  struct Arrived {
    std::uint32_t rank = 0;
    std::optional<PeerMessage> message;
  };
  [[nodiscard]] tl::unexpected<PeerLost> give_up(const PeerLost& lost);
  [[nodiscard]] bool all_arrived();
  [[nodiscard]] std::optional<PeerLost> anyone_lost() const;

  PeerMesh& mesh_;
  Seat seat_;
  std::vector<Arrived> arrived_;
};

}  // namespace orrery
