// scheduler/power/power_relief.hpp - which running gangs to slow or stop once a cap has fallen
// below what is planned.
//
// Pure. Lower clocks come first: they act at once, lose no work and are soon reversed. A gang is
// stopped only if it is under a domain that even the lowest clocks of all gangs would leave above
// its cap. Within that, the loss is kept small: gangs are slowed in the order of value lost per
// watt saved, then changes that turned out to be unnecessary are reversed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/power/power_clock.hpp"

namespace orrery {

struct RunningGang {
  GangPower power;
  std::size_t step = 0;  ///< step of its ladder at which it runs
  double value = 0;  ///< value of a second of its work at the ladder's first step, in any one unit
  /// Additional cost of stopping: lost work and restart, spread over the expected duration of the
  /// cap. In the unit of `value`.
  double stop_loss = 0;
  bool preemptible = false;
};

struct PowerChange {
  std::size_t gang = 0;             ///< index of the gang given
  std::optional<std::size_t> step;  ///< step of its ladder; none: stop it

  friend bool operator==(const PowerChange&, const PowerChange&) = default;
};

struct PowerRelief {
  std::vector<PowerChange> changes;  ///< by ascending gang
  double loss = 0;                   ///< value a second that the changes cost together
  /// Domains that no permitted change brings under their cap; their draw is lowered as far as
  /// possible.
  std::vector<PowerDomainId> above;
};

/// Changes after which every domain is under its cap, as far as slowing and stopping can achieve
/// it. Precondition: the budget holds every gang at its step. Ties go by ascending index of the
/// gang, then by the smaller change. A greedy solution (G. Dobson, "Worst-case analysis of greedy
/// heuristics for integer programming with nonnegative data", Mathematics of Operations Research
/// 7(4), 1982). Cost: O(nodes x depth + domains x steps) of the gangs under such domains, then
/// O(log gangs) a change.
[[nodiscard]] PowerRelief relieve(const PowerBudget& budget, const PowerCaps& caps,
                                  std::span<const RunningGang> gangs);

/// The gangs that are to start, which are the last ones of the gangs given.
struct GangsStarting {
  std::size_t count = 0;
  double alone = 0;  ///< value a second of their work if no gang makes room; 0: they have to wait
};

/// Lower clocks of running and starting gangs under which every cap that constrains the starting
/// gangs holds and more work is done than if no gang made room; no value if there are none.
/// Preconditions: the budget holds every gang at its step; the starting gangs are at the first
/// step.
[[nodiscard]] std::optional<PowerRelief> make_room(const PowerBudget& budget, const PowerCaps& caps,
                                                   std::span<const RunningGang> gangs,
                                                   GangsStarting starting);

}  // namespace orrery
