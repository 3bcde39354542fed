#include "node/launch/process_environment.hpp"

#include <unistd.h>

#include <algorithm>

namespace orrery {

std::vector<std::pair<std::string, std::string>> process_environment() {
  std::vector<std::pair<std::string, std::string>> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view variable(*each);
    const std::size_t mark = variable.find('=');
    if (mark == variable.npos) continue;
    const std::string_view name = variable.substr(0, mark);
    const bool known = std::any_of(variables.begin(), variables.end(),
                                   [&](const auto& other) { return other.first == name; });
    if (!known) variables.emplace_back(name, variable.substr(mark + 1));
  }
  return variables;
}

std::string variable_of(const std::vector<std::pair<std::string, std::string>>& environment,
                        std::string_view name) {
  const auto found = std::find_if(environment.begin(), environment.end(),
                                  [&](const auto& each) { return each.first == name; });
  return found == environment.end() ? "" : found->second;
}

}  // namespace orrery
