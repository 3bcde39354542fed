#include "executor/managers/hold_token.hpp"

#include <openssl/crypto.h>

#include "node/steps/step_secret.hpp"

namespace orrery {

std::string hold_token(std::string_view key, const HoldKey& hold) {
  const std::string text = text_of(hold);
  return text + "." + named_secret(key, "hold " + text);
}

std::optional<HoldKey> hold_of_token(std::string_view key, std::string_view token) {
  const std::size_t dot = token.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::optional<HoldKey> hold = hold_key_of(token.substr(0, dot));
  if (!hold) return std::nullopt;
  const std::string made = hold_token(key, *hold);
  const bool same =
      made.size() == token.size() && CRYPTO_memcmp(made.data(), token.data(), made.size()) == 0;
  return same ? hold : std::nullopt;
}

}  // namespace orrery
