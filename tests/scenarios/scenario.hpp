// scenarios/scenario.hpp - plays a scenario through control's core in the twin's virtual world.
//
// The twin runs it; here its file is translated into the inputs of a simulation, and the decisions
// of control into lines. Every event is checked against the invariants of any history.
#pragma once

#include <string>
#include <vector>

#include "tests/scenarios/scenario_spec.hpp"

namespace orrery {

struct ScenarioOutcome {
  std::string log;
  std::vector<std::string> broken;  ///< invariants, in words
};

/// `root` is the folder of relative paths of fleets. Errors: what is wrong in the file.
/// Deterministic.
[[nodiscard]] Result<ScenarioOutcome> play(const ScenarioSpec& spec, const std::string& root);

}  // namespace orrery
