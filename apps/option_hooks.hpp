// apps/option_hooks.hpp - the effect of the key audit on a program's command line
// (base/test_hooks.hpp).
//
// A program calls hook_options() once its options are defined and drop_ignored_option() once they
// are parsed, or parse_options(), which does all of it. The first two are empty in builds without
// ORRERY_TEST_HOOKS.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "base/test_hooks.hpp"

namespace orrery {

#ifdef ORRERY_TEST_HOOKS

namespace detail {

/// Reaches the function that acts on a parsed option.
struct ActingOption : CLI::Option {
  static auto callback() { return &ActingOption::callback_; }
};

/// Calls `each(name, option)`, such as "orrery plan --top", for the options of a verb and of its
/// verbs. Arguments without a name, --help and --version are left out.
template <class Each>
void for_each_option(CLI::App& verb, const std::string& path, const Each& each) {
  for (CLI::Option* option : verb.get_options()) {
    if (!option->nonpositional()) continue;
    const std::string& name =
        option->get_lnames().empty() ? option->get_single_name() : option->get_lnames().front();
    if (name == "help" || name == "version") continue;
    std::string full = path;
    full += name.size() > 1 ? " --" : " -";
    each(full += name, *option);
  }
  for (CLI::App* inner : verb.get_subcommands([](const CLI::App*) { return true; })) {
    std::string below = path;
    below += ' ';
    for_each_option(*inner, below += inner->get_name(), each);
  }
}

}  // namespace detail

/// Removes the effect of the option that ORRERY_IGNORE_OPTION names; it is parsed and checked all
/// the same. With ORRERY_LIST_KEYS, prints the program's keys and options and ends the program.
inline void hook_options(CLI::App& app) {
  for (const std::string& key : test_hooks::listed_keys()) std::printf("key %s\n", key.c_str());
  detail::for_each_option(app, app.get_name(), [](const std::string& name, CLI::Option& option) {
    if (test_hooks::lists_keys()) std::printf("option %s\n", name.c_str());
    if (!test_hooks::ignores_option(name)) return;
    option.*detail::ActingOption::callback() = [](const CLI::results_t&) { return true; };
  });
  if (test_hooks::lists_keys()) std::exit(0);
}

/// Makes the ignored option count as not given.
inline void drop_ignored_option(CLI::App& app) {
  detail::for_each_option(app, app.get_name(), [](const std::string& name, CLI::Option& option) {
    if (option.empty()) return;
    test_hooks::trace_option(name);
    if (test_hooks::ignores_option(name)) option.clear();
  });
}

#else

inline void hook_options(CLI::App& /*app*/) {}
inline void drop_ignored_option(CLI::App& /*app*/) {}

#endif

/// Parses the command line of a daemon. Returns its exit status where the program ends with that:
/// 2 for a wrong one, 0 after --help or --version.
inline std::optional<int> parse_options(CLI::App& app, int count, char** arguments) {
  hook_options(app);
  try {
    app.parse(count, arguments);
    drop_ignored_option(app);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return std::nullopt;
}

}  // namespace orrery
