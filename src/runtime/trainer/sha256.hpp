// runtime/trainer/sha256.hpp - the SHA-256 of the bytes added, in order. Made where it is needed,
// used once, on one thread. Cost: OpenSSL's, about a second per gigabyte.
#pragma once

#include <openssl/evp.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace orrery {

class Sha256 {
 public:
  using Value = std::array<unsigned char, 32>;

  Sha256();
  void add(std::span<const std::byte> bytes);
  /// Returns the hash. To be called once, after all add().
  [[nodiscard]] Value value();
  /// Returns the hash in hexadecimal instead.
  [[nodiscard]] std::string text();

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

}  // namespace orrery
