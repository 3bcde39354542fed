#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "api/grpc/grpc_library.hpp"
#include "apps/option_hooks.hpp"
#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "apps/orrery/verb_hint.hpp"

namespace orrery {

namespace {
constexpr int kExitFailed = 1;
constexpr int kExitWrongInput = 2;

int exit_code(const Status& status) {
  if (status) return 0;
  print_message(fmt::format("orrery: {}\n", status.error().text()));
  return status.error().kind == ErrorKind::kInput ? kExitWrongInput : kExitFailed;
}

void add_options(CLI::App& app, CommandOptions& options) {
  app.add_option("--catalog", options.catalog_directory,
                 "directory whose *.yaml files overlay the built-in catalog")
      ->type_name("DIR")
      ->check([](const std::string& directory) {
        return directory.empty() ? std::string("expected the name of a directory") : std::string();
      });
  app.add_option_function<std::string>(
         "-o,--output",
         [&options](const std::string& format) {
           options.output = format == "json" ? OutputFormat::kJson : OutputFormat::kText;
         },
         "output format, text or json (default: text)")
      ->type_name("text|json")
      ->check([](const std::string& format) {
        const bool known = format == "text" || format == "json";
        return known ? std::string() : fmt::format("\"{}\" is neither text nor json", format);
      });
}

void add_cluster_options(CLI::App& app, CommandOptions& options) {
  app.add_option("--dir", options.cluster_directory,
                 "directory of the cluster (default: ORRERY_DIR, else ./.orrery, else ~/.orrery)")
      ->type_name("DIR")
      ->envname("ORRERY_DIR");
  app.add_option("--retry", options.retry_s, "seconds to keep trying to reach the controller")
      ->type_name("S")
      ->check(CLI::Range(0.0, 86'400.0))
      ->capture_default_str();
}

/// What the environment says of the user and the terminal.
void read_environment(CommandOptions& options) {
  if (const char* home = std::getenv("HOME"); home != nullptr) options.home = home;
  if (const char* kind = std::getenv("TERM"); kind != nullptr) options.terminal_type = kind;
  const char* plain = std::getenv("NO_COLOR");
  const bool wanted = plain == nullptr || *plain == '\0';
  if (wanted && ::isatty(STDOUT_FILENO) == 1) options.colour = Colour::kOn;
  options.message = print_message;
}

/// Leaves in `arguments` what stands before "--"; the rest is a command of the user's own.
void take_command(std::vector<std::string>& arguments, CommandOptions& options) {
  const auto mark = std::find(arguments.begin(), arguments.end(), "--");
  if (mark == arguments.end()) return;
  options.command.emplace(mark + 1, arguments.end());
  arguments.erase(mark, arguments.end());
}

bool takes_command(const CLI::App& app) {
  constexpr std::array<const char*, 4> kVerbs{"submit", "serve", "exec", "shell"};
  return std::ranges::any_of(kVerbs, [&](const char* verb) { return app.got_subcommand(verb); });
}

void add_verbs(CLI::App& app, CommandOptions& options, Verb& chosen) {
  add_catalog_commands(app, options, chosen);
  add_fleet_commands(app, options, chosen);
  add_estimate_commands(app, options, chosen);
  add_plan_commands(app, options, chosen);
  add_compare_commands(app, options, chosen);
  add_schedule_commands(app, options, chosen);
  add_simulate_commands(app, options, chosen);
  add_study_commands(app, options, chosen);
  add_design_commands(app, options, chosen);
  add_replay_commands(app, options, chosen);
  add_store_commands(app, options, chosen);
  add_what_if_commands(app, options, chosen);
  add_local_cluster_commands(app, options, chosen);
  add_submit_commands(app, options, chosen);
  add_service_commands(app, options, chosen);
  add_exec_commands(app, options, chosen);
  add_job_commands(app, options, chosen);
  add_job_change_commands(app, options, chosen);
  add_log_commands(app, options, chosen);
  add_node_commands(app, options, chosen);
  add_hold_command(app, options, chosen);
  add_power_commands(app, options, chosen);
  add_tenant_commands(app, options, chosen);
  add_user_commands(app, options, chosen);
  add_top_commands(app, options, chosen);
  add_doctor_commands(app, options, chosen);
  add_calibrate_node_commands(app, options, chosen);
  add_predict_commands(app, options, chosen);
  add_report_commands(app, options, chosen);
  add_completion_commands(app, options, chosen);
}

// A full disk or a closed pipe must not look like success.
int checked_output(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  print_message("orrery: writing to standard output failed\n");
  return kExitFailed;
}

/// Makes `orrery help VERB` what it is elsewhere: `orrery VERB --help`.
void take_help(std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() != "help") return;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
}

int run(int argc, char** argv) {
  // What fails is told where it fails.
  const bool verbose = std::getenv("GRPC_VERBOSITY") != nullptr;
  const GrpcLibrary grpc(verbose ? GrpcLibrary::Lines::kShown : GrpcLibrary::Lines::kHidden);
  CLI::App app{
      "Orrery plans, schedules, runs and simulates AI workloads on fleets of mixed accelerators.",
      "orrery"};
  app.set_version_flag("--version", "orrery " ORRERY_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  CommandOptions options;
  add_options(app, options);
  add_cluster_options(app, options);
  Verb chosen;
  add_verbs(app, options, chosen);
  hook_options(app);
  read_environment(options);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments.front() == "__complete") {
    arguments.erase(arguments.begin());
    const char* directory = std::getenv("ORRERY_DIR");
    if (directory != nullptr) options.cluster_directory = directory;
    print_completion(app, options, arguments);
    return checked_output(0);
  }
  take_command(arguments, options);
  take_help(arguments);
  if (const std::optional<std::string> unknown = unknown_verb(app, arguments); unknown) {
    print_message(fmt::format("orrery: {} (--help lists the verbs)\n", *unknown));
    return kExitWrongInput;
  }
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(arguments);
    drop_ignored_option(app);
  } catch (const CLI::Success& help) {
    app.exit(help);
    return checked_output(0);
  } catch (const CLI::ParseError& error) {
    print_message(fmt::format("orrery: {} (see --help)\n", error.what()));
    return kExitWrongInput;
  }
  if (options.command && !takes_command(app)) {
    print_message(
        "orrery: only `orrery submit`, `orrery serve`, `orrery exec` and `orrery shell` take a "
        "command "
        "after --\n");
    return kExitWrongInput;
  }
  const int code = exit_code(chosen());
  return checked_output(code == 0 ? options.exit_status : code);
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) { return orrery::run(argc, argv); }
