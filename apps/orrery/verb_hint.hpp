// apps/orrery/verb_hint.hpp - what to say of a word that is no verb of the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace orrery {

/// "no verb "squeue"; Orrery's is `orrery jobs`", where the first word of the arguments that is
/// neither an option nor the value of one is no verb; otherwise nothing.
[[nodiscard]] std::optional<std::string> unknown_verb(const CLI::App& app,
                                                      const std::vector<std::string>& arguments);

}  // namespace orrery
