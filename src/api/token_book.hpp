// api/token_book.hpp - who may do what: bearer tokens, of which only hashes are kept.
//
// Read once from a file that the controller's user alone can read; immutable, any thread may ask.
// A token is 256 random bits, so its SHA-256 needs no salt. Cost of a look: one hash.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "api/call.hpp"
#include "base/env.hpp"

namespace orrery {

class TokenBook {
 public:
  /// DIR/tokens: lines "NAME ROLE SHA256". Where there is no such file it is made with the token of
  /// an admin, which is written to DIR/token for the command line.
  /// Errors: the files; a line that is none, with its number.
  [[nodiscard]] static Result<TokenBook> open(const Env& env, const std::string& directory);

  /// A role kNobody: the token is not known.
  [[nodiscard]] Caller caller(std::string_view token) const;

 private:
  std::map<std::string, Caller, std::less<>> by_hash_;
};

/// Lower-case hexadecimal.
[[nodiscard]] std::string sha256_text(std::string_view bytes);

}  // namespace orrery
