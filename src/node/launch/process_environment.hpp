// node/launch/process_environment.hpp - the environment a process was started with, as a value.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery {

/// Each variable once, in the order in which the process has them.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> process_environment();

/// Returns the value of a name; empty: there is none.
[[nodiscard]] std::string variable_of(
    const std::vector<std::pair<std::string, std::string>>& environment, std::string_view name);

}  // namespace orrery
