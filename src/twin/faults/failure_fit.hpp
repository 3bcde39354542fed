// twin/faults/failure_fit.hpp - fits the parameters of a fault model to observed faults.
//
// Pure functions over a list of events; bench/fit_failures.cpp prints their results for public
// data, which are the catalog's `fault_models`. The same statistics judge the draws of a model.
// Formulas: docs/model/failures.md. Cost: O(n log n).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/time.hpp"
#include "hardware/failure_spec.hpp"

namespace orrery {

/// One fault of one unit (a node, an enclosure, a GPU).
struct ObservedFault {
  Instant at;
  Instant over;  ///< `at` where the repair is not known
  std::uint32_t unit = 0;
};

/// Faults sorted by `at`, observed on this many units for this long.
struct Observation {
  std::span<const ObservedFault> faults;
  std::uint32_t units = 1;
  Duration length;
};

struct FaultStatistics {
  std::size_t faults = 0;
  double per_1000_unit_days = 0;
  double gap_cv = 0;        ///< standard deviation over mean of the gaps between faults; 1: Poisson
  double dispersion_1 = 1;  ///< variance over mean of the counts of a day; 1: Poisson
  double dispersion_14 = 1;  ///< variance over mean of the counts of 14 days
  Seconds repair_median;
  Seconds repair_mean;
  Seconds repair_p90;
  double relapse = 0;            ///< share of faults whose unit fails again within 14 days
  double relapse_by_chance = 0;  ///< the share if every unit were Poisson at the same rate
};

/// Precondition: at least two faults, in order, within a length that is not zero.
[[nodiscard]] FaultStatistics measure(const Observation& seen);

/// The faults whose unit had no repair within the 14 days before.
[[nodiscard]] std::vector<ObservedFault> without_relapses(const Observation& seen);

/// Repairs up to an hour count as transient; the rest are lognormal by their median and mean.
/// Precondition: at least one fault.
[[nodiscard]] RepairModel fit_repair(const Observation& seen);

/// The probability in excess of chance within 14 days of the repair, and the Weibull through the
/// shares of those that come within 0.1 and 3 days. No relapse where there is no excess.
[[nodiscard]] RelapseModel fit_relapse(const Observation& seen);

/// Faults that follow another within 15 minutes belong to one burst: its share and size by the
/// groups of two and more, taken as the visible part of geometric sizes. Scope is left as it is.
[[nodiscard]] BurstModel fit_simultaneous(const Observation& seen);

/// The first fault of each group of faults within 15 minutes of each other.
[[nodiscard]] std::vector<ObservedFault> without_simultaneous(const Observation& seen);

/// Share, size and spread by the moments of a Neyman-Scott process: the gaps' variation gives the
/// mean size of a cluster (exact where bursts are short beside the quiet between them, else too
/// small), the dispersion of counts the pairs in it, and how that grows from a day to 14 the
/// spread. No bursts where the gaps or the counts are Poisson. Scope is left as it is.
[[nodiscard]] BurstModel fit_waves(const Observation& seen);

}  // namespace orrery
