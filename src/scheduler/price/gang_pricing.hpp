// scheduler/price/gang_pricing.hpp - the terms of a gang where it is placed, and its price there.
//
// The price of a placement is a sum of ten terms (scheduler/price/price.hpp); docs/scheduling.md
// has the formula of each. Pure. Cost: about a microsecond a node of the gang.
#pragma once

#include <optional>

#include "scheduler/price/price.hpp"
#include "scheduler/request/gang_run.hpp"

namespace orrery {

/// A gang, and price_of() it in the context in question.
struct GangPriced {
  const PlacedGang& gang;
  const GangTerms& terms;
  const Price& price;
};

/// The greatest, over the roles, of the seconds that the fastest option takes on its canonical
/// piece.
[[nodiscard]] double least_seconds(const PriceContext& context, const WaitingJob& job);

/// The cost of `alike` gangs like this one for their job, so that the whole job's time does not
/// keep each single gang of a role from a slower and cheaper type. `price` is price_of() the gang.
[[nodiscard]] Price price_of_alike(const PriceContext& context, const WaitingJob& job,
                                   const GangPriced& gang, std::uint32_t alike);

/// Adds a placed gang to the gangs beside the next one.
void add_beside(PriceContext& context, const WaitingJob& job, const GangPriced& gang);

/// The terms with the best plan that can run on these devices, at the highest clock that the power
/// limits allow. Refusal: the option has plans and none of them can run here (kNever), or the
/// lowest clock draws too much (kPower).
[[nodiscard]] tl::expected<GangTerms, Refusal> terms_of(const PriceContext& context,
                                                        const WaitingJob& job,
                                                        const PlacedGang& gang);

/// The cost of the gang for its job: its own devices until the job is done, and what it adds to the
/// owner's time and to the cost of the gangs beside it.
[[nodiscard]] Price price_of(const PriceContext& context, const WaitingJob& job,
                             const PlacedGang& gang, const GangTerms& terms);

/// The cost of a gang on its canonical piece: hire, energy, carbon, time and lateness alone.
[[nodiscard]] Price ideal_price(const PriceContext& context, const WaitingJob& job,
                                const IdealGang& ideal);

/// The costs that depend on when a gang runs, if it starts here after a wait: energy and carbon of
/// its own devices, and its owner's time of the wait.
[[nodiscard]] Price price_of_wait(const PriceContext& context, const WaitingJob& job,
                                  const GangPriced& gang, Duration wait);

/// The energy that a run will draw until it is done, at the meters of its sites.
struct ExpectedEnergy {
  std::int64_t joules = 0;
  bool known = true;  ///< false: the draw of some of the devices is not published

  ExpectedEnergy& operator+=(const ExpectedEnergy& other) {
    joules += other.joules;
    known = known && other.known;
    return *this;
  }
};

/// The energy of a gang where it is placed, and of one that starts on its canonical piece.
[[nodiscard]] ExpectedEnergy energy_of(const PriceContext& context, const WaitingJob& job,
                                       const PlacedGang& gang, const GangTerms& terms);
[[nodiscard]] ExpectedEnergy ideal_energy(const PriceContext& context, const WaitingJob& job,
                                          const IdealGang& ideal);

/// One of several ways to run a job.
struct PricedWay {
  const Price& price;
  ExpectedEnergy energy;
};

/// Whether way `a` serves the goal better than `b`. Time and cost: by the total price. Energy: ways
/// that meet the deadline come first, then the fewest joules, ways of unknown draw last; ties by
/// the total price.
[[nodiscard]] bool better_for(JobGoal goal, const PricedWay& a, const PricedWay& b);

/// A lower bound of price_of() for the option placed anywhere, without the term kFragmentation.
/// Precondition: whole devices, no plan, one site, no type both owned and rented, electricity and
/// carbon without a series.
[[nodiscard]] Price least_price(const PriceContext& context, const WaitingJob& job,
                                const IdealGang& ideal);

/// An upper bound of price_of(), whatever else the view and the power limits hold, without the term
/// kFragmentation. O(nodes of the gang), an addition each.
[[nodiscard]] Price most_price(const PriceContext& context, const WaitingJob& job,
                               const PlacedGang& gang, const GangTerms& terms);

/// The term kFragmentation for so many stranded devices of a type. Precondition: one site.
[[nodiscard]] Price price_of_stranded(const PriceContext& context, FleetTypeId type,
                                      double devices);

/// The term kLostWork: device-seconds of work that is done again because of the job.
[[nodiscard]] Price price_of_lost_work(const PriceContext& context, const WaitingJob& job,
                                       double device_seconds);

/// Whether the devices of a gang are free in a view or held by the gang.
enum class GangDevices { kFree, kOwn };

/// Devices that a gang leaves stranded, less those that are no longer stranded: a node with f of
/// its d devices free strands f (1 - f/d) of them, a rack a quarter of the same formula. A gang
/// that is placed gets the same number as one that is not placed yet.
[[nodiscard]] double stranded_devices(const FleetView& view, std::span<const NodeDevices> gang,
                                      GangDevices devices = GangDevices::kFree);

/// The largest possible stranded_devices() of a gang; its negative is the smallest.
[[nodiscard]] double stranded_most(const Topology& topology, const GangRequest& gang);

}  // namespace orrery
