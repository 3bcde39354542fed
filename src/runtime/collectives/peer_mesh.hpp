// runtime/collectives/peer_mesh.hpp - connections from one rank to each of its peers, which tell of
// a peer's death and carry what peers that share no memory tell each other.
//
// Built by a MemberGroup, which lends it to a PeerExchange; used by one thread. Messages between
// two peers arrive whole and in order or not at all. A peer whose process dies is lost as soon as
// its kernel says so (an end of stream, a reset); one whose machine falls silent after TCP's own
// patience, kSilence. Invariant: what was begun to be sent to a living peer is sent to its end, so
// no stream is ever out of step. Cost: a poll and O(bytes) a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"
#include "base/time.hpp"

namespace orrery {

/// A member of a group for its whole life; given by its founder, ascending by when they came.
enum class MemberId : std::uint32_t { kNobody = 0xffff'ffff };

enum class MessageKind : std::uint32_t {
  kHello = 1,  ///< the first on every connection
  kReport,     ///< to who leads: how far I am, who is lost
  kRoster,     ///< from who leads: who goes on
  kData,       ///< of a collective
  kFarewell,   ///< I am done, and not dead
};

struct PeerMessage {
  MessageKind kind = MessageKind::kData;
  std::uint32_t generation = 0;  ///< of the group it belongs to
  std::vector<std::byte> bytes;
};

/// Bytes to be sent; they stay where they are until the mesh is idle towards the peer.
struct OutgoingMessage {
  MessageKind kind = MessageKind::kData;
  std::uint32_t generation = 0;
  std::span<const std::byte> bytes;
};

class PeerMesh {
 public:
  /// How long a peer's machine may leave bytes unacknowledged.
  static constexpr Duration kSilence = Duration::seconds(15);

  /// How long a machine may take to answer a first word.
  static constexpr Duration kConnect = Duration::seconds(3);

  /// Listens at the first free port of [first, first + ports), beginning with `first`.
  struct Ports {
    std::string address = "127.0.0.1";  ///< numeric
    std::uint16_t first = 0;            ///< 0: any
    std::uint16_t count = 1;
  };
  [[nodiscard]] static Result<PeerMesh> listen(const Ports& ports);

  PeerMesh(PeerMesh&&) noexcept;
  PeerMesh& operator=(PeerMesh&&) noexcept;
  ~PeerMesh();

  /// Where it listens, as SocketAddress writes it.
  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }

  /// Connects and says hello. Errors: nobody listens there.
  [[nodiscard]] Status connect(MemberId peer, const std::string& endpoint,
                               std::span<const std::byte> hello);
  /// A connection that has said hello and is nobody's yet.
  struct Stranger {
    std::uint64_t key = 0;
    std::vector<std::byte> hello;
  };
  [[nodiscard]] std::vector<Stranger> strangers() const;
  /// The stranger is this peer from now on; without one it is sent away.
  void adopt(std::uint64_t stranger, std::optional<MemberId> as);

  [[nodiscard]] bool connected(MemberId peer) const;
  /// Its connection has ended, and it had not said farewell.
  [[nodiscard]] bool lost(MemberId peer) const;
  /// It has said farewell.
  [[nodiscard]] bool left(MemberId peer) const;
  void drop(MemberId peer);
  /// The connection to one becomes that to another.
  void rename(MemberId peer, MemberId to);

  /// Queues a message; what it spans must stay until idle(peer) or keep_pending().
  void send(MemberId peer, const OutgoingMessage& message);
  void send_copy(MemberId peer, const OutgoingMessage& message);
  /// Copies what waits to be sent: its owners go away, while its receivers still need the rest.
  void keep_pending();
  /// Nothing waits to be sent to it, or it is lost.
  [[nodiscard]] bool idle(MemberId peer) const;
  static constexpr std::uint32_t kAnyGeneration = 0xffff'ffff;
  /// The oldest message of a kind from a peer, of generations up to `newest`.
  [[nodiscard]] std::optional<PeerMessage> take(MemberId peer, MessageKind kind,
                                                std::uint32_t newest = kAnyGeneration);
  /// Gives a taken message's memory back, for the next from this peer.
  void recycle(MemberId peer, PeerMessage message);
  /// It has reported of this generation or a newer one, untaken: it is in no collective any more.
  [[nodiscard]] bool reported(MemberId peer, std::uint32_t generation) const;
  /// Forgets data and reports of generations before this one.
  void forget_before(std::uint32_t generation);

  /// Sends and receives what can be, waiting at most so long for the first of it.
  void pump(Duration patience);

 private:
  struct Connection;
  explicit PeerMesh(FileDescriptor listener, std::string endpoint);
  void accept_all();
  void read_from(Connection& from);
  void write_to(Connection& to);
  [[nodiscard]] Connection* find(MemberId peer) const;

  FileDescriptor listener_;
  std::string endpoint_;
  std::uint64_t next_stranger_ = 1;
  std::map<MemberId, std::unique_ptr<Connection>> peers_;
  std::map<std::uint64_t, std::unique_ptr<Connection>> strangers_;
};

}  // namespace orrery
