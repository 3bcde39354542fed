// orrery user
#include <fmt/format.h>

#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/live_session.hpp"
#include "apps/orrery/live_text.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {
namespace {

struct UserAsked {
  std::string name;
  std::string role;
  std::string tenant;
  std::string run_as;
};

Status add_user(const CommandOptions& options, LiveSession& session, const UserAsked& asked) {
  v1::AddUserRequest request;
  request.set_name(asked.name);
  request.set_role(asked.role);
  request.set_tenant(asked.tenant);
  request.set_run_as(asked.run_as);
  const auto added = session.client().call<v1::AddUserResponse>("AddUser", request);
  if (!added) return tl::unexpected(added.error());
  if (options.output == OutputFormat::kJson) {
    print_answer(*added);
  } else {
    // The token alone goes to standard output, for a file.
    print_message(fmt::format("the token of {}, shown this once:\n", asked.name));
    print_text(added->token() + "\n");
  }
  return {};
}

Status remove_user(const CommandOptions& options, LiveSession& session, const UserAsked& asked) {
  v1::RemoveUserRequest request;
  request.set_name(asked.name);
  const auto removed = session.client().call<v1::RemoveUserResponse>("RemoveUser", request);
  if (!removed) return tl::unexpected(removed.error());
  if (options.output == OutputFormat::kJson) {
    print_answer(*removed);
  } else {
    print_text(fmt::format("{} may do nothing any more\n", asked.name));
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
    print_text(LiveText::of(options).users(*users));
  }
  return {};
}

using UserVerb = Status (*)(const CommandOptions&, LiveSession&, const UserAsked&);

}  // namespace

void add_user_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<UserAsked>();
  CLI::App& user = *app.add_subcommand("user", "who may do what with a running cluster");
  user.footer(
      "Examples:\n"
      "  orrery user add ada --role user --tenant lab/vision > ada.token\n"
      "  orrery user list\n");
  user.require_subcommand(1);
  const auto verb = [&](const char* name, const char* what, UserVerb run) -> CLI::App& {
    CLI::App& added = *user.add_subcommand(name, what);
    added.callback([&options, &chosen, asked, run] {
      chosen = [&options, asked, run]() -> Status {
        Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
        if (!session) return forward_error(session);
        return run(options, **session, *asked);
      };
    });
    return added;
  };
  CLI::App& add = verb("add", "let somebody in; prints the token, once", add_user);
  add.add_option("name", asked->name, "of the user")->type_name("NAME")->required();
  add.add_option("--role", asked->role, "viewer, user, operator or admin")
      ->type_name("ROLE")
      ->required();
  add.add_option("--tenant", asked->tenant, "submits and cancels in this one alone")
      ->type_name("PATH");
  add.add_option("--run-as", asked->run_as, "POSIX user that this user's jobs run as")
      ->type_name("USER");
  CLI::App& remove = verb("remove", "end a user's token", remove_user);
  remove.add_option("name", asked->name, "of the user")->type_name("NAME")->required();
  verb("list", "all users", list_users);
}

}  // namespace orrery
