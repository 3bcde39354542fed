#include "node/steps/step_secret.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

#include "base/assert.hpp"

namespace orrery {
namespace {

std::string hmac_sha256(std::string_view key, std::string_view message) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const unsigned char* made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                   reinterpret_cast<const unsigned char*>(message.data()),
                                   message.size(), digest.data(), &size);
  ORRERY_ASSERT(made != nullptr, "SHA-256 is always there");
  return {reinterpret_cast<const char*>(digest.data()), size};
}

}  // namespace

std::string named_secret(std::string_view key, std::string_view name) {
  std::string digits;
  for (const char byte : hmac_sha256(key, name)) {
    digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return digits;
}

std::string step_secret(std::string_view key, const AttemptId& attempt) {
  return named_secret(key, fmt::format("steps of {}.{}", attempt.job.value(), attempt.attempt));
}

std::string step_challenge(Entropy& entropy) {
  std::string digits;
  for (int i = 0; i < 4; ++i) digits += fmt::format("{:016x}", entropy.draw());
  return digits;
}

std::string step_proof(std::string_view secret, const StepQuestion& question) {
  const std::string_view end = question.answers == StepEnd::kNode ? "node" : "caller of node";
  return hmac_sha256(secret, fmt::format("{} {}: {}", end, question.node, question.challenge));
}

bool is_same_proof(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace orrery
