// base/test_hooks.hpp - makes a program ignore one key or option, for the key audit.
//
// Only builds with ORRERY_TEST_HOOKS have it (the preset dev; never a release). Two variables of
// the environment, read once, name what a process ignores:
//
//   ORRERY_IGNORE_KEY="JobSpec.priority"       files are read as if they did not have that key
//   ORRERY_IGNORE_OPTION="orrery plan --top"   the option is parsed and checked, then dropped
//
// ORRERY_KEY_TRACE names a file to which each key and option that was given is appended, and with
// ORRERY_LIST_KEYS a program only prints what it knows. scripts/key_audit uses all four. Cost: two
// comparisons a key.
#pragma once

#ifdef ORRERY_TEST_HOOKS

#include <string>
#include <string_view>
#include <vector>

namespace orrery::test_hooks {

/// A struct that this program can read from a file.
struct ReadStruct {
  std::string_view type;                    ///< as the compiler writes it
  std::vector<std::string_view> (*keys)();  ///< of its describe()
};

/// Returns "JobSpec" for a function's name that ends in "[T = orrery::JobSpec]" or "[with T = ...;
/// ...]".
[[nodiscard]] std::string_view type_in(std::string_view function);

/// Adds a struct to listed_keys(); called once for each before main().
bool add_struct(ReadStruct added);

/// "Struct.key" of all structs that this program can read from a file, sorted; empty without
/// ORRERY_LIST_KEYS.
[[nodiscard]] std::vector<std::string> listed_keys();

/// Whether ORRERY_LIST_KEYS asks the program to print its keys and options, and to do nothing else.
[[nodiscard]] bool lists_keys();

/// Notes that a file has this key; true if the reader shall ignore it.
[[nodiscard]] bool ignores_key(std::string_view type, std::string_view key);

/// Whether the option, such as "orrery plan --top", is the one to ignore.
[[nodiscard]] bool ignores_option(std::string_view option);

/// Notes that an option was given.
void trace_option(std::string_view option);

}  // namespace orrery::test_hooks

#endif
