// verbs/simulate/named_runs.hpp - the policies that a simulation compares, a run each.
#pragma once

#include <string>
#include <vector>

#include "twin/information.hpp"
#include "verbs/simulate/simulated_fleet.hpp"

namespace orrery {

struct NamedRun {
  std::string label;  ///< what results are called by; of one run alone
  Policy policy;
  std::string asked;  ///< the option it comes from
  /// Name of the run's files: letters, digits, '-' and '_' of the label, anything else as '_'.
  /// Unique among the runs of the command.
  std::string file_name = {};
};

/// Reads --policy: names with options and Policy files, separated by commas. Notes the names of
/// files that are not those of their policies. Errors: those of a file, with its line; an unknown
/// policy; one that orders by times which `information` hides.
[[nodiscard]] Result<std::vector<NamedRun>> named_runs(const SimulateOptions& asked,
                                                       Information information,
                                                       const SimulatedFleet::Loading& loading);

}  // namespace orrery
