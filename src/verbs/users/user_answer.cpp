#include "verbs/users/user_answer.hpp"

#include <fmt/format.h>

#include <utility>

#include "api/views.hpp"
#include "base/text/quantity_text.hpp"
#include "base/text/terminal_text.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

/// "90d" in whole seconds.
Result<std::uint64_t> seconds_of(const std::string& option, const std::string& text) {
  const Result<Seconds> span = parse<Seconds>(text);
  const bool unit = text.find_first_not_of("0123456789.") != std::string::npos;
  if (!span || !unit || !(span->value() >= 1)) {
    return input_error({},
                       fmt::format("{} \"{}\": expected a time with its unit, 1 s or more, such "
                                   "as 12h or 90d",
                                   option, printable(text, 60)));
  }
  return static_cast<std::uint64_t>(span->value());
}

template <class Answer>
std::string until_text(const Answer& answer) {
  if (!answer.has_expires()) return "; it does not expire";
  return "; it expires on " + instant_of(answer.expires()).text();
}

std::string shown(const std::string& text) { return terminal_text(text, Newlines::kKept); }

}  // namespace

Result<std::optional<std::uint64_t>> token_lifetime(const std::string& expires) {
  if (expires.empty()) return std::optional<std::uint64_t>();
  if (expires == "never") return std::optional<std::uint64_t>(0);
  Result<std::uint64_t> seconds = seconds_of("--expires", expires);
  if (!seconds) return forward_error(seconds);
  return std::optional(*seconds);
}

Result<v1::AddUserRequest> add_user_request(const UserOptions& user) {
  v1::AddUserRequest request;
  request.set_name(user.name);
  request.set_role(user.role);
  request.set_tenant(user.tenant);
  request.set_run_as(user.run_as);
  auto lifetime = token_lifetime(user.expires);
  if (!lifetime) return forward_error(lifetime);
  if (*lifetime) request.set_lifetime_s(**lifetime);
  return request;
}

Result<v1::RotateUserRequest> rotate_user_request(const UserOptions& user) {
  v1::RotateUserRequest request;
  request.set_name(user.name);
  auto lifetime = token_lifetime(user.expires);
  if (!lifetime) return forward_error(lifetime);
  if (*lifetime) request.set_lifetime_s(**lifetime);
  if (user.overlap.empty()) return request;
  Result<std::uint64_t> overlap = seconds_of("--overlap", user.overlap);
  if (!overlap) return forward_error(overlap);
  request.set_overlap_s(*overlap);
  return request;
}

NewToken new_token(const v1::AddUserResponse& made) {
  return {made.token(), until_text(made), std::make_shared<const v1::AddUserResponse>(made)};
}

NewToken new_token(const v1::RotateUserResponse& made) {
  return {made.token(),
          until_text(made) + "; the older token works until " + instant_of(made.old_until()).text(),
          std::make_shared<const v1::RotateUserResponse>(made)};
}

LiveAnswer token_answer(const std::string& user, const NewToken& made) {
  return {.text = shown(made.token + "\n"),
          .before = shown(fmt::format("token of {}, shown only this once{}:\n", user, made.until)),
          .after = {},
          .message = made.message};
}

std::string token_file_text(const std::string& user, const std::string& file,
                            const NewToken& made) {
  return shown(fmt::format("the token of {} was written to {}{}\n", user, file, made.until));
}

Result<NewToken> add_user(const LiveCall& call, const UserOptions& user) {
  const Result<v1::AddUserRequest> request = add_user_request(user);
  if (!request) return tl::unexpected(request.error());
  const auto made = call.session.client().call<v1::AddUserResponse>("AddUser", *request);
  if (!made) return tl::unexpected(made.error());
  return new_token(*made);
}

Result<NewToken> rotate_user(const LiveCall& call, const UserOptions& user) {
  const Result<v1::RotateUserRequest> request = rotate_user_request(user);
  if (!request) return tl::unexpected(request.error());
  const auto made = call.session.client().call<v1::RotateUserResponse>("RotateUser", *request);
  if (!made) return tl::unexpected(made.error());
  return new_token(*made);
}

Result<LiveAnswer> remove_user(const LiveCall& call, const std::string& name) {
  v1::RemoveUserRequest request;
  request.set_name(name);
  auto removed = call.session.client().call<v1::RemoveUserResponse>("RemoveUser", request);
  if (!removed) return forward_error(removed);
  return live_answer(
      *std::move(removed),
      shown(fmt::format("user {} was removed, and its open streams were closed\n", name)));
}

Result<LiveAnswer> answer_users(const LiveCall& call) {
  auto users =
      call.session.client().call<v1::ListUsersResponse>("ListUsers", v1::ListUsersRequest());
  if (!users) return forward_error(users);
  std::string text = call.text.users(*users);
  return live_answer(*std::move(users), std::move(text));
}

}  // namespace orrery
