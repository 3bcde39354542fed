// gateway/access_keys.hpp - which key a client shows, and which services it may call.
//
// Made of each route table. Keys are known by their SHA-256 alone. Plain value; cost: one SHA-256
// and one search of a hash table a request.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "serving/routing/route_table.hpp"

namespace orrery {

/// In lower-case hexadecimal.
[[nodiscard]] std::string sha256_hex(std::string_view text);

/// Whether a key may call a service: its tenant is the service's, or one above it, or empty.
[[nodiscard]] bool may_call(const RoutedKey& key, std::string_view service_tenant);

class AccessKeys {
 public:
  AccessKeys() = default;
  explicit AccessKeys(const std::vector<RoutedKey>& keys);

  /// The key of an Authorization header, "Bearer KEY"; null: none that is known.
  [[nodiscard]] const RoutedKey* find(std::string_view authorization) const;

 private:
  std::unordered_map<std::string, RoutedKey> by_digest_;
};

}  // namespace orrery
