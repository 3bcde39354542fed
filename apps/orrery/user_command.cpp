// orrery user
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "api/views.hpp"
#include "apps/orrery/command.hpp"
#include "apps/orrery/live_verb.hpp"
#include "apps/orrery/output.hpp"
#include "base/system/real_storage.hpp"
#include "base/text/quantity_text.hpp"
#include "base/text/utf8.hpp"
#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_session.hpp"
#include "verbs/cluster/live_text.hpp"

namespace orrery {
namespace {

struct UserAsked {
  std::string name;
  std::string role;
  std::string tenant;
  std::string run_as;
  std::string expires;     ///< "90d", "never"; empty: the controller's usual
  std::string overlap;     ///< "1h"; empty: none
  std::string token_file;  ///< empty: standard output
};

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

/// 0: the token does not expire; none: as the controller has it.
Result<std::optional<std::uint64_t>> lifetime_of(const UserAsked& asked) {
  if (asked.expires.empty()) return std::optional<std::uint64_t>();
  if (asked.expires == "never") return std::optional<std::uint64_t>(0);
  Result<std::uint64_t> seconds = seconds_of("--expires", asked.expires);
  if (!seconds) return forward_error(seconds);
  return std::optional(*seconds);
}

/// A token and what is to be known of it.
struct TokenShown {
  const UserAsked& asked;
  const google::protobuf::Message& answer;
  const std::string& token;
  std::string until;  ///< "; it expires on .."
};

/// The token alone goes to standard output; with --token-file, to the file alone.
Status show_token(const CommandOptions& options, const TokenShown& shown) {
  const UserAsked& asked = shown.asked;
  if (!asked.token_file.empty()) {
    RealStorage storage;
    if (StorageStatus put = storage.write_file(asked.token_file, shown.token + "\n"); !put) {
      // It may be the only token of an admin.
      print_text(shown.token + "\n");
      return environment_error(fmt::format("{}; the token of {} is on standard output instead",
                                           put.error().message, asked.name));
    }
    print_message(fmt::format("the token of {} was written to {}{}\n", asked.name, asked.token_file,
                              shown.until));
    return {};
  }
  if (options.output == OutputFormat::kJson) {
    print_answer(shown.answer);
  } else {
    print_message(fmt::format("token of {}, shown only this once{}:\n", asked.name, shown.until));
    print_text(shown.token + "\n");
  }
  return {};
}

template <class Answer>
std::string until_text(const Answer& answer) {
  if (!answer.has_expires()) return "; it does not expire";
  return "; it expires on " + instant_of(answer.expires()).text();
}

Status add_user(const CommandOptions& options, LiveSession& session, const UserAsked& asked) {
  v1::AddUserRequest request;
  request.set_name(asked.name);
  request.set_role(asked.role);
  request.set_tenant(asked.tenant);
  request.set_run_as(asked.run_as);
  auto lifetime = lifetime_of(asked);
  if (!lifetime) return forward_error(lifetime);
  if (*lifetime) request.set_lifetime_s(**lifetime);
  const auto added = session.client().call<v1::AddUserResponse>("AddUser", request);
  if (!added) return tl::unexpected(added.error());
  return show_token(options, {asked, *added, added->token(), until_text(*added)});
}

Status rotate_user(const CommandOptions& options, LiveSession& session, const UserAsked& asked) {
  v1::RotateUserRequest request;
  request.set_name(asked.name);
  auto lifetime = lifetime_of(asked);
  if (!lifetime) return forward_error(lifetime);
  if (*lifetime) request.set_lifetime_s(**lifetime);
  if (!asked.overlap.empty()) {
    Result<std::uint64_t> overlap = seconds_of("--overlap", asked.overlap);
    if (!overlap) return forward_error(overlap);
    request.set_overlap_s(*overlap);
  }
  const auto made = session.client().call<v1::RotateUserResponse>("RotateUser", request);
  if (!made) return tl::unexpected(made.error());
  return show_token(options, {asked, *made, made->token(),
                              until_text(*made) + "; the older token works until " +
                                  instant_of(made->old_until()).text()});
}

Status remove_user(const CommandOptions& options, LiveSession& session, const UserAsked& asked) {
  v1::RemoveUserRequest request;
  request.set_name(asked.name);
  const auto removed = session.client().call<v1::RemoveUserResponse>("RemoveUser", request);
  if (!removed) return tl::unexpected(removed.error());
  if (options.output == OutputFormat::kJson) {
    print_answer(*removed);
  } else {
    print_text(fmt::format("user {} was removed, and its open streams were closed\n", asked.name));
  }
  return {};
}

Status list_users(const CommandOptions& options, LiveSession& session, const UserAsked&) {
  const auto users =
      session.client().call<v1::ListUsersResponse>("ListUsers", v1::ListUsersRequest());
  if (!users) return tl::unexpected(users.error());
  if (options.output == OutputFormat::kJson) {
    print_answer(*users);
  } else {
    print_shown(LiveText::of(options).users(*users));
  }
  return {};
}

using UserVerb = Status (*)(const CommandOptions&, LiveSession&, const UserAsked&);

}  // namespace

void add_user_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<UserAsked>();
  CLI::App& user =
      *app.add_subcommand("user", "manage the users of a running cluster and their roles");
  user.footer(
      "Examples:\n"
      "  orrery user add ada --role user --tenant lab/vision --token-file ada.token\n"
      "  orrery user rotate ada --overlap 1h --token-file ada.token\n"
      "  orrery user list\n");
  user.require_subcommand(1);
  const auto verb = [&](const char* name, const char* what, UserVerb run) -> CLI::App& {
    CLI::App& added = *user.add_subcommand(name, what);
    run_live<UserAsked>(added, options, chosen, {asked, run});
    return added;
  };
  const auto named = [&](CLI::App& added) {
    added.add_option("name", asked->name, "name of the user")->type_name("NAME")->required();
  };
  const auto with_token = [&](CLI::App& added) {
    added
        .add_option("--expires", asked->expires,
                    "lifetime of the token, such as 90d, or never (default: 365 days)")
        ->type_name("TIME");
    added
        .add_option(
            "--token-file", asked->token_file,
            "write the token to this file, readable only by you, instead of standard output")
        ->type_name("FILE");
  };
  CLI::App& add = verb("add", "create a user and print its token, once", add_user);
  named(add);
  add.add_option("--role", asked->role, "role of the user: viewer, user, operator or admin")
      ->type_name("ROLE")
      ->required();
  add.add_option("--tenant", asked->tenant,
                 "limit the user to jobs of this tenant and of the tenants below it; for the roles "
                 "viewer and user")
      ->type_name("PATH");
  add.add_option("--run-as", asked->run_as, "POSIX user that this user's jobs run as")
      ->type_name("USER");
  with_token(add);
  CLI::App& rotate =
      verb("rotate", "create a new token for a user and print it, once", rotate_user);
  named(rotate);
  rotate
      .add_option("--overlap", asked->overlap,
                  "time for which the older token stays valid, such as 1h (default: none)")
      ->type_name("TIME");
  with_token(rotate);
  named(verb("remove", "remove a user and revoke all its tokens", remove_user));
  verb("list", "list all users", list_users);
}

}  // namespace orrery
