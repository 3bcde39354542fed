// serving/peers/peer_loads.hpp - what the other gateways of a cluster have charged to the replicas,
// as their newest messages tell.
//
// A gateway owns one and gives it each message; the sums go to its router. Pure: time is a value.
// Invariants:
//   1. Of each gateway the newest message counts, whatever order they arrive in.
//   2. A gateway that was silent for kPeerSilent has charged nothing; its older messages stay old.
//   3. Of two gateways of one name, the one that is heard counts until it is silent.
// Cost: O(log gateways) a message, O(n log n) in all charges the sums.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "serving/routing/router_state.hpp"

namespace orrery {

/// How often a gateway tells the others of charges that have changed, and of those that have not.
inline constexpr Duration kPeerTell = Duration::milliseconds(50);
inline constexpr Duration kPeerRepeat = Duration::milliseconds(250);
inline constexpr Duration kPeerSilent = Duration::seconds(1);

/// All that a gateway has charged, whole, so that a message that is lost costs nothing.
struct GatewayCharges {
  std::string gateway;
  std::uint64_t process = 0;  ///< a number of its process: two gateways of one name differ in it
  /// Microseconds of the time of day when it was made; each message of a gateway has more than the
  /// one before.
  std::uint64_t sent_us = 0;
  std::vector<ReplicaCharges> charges;
};

/// Adds the charges of several gateways up: one a replica, by replica. O(n log n).
[[nodiscard]] std::vector<ReplicaCharges> summed(std::vector<ReplicaCharges> charges);

enum class PeerVerdict : std::uint8_t {
  kTaken,
  kOld,     ///< a newer one of the gateway has come
  kSecond,  ///< another gateway of its name is heard
};

class PeerLoads {
 public:
  PeerVerdict take(GatewayCharges message, Instant now);
  /// Forgets the charges of gateways that are silent; whether there were any.
  bool forget_silent(Instant now);
  /// Forgets gateways that `is_peer(name)` does not name.
  template <class IsPeer>
  void keep(IsPeer&& is_peer) {
    std::erase_if(heard_, [&](const auto& each) { return !is_peer(each.first); });
  }

  /// Gateways that are heard.
  [[nodiscard]] std::uint32_t gateways() const;
  /// The charges of all gateways that are heard, one a replica, by replica.
  [[nodiscard]] std::vector<ReplicaCharges> sums() const;

 private:
  struct Heard {
    GatewayCharges newest;
    Instant at;
    enum class State : std::uint8_t { kSilent, kHeard } state = State::kSilent;
  };

  std::map<std::string, Heard, std::less<>> heard_;
};

}  // namespace orrery
