// apps/orrery/verb_hint.hpp - the message for a word that is no verb of the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace orrery {

/// Returns "no verb "squeue"; the corresponding verb is `orrery jobs`" where the first word of the
/// arguments that is neither an option nor its value is not a verb; otherwise none.
[[nodiscard]] std::optional<std::string> unknown_verb(const CLI::App& app,
                                                      const std::vector<std::string>& arguments);

}  // namespace orrery
