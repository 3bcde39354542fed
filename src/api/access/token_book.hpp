// api/access/token_book.hpp - the rights of users: bearer tokens, of which only hashes are kept.
//
// Built by orreryd; DIR/tokens, a file that its user alone can read, is read once and written anew
// with each change: lines "NAME ROLE SHA256 [TENANT] [KEY=VALUE]...", with the keys that
// docs/cluster.md names. Any thread may look callers up; users are changed on the controller's
// loop.
// A token is 256 random bits, so its SHA-256 needs no salt.
// Invariant: there is an admin whose token has not expired; no two users have one name; operators
// and admins have no tenant. Cost of a look: one hash.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/grpc/call.hpp"
#include "base/env.hpp"

namespace orrery {

/// A token of a user, without its bits. A user has one current token and, for a while after a
/// rotation, those that it replaced.
struct UserToken {
  Caller user;
  Instant expires = Instant::max();                ///< it is refused from then on; max: never
  std::optional<Instant> replaced = std::nullopt;  ///< when a newer one took its place
};

/// A request for a new token in the place of a user's present ones.
struct TokenRotation {
  std::string name;
  Duration overlap;  ///< in which the present ones stay valid
  Instant expires = Instant::max();
};

class TokenBook {
 public:
  /// Opens the book. Where there is no DIR/tokens it is made with the token of an admin, which is
  /// written to DIR/token for the command line and does not expire. Errors: the files; an invalid
  /// line, with its number.
  [[nodiscard]] static Result<std::unique_ptr<TokenBook>> open(const Env& env,
                                                               const std::string& directory);
  TokenBook(const Env& env, std::string path) : env_(env), path_(std::move(path)) {}

  /// Returns the user of a token. Error (kUnauthenticated): the token is not known, or has expired.
  [[nodiscard]] tl::expected<Caller, CallStatus> caller(std::string_view token) const;
  /// Returns the user of a token hash, as in Caller::credential. Error: as for caller().
  [[nodiscard]] tl::expected<Caller, CallStatus> holder(const std::string& credential) const;
  /// Returns when the next valid token expires; max: none does.
  [[nodiscard]] Instant next_expiry() const;

  /// Adds a user and returns its token. Errors (kInput): a name that is taken; a name, tenant,
  /// POSIX user or role that is not well formed; a tenant for a role that has none.
  [[nodiscard]] Result<std::string> add(const Caller& user, Instant expires = Instant::max());
  /// Returns the new token. Errors (kInput): there is no such user, with the nearest name.
  [[nodiscard]] Result<std::string> rotate(const TokenRotation& rotation);
  /// Ends all tokens of a user. Errors: kInput: there is no such user, with the nearest name;
  /// kInfeasible: it is the last admin.
  [[nodiscard]] Status remove(const std::string& name);
  /// Returns tokens by user name; the current token of each user first.
  [[nodiscard]] std::vector<UserToken> all() const;
  /// Called after each change, on the controller's loop.
  void on_change(std::function<void()> changed) { changed_ = std::move(changed); }

 private:
  using Tokens = std::map<std::string, UserToken, std::less<>>;  ///< by hash
  [[nodiscard]] Status read(const std::string& text);
  [[nodiscard]] Status read_line(const std::string& line, const SourcePosition& where);
  [[nodiscard]] Status keep(Tokens tokens);
  [[nodiscard]] Tokens tokens() const;
  [[nodiscard]] tl::expected<Caller, CallStatus> find(std::string_view hash) const;
  /// Whether an admin with a valid token is left.
  [[nodiscard]] bool has_admin(const Tokens& tokens) const;

  Env env_;
  std::string path_;
  std::function<void()> changed_;
  mutable std::mutex mutex_;
  Tokens tokens_;  ///< guarded
};

/// Returns the SHA-256 in lower-case hexadecimal.
[[nodiscard]] std::string sha256_text(std::string_view bytes);
/// Returns 256 random bits, in lower-case hexadecimal.
[[nodiscard]] std::string new_token(Entropy& entropy);

/// Returns the role of a word such as "viewer". kNobody: there is no such role.
[[nodiscard]] Role role_named(std::string_view word);
[[nodiscard]] std::string_view role_word(Role role);

}  // namespace orrery
