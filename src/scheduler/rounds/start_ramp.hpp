// scheduler/rounds/start_ramp.hpp - keeps a site's draw from jumping by spreading starts over time.
//
// A grid or a generator follows a load only at a limited rate. Every event that raises the draw of
// a site at once (a gang that starts, or resumes work after a checkpoint) asks for an instant here;
// for a fixed order of calls the answers are fixed. One value a site, owned by the code that starts
// work there. Invariant: in any t seconds the admitted draw rises by at most ramp x t and one
// single rise. Cost: O(1).
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

  /// Returns the first instant, not before `now`, at which a rise by `rise` may happen, and counts
  /// it as done. Precondition: rise >= 0.
  Instant admit(Instant now, Watts rise);

 private:
  WattsPerSecond ramp_;
  Instant next_;  ///< instant at which the rises admitted so far have been absorbed
};

/// Offsets at which work with the given rises may begin, in its order; the first is 0.
[[nodiscard]] std::vector<Duration> stagger(std::span<const Watts> rises, WattsPerSecond ramp);

}  // namespace orrery
