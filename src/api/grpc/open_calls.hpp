// api/grpc/open_calls.hpp - ends the calls of users whose token has expired or was revoked.
//
// One per server process, beside its token book, which outlives it as the calls do. Wraps the
// methods that read or last: others that change something end at once. On the controller's loop.
// Invariant: when a user is removed or a token expires, every call that it began ends with
// UNAUTHENTICATED, also one to which nothing is sent meanwhile.
// Cost of a call: an entry of a list; of a change of users or an expiry: O(open calls).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "api/access/token_book.hpp"
#include "api/grpc/method_table.hpp"
#include "base/env.hpp"

namespace orrery {

class OpenCalls {
 public:
  OpenCalls(const Env& env, TokenBook& tokens);
  ~OpenCalls();
  OpenCalls(const OpenCalls&) = delete;
  OpenCalls& operator=(const OpenCalls&) = delete;

  /// Returns the methods wrapped so that calls of those that read or last end with their token.
  [[nodiscard]] MethodTable watched(const MethodTable& methods);

 private:
  class OpenCall;
  void add(const std::shared_ptr<OpenCall>& call);
  /// Ends the calls whose token no longer works, drops those that are over.
  void look();
  void look_at_expiry();

  Env env_;
  TokenBook& tokens_;
  std::vector<std::weak_ptr<OpenCall>> calls_;
  std::size_t look_at_size_;  ///< size at which entries of ended calls are dropped
  std::optional<TimerId> timer_;
};

}  // namespace orrery
