// scheduler/power_relief.hpp - which running gangs to slow or stop once a cap has fallen below what
// is planned.
//
// Pure. Lower clocks come first: they act at once, lose no work and are soon taken back. A gang is
// stopped only where it stands under a domain that the lowest clocks of all would leave above its
// cap. Within that, the loss is made small: work is slowed in the order of value lost per watt won,
// then whatever turned out not to be needed is given back.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/power_clock.hpp"

namespace orrery {

struct RunningGang {
  GangPower power;
  std::size_t step = 0;  ///< of its ladder, where it runs
  double value = 0;      ///< of a second of its work at the ladder's first step, in any one unit
  /// What stopping costs beside that: lost work and restart, spread over the time the cap will
  /// last. In the same unit.
  double stop_loss = 0;
  bool preemptible = false;
};

struct PowerChange {
  std::size_t gang = 0;             ///< index of the gang given
  std::optional<std::size_t> step;  ///< of its ladder; none: stop it

  friend bool operator==(const PowerChange&, const PowerChange&) = default;
};

struct PowerRelief {
  std::vector<PowerChange> changes;  ///< by ascending gang
  double loss = 0;                   ///< value a second that they cost together
  /// Domains that no permitted change brings under their cap; they are brought as low as it goes.
  std::vector<PowerDomainId> above;
};

/// Changes after which every domain is under its cap, wherever slowing and stopping can do it.
/// Precondition: the budget holds every gang at its step. Ties break by ascending index of the
/// gang, then by the smaller change. A greedy answer (G. Dobson, "Worst-case analysis of greedy
/// heuristics for integer programming with nonnegative data", Mathematics of Operations Research
/// 7(4), 1982). Cost: O(nodes x depth + domains x steps) of the gangs under such domains, then
/// O(log gangs) a change.
[[nodiscard]] PowerRelief relieve(const PowerBudget& budget, const PowerCaps& caps,
                                  std::span<const RunningGang> gangs);

/// The gangs that start, which are the last ones of those given.
struct GangsStarting {
  std::size_t count = 0;
  double alone = 0;  ///< value of their work of a second if nobody makes room; 0: they have to wait
};

/// Lower clocks, of those that run and those that start, under which every cap in the way of those
/// that start holds and more work is done than if nobody made room; none: there are none.
/// Precondition: as for relieve, those that start at the first step.
[[nodiscard]] std::optional<PowerRelief> make_room(const PowerBudget& budget, const PowerCaps& caps,
                                                   std::span<const RunningGang> gangs,
                                                   GangsStarting starting);

}  // namespace orrery
