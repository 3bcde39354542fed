// gateway/peers/peer_seal.hpp - proves that a message comes from a gateway of the cluster: the key
// that they share, and the tag by it at a message's end.
//
// HMAC-SHA-256 (RFC 2104). Pure functions. Cost: O(size).
#pragma once

#include <string>
#include <string_view>

namespace orrery {

/// Returns the message with the tag behind it.
[[nodiscard]] std::string sealed(std::string message, std::string_view key);

/// Returns the message before a tag; nothing where the tag is not its own by this key. Compares in
/// a time that depends on the length alone.
[[nodiscard]] std::string_view opened(std::string_view sealed, std::string_view key);

}  // namespace orrery
