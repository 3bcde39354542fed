// scheduler/start_ramp.hpp - keeps a site's draw from jumping: starts take turns.
//
// A grid or a generator follows a load only so fast. Whatever raises the draw of a site at once (a
// gang that starts, or goes back to work after a checkpoint) asks here when it may; asked in a
// fixed order, the answers are fixed. One value a site, kept by whoever starts work there.
// Invariant: in any t seconds the admitted draw rises by at most ramp x t and one single rise.
// Cost: O(1).
#pragma once

#include <span>
#include <vector>

#include "base/quantity.hpp"
#include "base/time.hpp"

namespace orrery {

using WattsPerSecond = decltype(Watts{} / Seconds{});

class StartRamp {
 public:
  /// Precondition: ramp > 0.
  explicit StartRamp(WattsPerSecond ramp);

  /// The first instant, not before `now`, at which a rise by `rise` may happen; it is then taken
  /// as done. Precondition: rise >= 0.
  Instant admit(Instant now, Watts rise);

 private:
  WattsPerSecond ramp_;
  Instant next_;  ///< when the rises admitted so far are carried
};

/// Offsets at which work that rises by so much may begin, in its order; the first is 0.
[[nodiscard]] std::vector<Duration> stagger(std::span<const Watts> rises, WattsPerSecond ramp);

}  // namespace orrery
