// runtime/collectives/peer_exchange.hpp - the one thing that ranks of a group do to each other:
// each shows others parts of its memory, and looks at what they show.
//
// Every collective (communicator.hpp) is made of it, so that a backend is this and nothing more:
// TcpExchange sends the parts, ShmExchange lets peers of the same machine look at them where they
// are. Built by a MemberGroup for one generation of its members; used by one thread. Ranks count
// from 0 in the order of the members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/collectives/peer_mesh.hpp"

namespace orrery {

/// What a rank shows one peer.
struct ShownPart {
  std::uint32_t to = 0;
  std::span<const std::byte> bytes;
};

/// A part that is shown while its rank goes on.
struct PartOnItsWay {
  std::uint32_t to = 0;
  std::uint64_t number = 0;  ///< the exchange's
};

/// A peer whose process or machine went away, or that missed another one: the group must find out
/// who is left.
struct PeerLost {
  std::uint32_t rank = 0;
};

template <class T>
using Shared = tl::expected<T, PeerLost>;

/// Whether a call waits for what is not there yet.
enum class Wait { kNo, kUntilDone };

/// The members of a generation, by rank.
struct ExchangeSeat {
  std::vector<MemberId> members;
  std::uint32_t rank = 0;
  std::uint32_t generation = 0;
  /// Not all are known to have come: who has given up, awaited or not, ends it for all.
  bool unsettled = false;
};

/// Who is lost, when it is in vain to wait for `awaited`: any member, or that one because it has
/// given up or gone in peace. Ask after looking whether what is awaited is there: what a member
/// does in a collective comes before what it says when it gives one up.
[[nodiscard]] std::optional<PeerLost> in_vain(const PeerMesh& mesh, const ExchangeSeat& seat,
                                              std::uint32_t awaited);

/// The next data of this generation from a rank. What an earlier one began is sent to its end, and
/// is nobody's.
[[nodiscard]] std::optional<PeerMessage> take_data(PeerMesh& mesh, const ExchangeSeat& seat,
                                                   std::uint32_t from);

/// The same, once it is there. Nothing: it is not there yet.
[[nodiscard]] Shared<std::optional<PeerMessage>> await_data(PeerMesh& mesh,
                                                            const ExchangeSeat& seat,
                                                            std::uint32_t from, Wait wait);

/// Until all that was sent is on its way, to all or to one rank. Whether it is.
[[nodiscard]] Shared<bool> flush(PeerMesh& mesh, const ExchangeSeat& seat, Wait wait);
[[nodiscard]] Shared<void> flush_to(PeerMesh& mesh, const ExchangeSeat& seat, std::uint32_t rank);

/// What PeerExchange::watch() does.
[[nodiscard]] std::optional<PeerLost> watch_peers(PeerMesh& mesh, const ExchangeSeat& seat,
                                                  Duration patience);

/// Ends a collective that cannot end well. What it has begun to send is kept: the callers' memory
/// goes away with them.
[[nodiscard]] tl::unexpected<PeerLost> give_up(PeerMesh& mesh, const PeerLost& lost);

class OperationQueue;

class PeerExchange {
 public:
  PeerExchange();
  PeerExchange(const PeerExchange&) = delete;
  PeerExchange& operator=(const PeerExchange&) = delete;
  virtual ~PeerExchange();
  [[nodiscard]] virtual std::uint32_t rank() const = 0;
  [[nodiscard]] virtual std::uint32_t size() const = 0;
  /// The lowest of the ranks that share memory with this one, itself among them: all ranks know the
  /// same.
  [[nodiscard]] virtual std::uint32_t machine_of(std::uint32_t rank) const = 0;

  /// Shows `parts` (at most one a peer): all, or the first ones, as many as go without waiting.
  /// Returns how many. They must not change until settle(). Two ranks must agree on how many parts
  /// pass from one to the other, and in which order.
  [[nodiscard]] virtual Shared<std::size_t> show(std::span<const ShownPart> parts, Wait wait) = 0;
  /// The next part that `from` shows, good until settle() and until its next one is asked for.
  /// Nothing: it is not there yet.
  [[nodiscard]] virtual Shared<std::optional<std::span<const std::byte>>> look(std::uint32_t from,
                                                                               Wait wait) = 0;
  /// The views are gone; true: all peers have looked at what was shown.
  [[nodiscard]] virtual Shared<bool> settle(Wait wait) = 0;

  /// Shows one part and goes on: it must not change until arrived(). Waits only where the peer has
  /// not looked at the part before the one before. Parts keep their order, shown so or by show().
  [[nodiscard]] virtual Shared<PartOnItsWay> begin_show(const ShownPart& part) = 0;
  /// The part may change: the peer has looked at it, or it is out of this rank's memory.
  [[nodiscard]] virtual Shared<void> arrived(const PartOnItsWay& part) = 0;

  /// Waits at most so long for word from any peer. Who is lost, has given up or has left, if
  /// anybody: for who waits for something else that only living peers bring about.
  [[nodiscard]] virtual std::optional<PeerLost> watch(Duration patience) = 0;

  /// Of all communicators over this exchange.
  [[nodiscard]] OperationQueue& operations() { return *operations_; }

 private:
  std::unique_ptr<OperationQueue> operations_;
};

}  // namespace orrery
