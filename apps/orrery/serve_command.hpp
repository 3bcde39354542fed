// apps/orrery/serve_command.hpp - `plan --serve`: its options beside those of training.
#pragma once

#include <CLI/CLI.hpp>

#include "verbs/serve/serve_request.hpp"

namespace orrery {

enum class Serving { kNo, kYes };

struct ServeChoice {
  Serving wanted = Serving::kNo;
  ServeOptions options;
};

/// Adds --serve and its options, and makes it exclude the options of training alone. Precondition:
/// the other options of `verb` are defined.
void add_serve_options(CLI::App& verb, ServeChoice& serve);

}  // namespace orrery
