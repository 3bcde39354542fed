// scenarios/scenario.hpp - plays a scenario: a loop in virtual time around Scheduler::decide.
//
// Jobs arrive, run for as long as they are told, write checkpoints, stop when asked; nodes, links
// and caps change as the file says. What was decided is checked against the invariants of
// decisions and written down, a line each.
#pragma once

#include <string>
#include <vector>

#include "tests/scenarios/scenario_spec.hpp"

namespace orrery {

struct ScenarioOutcome {
  std::string log;
  std::vector<std::string> broken;  ///< invariants, in words
};

/// `root`: where the paths of fleets begin. Errors: what the file gets wrong. Deterministic.
[[nodiscard]] Result<ScenarioOutcome> play(const ScenarioSpec& spec, const std::string& root);

}  // namespace orrery
