// scheduler/gang_pricing.hpp - how a gang would fare where it is placed, and what that costs.
//
// The price of a placement is a sum of ten terms (scheduler/price.hpp); docs/scheduling.md has the
// formula of each. Pure. Cost: about a microsecond a node of the gang.
#pragma once

#include <optional>

#include "scheduler/gang_run.hpp"
#include "scheduler/price.hpp"

namespace orrery {

/// A gang, and price_of() it in the context in question.
struct GangPriced {
  const PlacedGang& gang;
  const GangTerms& terms;
  const Price& price;
};

/// Seconds that the fastest option of each role takes on its canonical piece: the greatest of them.
[[nodiscard]] double least_seconds(const PriceContext& context, const WaitingJob& job);

/// What `alike` gangs in the ways of this one would cost their job, so that the gangs of a role are
/// not each kept from a slower and cheaper type by the time of all. `price` is price_of() it.
[[nodiscard]] Price price_of_alike(const PriceContext& context, const WaitingJob& job,
                                   const GangPriced& gang, std::uint32_t alike);

/// Adds a placed gang to those beside the next one.
void add_beside(PriceContext& context, const WaitingJob& job, const GangPriced& gang);

/// By the best plan that can run on these devices, at the highest clock that the power limits
/// allow. Refusal: the option has plans and none of them can run here (kNever), or the lowest clock
/// draws too much (kPower).
[[nodiscard]] tl::expected<GangTerms, Refusal> terms_of(const PriceContext& context,
                                                        const WaitingJob& job,
                                                        const PlacedGang& gang);

/// What the gang costs its job: its own devices until the job is done, and what it adds to the
/// owner's time and to the cost of the gangs beside it.
[[nodiscard]] Price price_of(const PriceContext& context, const WaitingJob& job,
                             const PlacedGang& gang, const GangTerms& terms);

/// What it would cost: hire, energy, carbon, time and lateness alone.
[[nodiscard]] Price ideal_price(const PriceContext& context, const WaitingJob& job,
                                const IdealGang& ideal);

/// What a gang that is placed here would cost after a wait of what depends on when it runs: energy
/// and carbon of its own devices, and its owner's time of the wait.
[[nodiscard]] Price price_of_wait(const PriceContext& context, const WaitingJob& job,
                                  const GangPriced& gang, Duration wait);

/// What a run will draw until it is done, at the meters of its sites.
struct ExpectedEnergy {
  std::int64_t joules = 0;
  bool known = true;  ///< false: the draw of some of the devices is not published

  ExpectedEnergy& operator+=(const ExpectedEnergy& other) {
    joules += other.joules;
    known = known && other.known;
    return *this;
  }
};

/// Of a gang where it is placed, and of one that starts on its canonical piece.
[[nodiscard]] ExpectedEnergy energy_of(const PriceContext& context, const WaitingJob& job,
                                       const PlacedGang& gang, const GangTerms& terms);
[[nodiscard]] ExpectedEnergy ideal_energy(const PriceContext& context, const WaitingJob& job,
                                          const IdealGang& ideal);

/// One of several ways to run a job.
struct PricedWay {
  const Price& price;
  ExpectedEnergy energy;
};

/// Whether way `a` serves the goal better than `b`. Time and cost: by the total price. Energy: what
/// meets the deadline goes first, then the fewest joules, what draws nobody knows how much last;
/// among equals the total price.
[[nodiscard]] bool better_for(JobGoal goal, const PricedWay& a, const PricedWay& b);

/// Not more than price_of() of the option placed anywhere, but for the term kFragmentation, which
/// is left out. Precondition: whole devices, no plan, one site, no type both owned and rented,
/// electricity and carbon without a series.
[[nodiscard]] Price least_price(const PriceContext& context, const WaitingJob& job,
                                const IdealGang& ideal);

/// Not less than price_of(), whatever else the view and the power limits hold; kFragmentation is
/// left out. O(nodes of the gang), an addition each.
[[nodiscard]] Price most_price(const PriceContext& context, const WaitingJob& job,
                               const PlacedGang& gang, const GangTerms& terms);

/// The term kFragmentation for so many stranded devices of a type. Precondition: one site.
[[nodiscard]] Price price_of_stranded(const PriceContext& context, FleetTypeId type,
                                      double devices);

/// The term kLostWork: device-seconds of work that is done again because of the job.
[[nodiscard]] Price price_of_lost_work(const PriceContext& context, const WaitingJob& job,
                                       double device_seconds);

/// Whether the devices of a gang are free in a view, or its own.
enum class GangDevices { kFree, kOwn };

/// Devices that a gang leaves stranded, less those it frees from that: a node with f of its d
/// devices free strands f (1 - f/d) of them, a rack a quarter of the same. The same for a gang that
/// is not placed yet and for one that is.
[[nodiscard]] double stranded_devices(const FleetView& view, std::span<const NodeDevices> gang,
                                      GangDevices devices = GangDevices::kFree);

/// The most that stranded_devices() can be of a gang, and the least with the sign turned.
[[nodiscard]] double stranded_most(const Topology& topology, const GangRequest& gang);

}  // namespace orrery
