// runtime/exchange/peer_exchange.hpp - the one primitive between ranks of a group: each shows
// parts of its memory to others, and looks at the parts that they show.
//
// Every collective (communicator.hpp) is made of it, so a backend only has to implement this:
// TcpExchange sends the parts, ShmExchange lets peers of the same machine read them in place. Built
// by a MemberGroup for one generation of its members; used by one thread. Ranks count from 0 in the
// order of the members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/exchange/peer_mesh.hpp"

namespace orrery {

/// A part that a rank shows to one peer.
struct ShownPart {
  std::uint32_t to = 0;
  std::span<const std::byte> bytes;
};

/// A part that is shown while its rank continues.
struct PartOnItsWay {
  std::uint32_t to = 0;
  std::uint64_t number = 0;  ///< number of the part within the exchange
};

/// A peer whose process or machine went away, or that lost contact with another peer: the group
/// must find out which members are left.
struct PeerLost {
  std::uint32_t rank = 0;
};

template <class T>
using Shared = tl::expected<T, PeerLost>;

/// Whether a call waits for a part that is not there yet.
enum class Wait { kNo, kUntilDone };

/// The members of a generation, by rank.
struct ExchangeSeat {
  std::vector<MemberId> members;
  std::uint32_t rank = 0;
  std::uint32_t generation = 0;
  /// Whether not all members are known to have come yet: any member that has given up, awaited or
  /// not, then ends the collective for all.
  bool unsettled = false;
};

/// Returns the lost rank if it is useless to wait for `awaited`: any lost member, or `awaited`
/// itself if it has given up or left in peace. To be called after checking whether the awaited data
/// is there: a member's data of a collective arrives before its report that it gave up.
[[nodiscard]] std::optional<PeerLost> in_vain(const PeerMesh& mesh, const ExchangeSeat& seat,
                                              std::uint32_t awaited);

/// Returns the next data of this generation from a rank. Data of an earlier generation is still
/// sent to its end, and is dropped here.
[[nodiscard]] std::optional<PeerMessage> take_data(PeerMesh& mesh, const ExchangeSeat& seat,
                                                   std::uint32_t from);

/// Waits for the next data of this generation from a rank, if `wait` says so. Nothing: it is not
/// there yet.
[[nodiscard]] Shared<std::optional<PeerMessage>> await_data(PeerMesh& mesh,
                                                            const ExchangeSeat& seat,
                                                            std::uint32_t from, Wait wait);

/// Sends out all queued messages, to all ranks or to one. flush() returns whether none is left.
[[nodiscard]] Shared<bool> flush(PeerMesh& mesh, const ExchangeSeat& seat, Wait wait);
[[nodiscard]] Shared<void> flush_to(PeerMesh& mesh, const ExchangeSeat& seat, std::uint32_t rank);

/// Implements PeerExchange::watch().
[[nodiscard]] std::optional<PeerLost> watch_peers(PeerMesh& mesh, const ExchangeSeat& seat,
                                                  Duration patience);

/// Ends a collective that cannot succeed. Messages that are still being sent are copied, because
/// the callers' memory may be freed.
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
  /// Returns the lowest of the ranks that share memory with `rank`, including itself. All ranks get
  /// the same answer.
  [[nodiscard]] virtual std::uint32_t machine_of(std::uint32_t rank) const = 0;

  /// Shows `parts` (at most one per peer): all, or with Wait::kNo the first ones, as many as
  /// possible without waiting. Returns how many. They must not change until settle(). Two ranks
  /// must agree on how many parts pass from one to the other, and in which order.
  [[nodiscard]] virtual Shared<std::size_t> show(std::span<const ShownPart> parts, Wait wait) = 0;
  /// Returns the next part that `from` shows, valid until settle() or until its next part is asked
  /// for. Nothing: it is not there yet.
  [[nodiscard]] virtual Shared<std::optional<std::span<const std::byte>>> look(std::uint32_t from,
                                                                               Wait wait) = 0;
  /// Releases the views. Returns whether all peers have looked at what was shown.
  [[nodiscard]] virtual Shared<bool> settle(Wait wait) = 0;

  /// Shows one part without waiting for the peer: it must not change until arrived(). Waits only if
  /// the peer has not looked at the part before the previous one. Parts keep their order, whether
  /// shown by this or by show().
  [[nodiscard]] virtual Shared<PartOnItsWay> begin_show(const ShownPart& part) = 0;
  /// Waits until the part may change: the peer has looked at it, or it has been copied out of this
  /// rank's memory.
  [[nodiscard]] virtual Shared<void> arrived(const PartOnItsWay& part) = 0;

  /// Waits at most `patience` for a message from any peer. Returns a peer that is lost, has given
  /// up or has left, if there is one. For callers that wait for something else that needs living
  /// peers.
  [[nodiscard]] virtual std::optional<PeerLost> watch(Duration patience) = 0;

  /// The queue that all communicators over this exchange share.
  [[nodiscard]] OperationQueue& operations() { return *operations_; }

 private:
  std::unique_ptr<OperationQueue> operations_;
};

}  // namespace orrery
