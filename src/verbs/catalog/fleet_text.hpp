// verbs/catalog/fleet_text.hpp - a fleet as a tree with totals, for a terminal.
#pragma once

#include <string>
#include <vector>

#include "fleet/spec/summary.hpp"
#include "fleet/topology.hpp"

namespace orrery {

/// Shows equal siblings as one line ("su x 4"); below them the first stands for all.
[[nodiscard]] std::string tree_text(const Topology& topology);

[[nodiscard]] std::string summary_text(const FleetSummary& summary);

/// Lists domains that carry less than their load in training, by the difference; the first few.
[[nodiscard]] std::vector<std::string> oversubscribed_texts(const PowerTotal& power);

}  // namespace orrery
