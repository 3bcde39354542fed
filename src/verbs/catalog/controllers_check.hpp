// verbs/catalog/controllers_check.hpp - checks the controllers of a shared log: which one leads,
// and how far behind it the standbys are.
//
// Pure, except ask_controllers(), which calls each controller. Cost: one call each, a few seconds
// for one that does not answer.
#pragma once

#include <string>
#include <vector>

#include "node/machine/machine_check.hpp"
#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_session.hpp"

namespace orrery {

/// What a controller said of itself.
struct AskedController {
  std::string address;
  Result<v1::ControllerState> state;
};

/// Asks each controller that the session knows, those that lead before the others; empty: the
/// cluster has one controller alone.
[[nodiscard]] std::vector<AskedController> ask_controllers(const LiveSession& session);

/// A standby is compared with the leader that was asked before it, and with what it knows itself.
/// Warnings: a controller that does not answer; a standby that is more than 5 s or 1,000 batches
/// behind. Problem: none leads.
[[nodiscard]] std::vector<CheckFinding> check_controllers(
    const std::vector<AskedController>& controllers);

}  // namespace orrery
