// runtime/exchange/peer_mesh.hpp - connections from one rank to each of its peers, which detect
// a peer's death and carry messages between peers that share no memory.
//
// Built by a MemberGroup, which lends it to a PeerExchange; used by one thread. Messages between
// two peers arrive whole and in order or not at all. A peer whose process dies is lost as soon as
// its kernel reports it (an end of stream, a reset); one whose machine falls silent is lost after
// TCP's timeout, kSilence. Invariant: a message that was begun to be sent to a living peer is sent
// to its end, so no stream gets out of step. Cost: a poll and O(bytes) per call.
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
#include "base/system/file_descriptor.hpp"
#include "base/system/socket_address.hpp"
#include "base/time.hpp"

namespace orrery {

/// Identifies a member of a group for its whole life; given by the group's leader, ascending in the
/// order of arrival.
enum class MemberId : std::uint32_t { kNobody = 0xffff'ffff };

enum class MessageKind : std::uint32_t {
  kHello = 1,  ///< the first on every connection
  kReport,     ///< to the other members: steps done, and which members are lost
  kRoster,     ///< the members of a newer generation
  kData,       ///< data of a collective
  kFarewell,   ///< the sender is done, and not dead
};

struct PeerMessage {
  MessageKind kind = MessageKind::kData;
  std::uint32_t generation = 0;  ///< generation of the group
  std::vector<std::byte> bytes;
};

/// A message to be sent; its bytes must stay in place until the mesh is idle towards the peer.
struct OutgoingMessage {
  MessageKind kind = MessageKind::kData;
  std::uint32_t generation = 0;
  std::span<const std::byte> bytes;
};

class PeerMesh {
 public:
  /// How long a peer's machine may leave bytes unacknowledged.
  static constexpr Duration kSilence = Duration::seconds(15);

  /// How long a machine may take to accept a connection.
  static constexpr Duration kConnect = Duration::seconds(3);

  /// The mesh listens at the first free port of [first, first + count).
  struct Ports {
    std::string address = "127.0.0.1";  ///< numeric
    std::uint16_t first = 0;            ///< 0: any
    std::uint16_t count = 1;
  };
  [[nodiscard]] static Result<PeerMesh> listen(const Ports& ports);

  PeerMesh(PeerMesh&&) noexcept;
  PeerMesh& operator=(PeerMesh&&) noexcept;
  ~PeerMesh();

  /// The address it listens at, as SocketAddress writes it.
  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }

  /// Connects and sends `hello`. Errors: no process listens there.
  [[nodiscard]] Status connect(MemberId peer, const std::string& endpoint,
                               std::span<const std::byte> hello);
  /// A connection that has sent its hello and belongs to no peer yet.
  struct Stranger {
    std::uint64_t key = 0;
    std::vector<std::byte> hello;
  };
  [[nodiscard]] std::vector<Stranger> strangers() const;
  /// Makes a stranger's connection that of peer `as`; without a peer it is closed.
  void adopt(std::uint64_t stranger, std::optional<MemberId> as);

  [[nodiscard]] bool connected(MemberId peer) const;
  /// Whether its connection has ended without a farewell.
  [[nodiscard]] bool lost(MemberId peer) const;
  /// Whether it has sent a farewell.
  [[nodiscard]] bool left(MemberId peer) const;
  void drop(MemberId peer);
  /// Makes the connection to `peer` that to `to`.
  void rename(MemberId peer, MemberId to);

  /// Queues a message; the bytes it refers to must stay until idle(peer) or keep_pending().
  void send(MemberId peer, const OutgoingMessage& message);
  void send_copy(MemberId peer, const OutgoingMessage& message);
  /// Copies what waits to be sent, because its owners may free it while receivers still need the
  /// rest.
  void keep_pending();
  /// Whether nothing waits to be sent to it, or it is lost.
  [[nodiscard]] bool idle(MemberId peer) const;
  static constexpr std::uint32_t kAnyGeneration = 0xffff'ffff;
  /// Takes the oldest message of a kind from a peer, of generations up to `newest`.
  [[nodiscard]] std::optional<PeerMessage> take(MemberId peer, MessageKind kind,
                                                std::uint32_t newest = kAnyGeneration);
  /// Returns the memory of a taken message, to be reused for the next one from this peer.
  void recycle(MemberId peer, PeerMessage message);
  /// Whether an untaken report of this generation or a newer one has come from it: it takes part in
  /// no collective any more.
  [[nodiscard]] bool reported(MemberId peer, std::uint32_t generation) const;
  /// Forgets data and reports of generations before this one.
  void forget_before(std::uint32_t generation);

  /// Sends and receives what it can, waiting at most `patience` for the first event.
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
