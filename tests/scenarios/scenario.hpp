// scenarios/scenario.hpp - plays a scenario through control's core in the twin's virtual world.
//
// The twin runs it; here its file is translated into what a simulation takes, and what control
// decided into lines. Every event is checked against what any history must keep to.
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
