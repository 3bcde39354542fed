// api/slowed_note.hpp - what the views of a job say of its clock.
#pragma once

#include <string>

#include "executor/controller.hpp"

namespace orrery {

/// At which lower clock a job runs, and why; empty: it runs at its full one, or not at all.
[[nodiscard]] std::string slowed_note(const Controller& controller, const Job& job);

}  // namespace orrery
