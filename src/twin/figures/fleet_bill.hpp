// twin/figures/fleet_bill.hpp - what a whole fleet costs and draws over a run: what jobs are
// billed, and the devices that no job holds.
//
// This bill compares fleets of unlike size; jobs and policies on one fleet are compared by what
// jobs are billed.
#pragma once

#include "control/state/state.hpp"

namespace orrery {

struct FleetBill {
  double energy_kwh = 0;  ///< at the meter, cooling and losses included (PUE)
  double cost_usd = 0;    ///< every device's hire, and the electricity of owned ones
};

/// The bill from `begin` to `now`, where all jobs together were billed `jobs`. Devices that no job
/// holds draw the catalog's idle power; those that are down or in repair draw nothing. A type at
/// several sites, or both owned and rented, is priced by the mean of its devices. O(types x sites),
/// or O(types x nodes) where a site has a type both owned and rented.
[[nodiscard]] FleetBill fleet_bill(const State& state, const JobUsage& jobs, Instant begin,
                                   Instant now);

}  // namespace orrery
