// api/token_book.hpp - who may do what: bearer tokens, of which only hashes are kept.
//
// Built by orreryd; DIR/tokens, a file that its user alone can read, is read once and written anew
// with each change: lines "NAME ROLE SHA256 [TENANT] [KEY=VALUE]...", with the keys that
// docs/cluster.md names. Any thread may ask who calls; users are changed on the controller's loop.
// A token is 256 random bits, so its SHA-256 needs no salt.
// Invariant: there is an admin, and no two users have one name. Cost of a look: one hash.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "api/call.hpp"
#include "base/env.hpp"

namespace orrery {

class TokenBook {
 public:
  /// Where there is no DIR/tokens it is made with the token of an admin, which is written to
  /// DIR/token for the command line. Errors: the files; a line that is none, with its number.
  [[nodiscard]] static Result<std::unique_ptr<TokenBook>> open(const Env& env,
                                                               const std::string& directory);
  TokenBook(const Env& env, std::string path) : env_(env), path_(std::move(path)) {}

  /// A role kNobody: the token is not known.
  [[nodiscard]] Caller caller(std::string_view token) const;

  /// The token of a new user. Errors (kInput): a name that is taken, or a name, tenant, POSIX user
  /// or role that is not well formed.
  [[nodiscard]] Result<std::string> add(const Caller& user);
  /// Errors: kInput: there is none, with the name that is near; kInfeasible: the last admin.
  [[nodiscard]] Status remove(const std::string& name);
  /// By name.
  [[nodiscard]] std::vector<Caller> all() const;

 private:
  using Users = std::map<std::string, Caller, std::less<>>;  ///< by hash
  [[nodiscard]] Status read(const std::string& text);
  [[nodiscard]] Status read_line(const std::string& line, int number);
  [[nodiscard]] Status keep(Users users);
  [[nodiscard]] Users users() const;

  Env env_;
  std::string path_;
  mutable std::mutex mutex_;
  Users users_;  ///< guarded
};

/// Lower-case hexadecimal.
[[nodiscard]] std::string sha256_text(std::string_view bytes);
/// 256 random bits, likewise.
[[nodiscard]] std::string new_token(Entropy& entropy);

/// "viewer" and so on. kNobody: it is none.
[[nodiscard]] Role role_named(std::string_view word);
[[nodiscard]] std::string_view role_word(Role role);

}  // namespace orrery
