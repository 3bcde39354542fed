// orrery user
#include <fmt/format.h>

#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/live_verb.hpp"
#include "apps/orrery/output.hpp"
#include "base/system/real_storage.hpp"
#include "verbs/users/user_answer.hpp"

namespace orrery {
namespace {

struct UserVerbOptions {
  UserOptions user;
  std::string token_file;  ///< empty: standard output
};

/// The token alone goes to standard output; with --token-file, to the file alone.
Status show_token(const CommandOptions& options, const UserVerbOptions& asked,
                  const Result<NewToken>& made) {
  if (!made) return tl::unexpected(made.error());
  const std::string& name = asked.user.name;
  if (asked.token_file.empty()) return print_live(options, token_answer(name, *made));
  RealStorage storage;
  if (StorageStatus put = storage.write_file(asked.token_file, made->token + "\n"); !put) {
    // It may be the only token of an admin.
    print_text(made->token + "\n");
    return environment_error(fmt::format("{}; the token of {} is on standard output instead",
                                         put.error().message, name));
  }
  print_message(token_file_text(name, asked.token_file, *made));
  return {};
}

Status show_added(const CommandOptions& options, LiveSession& session,
                  const UserVerbOptions& asked) {
  return show_token(options, asked, add_user(live_call(options, session), asked.user));
}

Status show_rotated(const CommandOptions& options, LiveSession& session,
                    const UserVerbOptions& asked) {
  return show_token(options, asked, rotate_user(live_call(options, session), asked.user));
}

Result<LiveAnswer> ask_to_remove(const LiveCall& call, const UserVerbOptions& asked) {
  return remove_user(call, asked.user.name);
}

Result<LiveAnswer> ask_users(const LiveCall& call, const UserVerbOptions&) {
  return answer_users(call);
}

}  // namespace

void add_user_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<UserVerbOptions>();
  CLI::App& user =
      *app.add_subcommand("user", "manage the users of a running cluster and their roles");
  user.footer(
      "Examples:\n"
      "  orrery user add ada --role user --tenant lab/vision --token-file ada.token\n"
      "  orrery user rotate ada --overlap 1h --token-file ada.token\n"
      "  orrery user list\n");
  user.require_subcommand(1);
  const auto change = [&](CLI::App& added, LiveVerb<UserVerbOptions> verb) {
    run_live<UserVerbOptions>(added, options, chosen, {asked, verb});
  };
  const auto ask = [&](CLI::App& added, LiveQuestion<UserVerbOptions> question) {
    ask_live<UserVerbOptions>(added, options, chosen, {asked, question});
  };
  const auto named = [&](CLI::App& added) {
    added.add_option("name", asked->user.name, "name of the user")->type_name("NAME")->required();
  };
  const auto with_token = [&](CLI::App& added) {
    added
        .add_option("--expires", asked->user.expires,
                    "lifetime of the token, such as 90d, or never (default: 365 days)")
        ->type_name("TIME");
    added
        .add_option(
            "--token-file", asked->token_file,
            "write the token to this file, readable only by you, instead of standard output")
        ->type_name("FILE");
  };
  CLI::App& add = *user.add_subcommand("add", "create a user and print its token, once");
  change(add, show_added);
  named(add);
  add.add_option("--role", asked->user.role,
                 "role of the user: client, viewer, user, operator or admin; a client may "
                 "only call services")
      ->type_name("ROLE")
      ->required();
  add.add_option("--tenant", asked->user.tenant,
                 "limit the user to jobs of this tenant and of the tenants below it; for the roles "
                 "client, viewer and user")
      ->type_name("PATH");
  add.add_option("--run-as", asked->user.run_as, "POSIX user that this user's jobs run as")
      ->type_name("USER");
  with_token(add);
  CLI::App& rotate =
      *user.add_subcommand("rotate", "create a new token for a user and print it, once");
  change(rotate, show_rotated);
  named(rotate);
  rotate
      .add_option("--overlap", asked->user.overlap,
                  "time for which the older token stays valid, such as 1h (default: none)")
      ->type_name("TIME");
  with_token(rotate);
  CLI::App& remove = *user.add_subcommand("remove", "remove a user and revoke all its tokens");
  ask(remove, ask_to_remove);
  named(remove);
  ask(*user.add_subcommand("list", "list all users"), ask_users);
}

}  // namespace orrery
