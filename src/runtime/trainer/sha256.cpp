#include "runtime/trainer/sha256.hpp"

#include <fmt/format.h>

#include "base/assert.hpp"

namespace orrery {

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  ORRERY_ASSERT(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1,
                "SHA-256 is always there");
}

void Sha256::add(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

Sha256::Value Sha256::value() {
  Value digest{};
  EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr);
  return digest;
}

std::string Sha256::text() {
  std::string text;
  for (const unsigned char byte : value()) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace orrery
