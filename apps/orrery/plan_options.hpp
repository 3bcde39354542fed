// apps/orrery/plan_options.hpp - the options that `plan` and `compare` share.
#pragma once

#include <CLI/CLI.hpp>

#include "verbs/plan/plan_request.hpp"

namespace orrery {

void add_plan_options(CLI::App& verb, PlanOptions& plan);

}  // namespace orrery
