// serving/peers/peer_message.hpp - a gateway's charges as the bytes of one datagram.
//
// Pure functions. Little endian: "orl1", the length of the name in a byte and the name, process,
// sent_us, the number of replicas in two bytes, and of each: job, attempt, requests, tokens, tokens
// of prompts, microseconds until these are computed. Times of another machine mean nothing here, so
// what travels is a length. Reading any bytes ends in a message or in nothing. A message says
// nothing of who made it: gateway/peers/peer_seal.hpp does.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "serving/peers/peer_loads.hpp"

namespace orrery {

inline constexpr std::size_t kPeerNameMax = 255;
/// Replicas in a message, which keeps it within a datagram; a gateway that has charged more tells
/// of those with the most requests.
inline constexpr std::size_t kPeerReplicasMax = 1000;

/// Precondition: the name has 1 to kPeerNameMax bytes.
[[nodiscard]] std::string write_peer_message(const GatewayCharges& message, Instant now);

/// Reads what write_peer_message() writes. None: the bytes are no such message, name a replica
/// twice, or tell of more work than a replica can have.
[[nodiscard]] std::optional<GatewayCharges> read_peer_message(std::string_view bytes, Instant now);

}  // namespace orrery
