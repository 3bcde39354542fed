// api/agents/join_book.hpp - one-time tokens by which agents get their first certificate, of which
// only hashes are kept: DIR/joins, lines "NODE EXPIRES SHA256" with seconds since 1970.
//
// Built by orreryd; on the controller's loop alone. Each change is durable when it returns, so a
// token that was used is used after any crash. Cost: one small file a change.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/env.hpp"

namespace orrery {

class JoinBook {
 public:
  /// Errors: the file; an invalid line, with its number.
  [[nodiscard]] static Result<JoinBook> open(const Env& env, const std::string& directory);

  /// Makes a token that admits an agent of `node` once, within an hour; earlier ones of the node
  /// end.
  [[nodiscard]] Result<std::string> make(const std::string& node);
  /// Returns the token's node. Errors: kInput: not known, used, or too old.
  [[nodiscard]] Result<std::string> node_of(std::string_view token) const;
  /// Invalidates the token. Errors: the file.
  [[nodiscard]] Status use(std::string_view token);

 private:
  struct Join {
    std::string node;
    Instant expires;
  };
  using Joins = std::map<std::string, Join, std::less<>>;  ///< by hash

  JoinBook(const Env& env, std::string path) : env_(env), path_(std::move(path)) {}
  [[nodiscard]] Status keep(Joins joins);

  Env env_;
  std::string path_;
  Joins joins_;
};

}  // namespace orrery
