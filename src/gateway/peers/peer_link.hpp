// gateway/peers/peer_link.hpp - tells the other gateways of a cluster what this one has charged to
// the replicas, and its router what they have charged.
//
// The gateway owns one; its core and the loop outlive it. On the loop's thread. Datagrams go
// straight from gateway to gateway, whole and sealed with the key of the table
// (serving/peers/peer_message.hpp, gateway/peers/peer_seal.hpp). No request waits for one: without
// them a gateway routes by its own charges alone.
// Invariant: only what a gateway of the newest table has sealed, within kPeerClocks of this
// machine's time of day, reaches the router.
// Cost: 20 looks a second; a datagram to each gateway where charges have changed, else four a
// second.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/gateway_core.hpp"
#include "gateway/peers/datagram_socket.hpp"
#include "serving/peers/peer_loads.hpp"

namespace orrery {

/// Why a datagram was not taken.
enum class PeerRefusal : std::uint8_t {
  kSeal,     ///< it is not sealed with the key of the table
  kUnknown,  ///< it is no message, or of a gateway that the table does not name
  kOld,      ///< a newer one has come
  kClock,    ///< it was sent at another time of day: the clocks differ, or it is sent again
  kSecond,   ///< two gateways have one name
};

inline constexpr std::size_t kPeerRefusals = 5;
[[nodiscard]] std::string_view name_of(PeerRefusal refusal);

struct PeerFigures {
  std::uint32_t gateways = 0;  ///< others that are heard
  std::uint64_t sent = 0;      ///< datagrams
  std::uint64_t taken = 0;
  std::array<std::uint64_t, kPeerRefusals> refused{};
};

/// Messages from a machine whose time of day differs by more are refused.
inline constexpr Duration kPeerClocks = Duration::seconds(10);

class PeerLink {
 public:
  /// Takes datagrams at "HOST:PORT". Errors: it is malformed or taken, or the gateway's name is
  /// empty or too long for a message.
  [[nodiscard]] static Result<std::unique_ptr<PeerLink>> open(GatewayCore& core,
                                                              const std::string& address);
  /// Only open() makes one, which gives it its socket.
  explicit PeerLink(GatewayCore& core);
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;
  ~PeerLink();

  /// "HOST:PORT" with the port chosen.
  [[nodiscard]] std::string address() const { return socket_->address(); }
  /// A number that no other process has.
  [[nodiscard]] std::uint64_t process() const { return process_; }
  /// Tells the gateways of a table, and hears those alone. Gateways that it lacks have charged
  /// nothing.
  void set_table(const RouteTable& table);
  [[nodiscard]] PeerFigures figures() const;

 private:
  void look();
  void tell();
  void take(std::string_view datagram);
  void refuse(PeerRefusal refusal, const std::string& gateway);
  void show_router();

  struct Told {
    Instant at;
    std::uint64_t changes = 0;  ///< RouterState::changes()
    std::uint64_t sent_us = 0;
  };

  GatewayCore& core_;
  std::unique_ptr<DatagramSocket> socket_;
  std::uint64_t process_;
  std::string key_;
  std::map<std::string, SocketAddress, std::less<>> peers_;  ///< by name
  PeerLoads loads_;
  PeerFigures figures_;
  Told told_;
  TimerId timer_;
};

}  // namespace orrery
