#include "gateway/access_keys.hpp"

#include <openssl/sha.h>

#include <array>

#include "http/web_headers.hpp"

namespace orrery {

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * digest.size());
  for (const unsigned char byte : digest) {
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

bool may_call(const RoutedKey& key, std::string_view service_tenant) {
  if (key.tenant.empty()) return true;
  if (!service_tenant.starts_with(key.tenant)) return false;
  return service_tenant.size() == key.tenant.size() || service_tenant[key.tenant.size()] == '/';
}

AccessKeys::AccessKeys(const std::vector<RoutedKey>& keys) {
  for (const RoutedKey& key : keys) by_digest_.emplace(key.sha256, key);
}

const RoutedKey* AccessKeys::find(std::string_view authorization) const {
  constexpr std::string_view kScheme = "Bearer ";
  if (authorization.size() <= kScheme.size()) return nullptr;
  if (!same_token(authorization.substr(0, kScheme.size()), kScheme)) return nullptr;
  const auto found = by_digest_.find(sha256_hex(authorization.substr(kScheme.size())));
  return found == by_digest_.end() ? nullptr : &found->second;
}

}  // namespace orrery
