// scheduler/price/expected_bill.hpp - the bill of a job that runs undisturbed to its end where it
// is placed: the terms of its price that are paid, without weights.
//
// The control state meters the same sums while the job runs (control/state/state_meter.cpp).
// Budgets are tested against it. Pure. Cost: that of a price, about a microsecond a node.
#pragma once

#include <span>

#include "scheduler/request/gang_run.hpp"

namespace orrery {

struct ExpectedBill {
  double seconds = 0;  ///< seconds for which it holds its devices, until the last gang is done
  /// Dollars. Devices of unpublished price are billed nothing.
  double hire = 0;
  double electricity = 0;  ///< paid beside the hire, for devices that are owned
  double egress = 0;
  double assumed_hire = 0;  ///< hire of devices of unpublished price, as decisions count it
  double joules = 0;        ///< energy at the meters of the sites
  double co2_grams = 0;

  [[nodiscard]] double dollars() const { return hire + electricity + egress; }
};

/// The bill of gangs with their terms, one each, that start together. Of `context.beside` only
/// `until` and `data_at` are used; `view` may have the gangs or not.
[[nodiscard]] ExpectedBill expected_bill(const PriceContext& context, const WaitingJob& job,
                                         std::span<const PlacedGang> gangs,
                                         std::span<const GangTerms> terms);

}  // namespace orrery
