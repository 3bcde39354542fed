// scheduler/decision.hpp - the decisions of a pass, and why jobs still wait.
//
// Values; control checks them against the present state and turns them into events.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "scheduler/price/price.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

/// A waiting job starts, all gangs at once.
struct StartJob {
  JobId job;
  std::vector<PlacedGang> gangs;
  std::vector<GangTerms> terms;      ///< of each gang
  std::optional<Duration> expected;  ///< run time; none: until it is stopped
  Duration delay;                    ///< delay of the start, so that the power draw does not jump
  std::optional<Price> price;        ///< none under policies that do not price
};

/// A running job gives back its devices and waits again.
struct PreemptJob {
  JobId job;
  JobId in_favour_of;  ///< none: it stops because of a power limit
  double lost_device_seconds = 0;
};

/// An elastic job goes on with other devices (a new epoch), or any job moves to others of the same
/// number (a migration: checkpoint, move, restart).
struct ResizeJob {
  JobId job;
  std::vector<PlacedGang> gangs;
  std::vector<GangTerms> terms;  ///< of each gang
  std::optional<JobId> in_favour_of;
  double gained_device_seconds = 0;  ///< expected gain over the horizon
  double cost_device_seconds = 0;    ///< checkpoint, restart, lost work
};

/// A gang of a running job goes on at another clock.
struct SetClock {
  JobId job;
  std::uint32_t gang = 0;  ///< position among the job's
  GangTerms terms;         ///< terms with the new clock and draw
};

/// A plan is missing in the table.
struct WantPlan {
  PlanKey key;
};

using Decision = std::variant<StartJob, PreemptJob, ResizeJob, SetClock, WantPlan>;

/// Why a job still waits.
struct StillWaits {
  JobId job;
  Refusal refusal;
};

struct PassResult {
  std::vector<Decision> decisions;  ///< in the order they were taken
  std::vector<StillWaits> waiting;
  std::vector<Reservation> reservations;
  /// Set by an incremental pass: types of which a job behind one that stops the queue could have
  /// the free devices, ascending.
  std::vector<FleetTypeId> held_back;
  Instant wake = Instant::max();  ///< time after now at which a job that waits by choice would
                                  ///< start
  std::uint64_t candidates = 0;   ///< candidates priced
  std::uint64_t placements = 0;   ///< placements tried
  /// Set by an incremental pass: before then another one decides nothing either, in a situation
  /// that differs only in the time and the links.
  Instant holds_until;
};

}  // namespace orrery
