// verbs/users/user_answer.hpp - users of a running cluster and their tokens.
//
// Functions of one call of a verb. Errors are those of the controller, where nothing else is said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_answer.hpp"

namespace orrery {

/// A user as typed; each verb takes what it needs.
struct UserOptions {
  std::string name;
  std::string role;
  std::string tenant;
  std::string run_as;
  std::string expires;  ///< "90d", "never"; empty: the controller's usual
  std::string overlap;  ///< "1h"; empty: none
};

/// Returns the lifetime of a token in whole seconds; 0: it does not expire; none: as the controller
/// has it. Error (kInput): no time of 1 s or more with its unit.
[[nodiscard]] Result<std::optional<std::uint64_t>> token_lifetime(const std::string& expires);

/// Errors (kInput): a time that is none.
[[nodiscard]] Result<v1::AddUserRequest> add_user_request(const UserOptions& user);
[[nodiscard]] Result<v1::RotateUserRequest> rotate_user_request(const UserOptions& user);

/// A new token, which is told only once.
struct NewToken {
  std::string token;
  std::string until;  ///< "; it expires on ...", for people
  std::shared_ptr<const google::protobuf::Message> message;
};
[[nodiscard]] NewToken new_token(const v1::AddUserResponse& made);
/// Says also until when the older token works.
[[nodiscard]] NewToken new_token(const v1::RotateUserResponse& made);

/// Returns the answer with the token alone as its text.
[[nodiscard]] LiveAnswer token_answer(const std::string& user, const NewToken& made);
/// Returns the message for a token that was written to a file.
[[nodiscard]] std::string token_file_text(const std::string& user, const std::string& file,
                                          const NewToken& made);

[[nodiscard]] Result<NewToken> add_user(const LiveCall& call, const UserOptions& user);
[[nodiscard]] Result<NewToken> rotate_user(const LiveCall& call, const UserOptions& user);
[[nodiscard]] Result<LiveAnswer> remove_user(const LiveCall& call, const std::string& name);
[[nodiscard]] Result<LiveAnswer> answer_users(const LiveCall& call);

}  // namespace orrery
