// scheduler/request/gang_run.hpp - how long a gang holds its devices, and the power and cost of
// them.
//
// Prices of placements (scheduler/price/gang_pricing.hpp) and their expected bills
// (scheduler/price/expected_bill.hpp) use it. Pure. Cost: O(1), or O(nodes of the gang) where a
// site has a type both owned and rented.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "scheduler/policy.hpp"
#include "scheduler/price/priced_parts.hpp"
#include "scheduler/price/run_time.hpp"
#include "scheduler/request/gang_terms.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

/// The other gangs of a job, for the price of the next one: the job holds all its gangs until the
/// last of them is done, its owner waits once, and its data are moved to a site once.
struct GangsBeside {
  double until = 0;  ///< seconds that the job takes at least because of these gangs
  double timed = 0;  ///< seconds of the job that the placed gangs have paid for
  /// Costs of the placed gangs, dollars a second.
  double hire = 0;
  double energy = 0;
  double carbon = 0;
  SiteSet data_at = 0;  ///< sites to which they move the data of the job
};

/// The inputs of a price. `view` is the fleet before the gang is placed.
struct PriceContext {
  const Situation& situation;
  const Policy& policy;
  FleetView view;
  const PowerBudget* power = nullptr;  ///< budget with the power planned so far; none: power is not
                                       ///< limited
  GangsBeside beside = {};
};

/// A gang that starts on its canonical piece, after a wait.
struct IdealGang {
  std::uint32_t role = 0;
  std::uint32_t option = 0;
  Duration wait;
};

/// Part of a job on devices of one type at one site.
struct DeviceTimeUse {
  double devices = 1;
  double seconds = 0;
  Watts draw;  ///< draw of each device; 0: not known
  Duration wait = {};
};

/// The assumed price of a device of unpublished price in a decision, dollars a second: a dollar an
/// hour, so that its time has some weight against its alternatives. A bill does not count it.
inline constexpr double kAssumedHire = 1.0 / 3600;

/// The hire in dollars a device-second, for decisions.
[[nodiscard]] double hire_of(const DeviceCosts* costs);

/// The known costs of a type anywhere in the fleet, and at a node; nullptr: not known.
[[nodiscard]] const DeviceCosts* any_costs(const PriceContext& context, FleetTypeId type);
[[nodiscard]] const DeviceCosts* costs_at(const PriceContext& context, NodeId node);

/// The parts of a gang by ownership; the second has no devices if all are of one ownership.
[[nodiscard]] std::array<PricedPart, 2> parts_of(const PriceContext& context,
                                                 const PlacedGang& gang);

/// The mean hire of the devices, dollars a second, for decisions.
[[nodiscard]] double mean_hire(const std::array<PricedPart, 2>& parts);

/// Power of a device according to its plan, else while it trains; 0: not published.
[[nodiscard]] Watts draw_of(const PlannedWork* plan, const DeviceCosts* costs);

/// The fastest plan of an entry that runs on these ranks, which a launcher uses that was given
/// none; no plan: none of them runs here.
[[nodiscard]] PlanHere fastest_plan_on(std::span<const PlannedWork> plans,
                                       std::span<const NodeDevices> ranks, const FleetView& view);

/// The part of a whole run that is left, plus the restart if the job ran before.
[[nodiscard]] std::optional<Duration> left_of(const WaitingJob& job, std::optional<Duration> whole);

/// Seconds for which a gang on its canonical piece holds its devices.
[[nodiscard]] double ideal_seconds(const PriceContext& context, const WaitingJob& job,
                                   const IdealGang& gang, const PlannedWork* plan);

/// Seconds for which a gang holds its devices: its start, its work with the pauses for checkpoints,
/// and until the gangs beside it are done. Work of unknown length takes as long as the policy
/// assumes with the first option, and with another one longer or shorter as its step time or speed
/// states, so that a slow type does not count as cheap; a service has no work to finish and is
/// priced over the same time with each option.
[[nodiscard]] double seconds_of(const PriceContext& context, const WaitingJob& job,
                                const PlacedGang& gang, const GangTerms& terms);

/// The mean of a price between two instants, as the bill of a run counts it: from the series of the
/// situation, if there is one, else the site's constant.
template <class Q>
[[nodiscard]] Q mean_or(const StepSeries<Q>* series, Q constant, const Situation& situation,
                        const DeviceTimeUse& use) {
  if (series == nullptr) return constant;
  const Instant from = situation.now + use.wait;
  return series->mean(from, from + Duration::from_seconds(use.seconds));
}

}  // namespace orrery
