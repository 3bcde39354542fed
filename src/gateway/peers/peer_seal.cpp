#include "gateway/peers/peer_seal.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <array>

namespace orrery {
namespace {

using Tag = std::array<char, SHA256_DIGEST_LENGTH>;

Tag tag_of(std::string_view message, std::string_view key) {
  Tag tag{};
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(message.data()), message.size(),
       reinterpret_cast<unsigned char*>(tag.data()), nullptr);
  return tag;
}

}  // namespace

std::string sealed(std::string message, std::string_view key) {
  const Tag tag = tag_of(message, key);
  return message.append(tag.data(), tag.size());
}

std::string_view opened(std::string_view sealed, std::string_view key) {
  constexpr std::size_t kTag = std::tuple_size_v<Tag>;
  if (sealed.size() <= kTag) return {};
  const std::string_view message = sealed.substr(0, sealed.size() - kTag);
  const Tag tag = tag_of(message, key);
  return CRYPTO_memcmp(tag.data(), sealed.data() + message.size(), kTag) == 0 ? message
                                                                              : std::string_view();
}

}  // namespace orrery
