// twin/holds/manager_rules.hpp - how a virtual resource manager is used, how it fails, and how it
// lies.
//
// Drawn once for a protocol world. Plain values. Rates are chances in a second, for each hold, node
// or manager; shares are chances at each occasion.
#pragma once

#include <cstdint>

#include "base/numbers/rng.hpp"
#include "base/time.hpp"
#include "executor/holds/hold_table.hpp"

namespace orrery {

/// What goes wrong between a controller and the manager.
struct AnswerFaults {
  double slow = 0;     ///< share of commands that take up to `slow_max`
  double lost = 0;     ///< share of answers that are empty, or never come
  double doubled = 0;  ///< share of holds that are submitted twice
  double refused = 0;  ///< share of holds that are refused
  double empty = 0;    ///< share of lists that are empty and say that they are complete
  double half = 0;     ///< share of lists that are not complete
  Duration slow_max = Duration::seconds(90);
};

/// What happens to the holds in the manager.
struct HoldFaults {
  double evicted = 0;       ///< rate at which others end a running hold
  double cancelled = 0;     ///< rate at which others end a waiting hold
  double requeued = 0;      ///< share of the evicted holds that wait again
  double dirty = 0;         ///< rate at which a node of a hold fails
  double shrunk = 0;        ///< rate at which a node is taken out of a running hold
  double suspended = 0;     ///< rate
  double retimed = 0;       ///< rate at which an administrator changes the time limit
  double no_agent = 0;      ///< share of the steps whose agent never starts
  double not_singular = 0;  ///< share of the starts at which another hold of that key may run
};

struct ManagerFaults {
  AnswerFaults answers;
  HoldFaults holds;
  double crash = 0;    ///< rate at which it restarts from what it saved last
  double foreign = 0;  ///< rate at which others submit work
  double drained = 0;  ///< rate at which an administrator drains a node
};

struct ManagerRules {
  std::uint32_t nodes = 1;        ///< that it lends: the last ones of the fleet
  std::uint32_t pilot_nodes = 1;  ///< of a hold
  std::uint32_t keep = 0;         ///< nodes held although nothing waits
  HoldsFor holds_for = HoldsFor::kAnyJob;
  Duration time = Duration::minutes(30);
  Duration idle = Duration::minutes(2);
  ManagerFaults faults;
};

/// Draws the rules for a fleet of that many nodes, of which it lends some, but not all.
[[nodiscard]] ManagerRules draw_manager(Rng& rng, std::uint32_t nodes);

}  // namespace orrery
