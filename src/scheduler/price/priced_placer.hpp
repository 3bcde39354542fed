// scheduler/price/priced_placer.hpp - places a job where it meets its goal best: considers every
// type and size that the job may use and several placements of each, and takes the one with the
// lowest price, or with the fewest joules if the goal is energy. Each site has its own prices, so
// each site that has room is offered.
//
// Roles and gangs are placed one after the other, each where it adds least to the price of the job
// given the gangs before it. A job may wait for better hardware instead, if that is cheaper by the
// time the hardware is expected. Pure in its inputs; keeps scratch memory. One thread. Ties go to
// the first option and the best fit.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "scheduler/place/job_placer.hpp"
#include "scheduler/price/gang_pricing.hpp"

namespace orrery {

struct PricedJob {
  std::vector<PlacedGang> gangs;
  std::vector<GangTerms> terms;  ///< terms of each gang
  Price price;
  std::optional<Duration> length;
};

using PricedOrRefusal = tl::expected<PricedJob, Refusal>;

/// One way to start a gang, with its price.
struct Candidate {
  PlacedGang gang;
  GangTerms terms;
  Price price;
  ExpectedEnergy energy;
  Price compared =
      {};  ///< with all gangs of its role that are still to be placed, as if they were alike
};

/// Whether a view stays unchanged until forget_offers(), or is used only once.
enum class ViewLasts : std::uint8_t { kNo, kYes };

class PricedPlacer {
 public:
  explicit PricedPlacer(const PlaceTree& tree);

  /// Drops what was counted of running jobs and nodes; called before the first job of a pass.
  void begin();
  /// A job starts in this pass: jobs that may wait for its devices expect them from `end` on.
  void add_start(const JobRequest& job, std::span<const PlacedGang> gangs, Instant end);

  /// In a view that lasts, jobs that request the same gang are offered the same places, which are
  /// searched for once.
  [[nodiscard]] PricedOrRefusal place(const WaitingJob& job, const PriceContext& context,
                                      const JobPlaceRules& rules, ViewLasts lasts);
  /// Called when a view that was marked as lasting has changed.
  void forget_offers() { lasting_offers_.clear(); }

  /// Every candidate for the last gang that was placed, in the order in which they were tried.
  [[nodiscard]] const std::vector<Candidate>& candidates() const { return candidates_; }
  /// Plans that were requested and are not in the table.
  [[nodiscard]] const std::vector<PlanKey>& missing() const { return missing_; }
  /// The instant, since begin() and for jobs without a deadline, before which the same places would
  /// get the same answers with regard to waiting for better hardware.
  [[nodiscard]] Instant holds_until() const { return holds_until_; }
  /// Since begin(), the first instant at which a job that waits for cleaner or cheaper electricity
  /// would start.
  [[nodiscard]] Instant wake() const { return wake_; }
  /// Whether the last refusal was for lack of room alone and so independent of length and price.
  [[nodiscard]] bool lacks_room() const { return lacks_room_; }

 private:
  struct Next {
    const WaitingJob* job;
    std::uint32_t role;
    std::span<const PlacedGang> placed;
    std::span<const GangTerms> terms;  ///< terms of the placed gangs
    std::span<const NodeRun> avoid;
    std::uint32_t alike;  ///< gangs of the role that are not placed yet, this one among them
  };
  /// Places for a gang, or why there is none.
  struct Offers {
    std::vector<Allocation> places;
    std::optional<Refusal> refusal;
  };
  /// The nodes of a view, by their address, and the gang that is requested in it.
  using Asked = std::pair<const void*, GangRequest>;
  /// Devices of a type that become free up to an instant.
  struct Freed {
    Instant at;
    std::uint32_t devices;  ///< total up to that instant
  };
  struct FreedOfType {
    std::vector<Freed> starts;  ///< jobs started in this pass, with their own devices
    std::vector<Freed> list;    ///< by time; empty: not computed yet
    std::uint32_t claimed = 0;  ///< by jobs of this pass that wait for them
  };

  [[nodiscard]] tl::expected<Candidate, Refusal> place_gang(const PriceContext& context,
                                                            const Next& next,
                                                            const JobPlaceRules& rules);
  [[nodiscard]] const Offers& offers_of(const PriceContext& context, const Next& next,
                                        const GangRequest& gang, const JobPlaceRules& rules);
  [[nodiscard]] static Dollars cost_with(const PriceContext& context, const Next& next,
                                         const PlacedGang& gang, const GangTerms& terms);
  /// Returns the last refusal if an offer was refused or there was none.
  std::optional<Refusal> price_offers(const PriceContext& context, const Next& next,
                                      std::uint32_t option, const JobPlaceRules& rules);
  void add_offer_of_each_site(const FleetView& view, const GangRequest& gang, PlaceOptions options,
                              std::vector<Allocation>& offers);
  void add_safer_offer(const PriceContext& context, const Next& next, const GangRequest& gang,
                       std::vector<Allocation>& offers);
  [[nodiscard]] bool planned(const PriceContext& context, const Next& next,
                             const GangOption& option, Refusal& closest);
  [[nodiscard]] bool cheaper_later(const PriceContext& context, const Next& next,
                                   const Candidate& now);
  [[nodiscard]] std::optional<Duration> wait_for(const PriceContext& context,
                                                 const GangRequest& gang);
  [[nodiscard]] FreedOfType& freed(FleetTypeId type);

  Placer placer_;
  std::vector<PlaceId> sites_;  ///< sites of the fleet, if it has several
  Trial trial_;
  std::vector<Candidate> candidates_;
  std::vector<PlanKey> missing_;
  ViewLasts lasts_ = ViewLasts::kNo;
  std::map<Asked, Offers> lasting_offers_;
  Offers passing_offers_;
  bool lacks_room_ = false;
  Instant holds_until_;
  Instant wake_ = Instant::max();
  std::vector<FreedOfType> freed_;              ///< by type
  std::optional<std::vector<NodeRun>> lemons_;  ///< nodes that fail often; none: not determined yet
};

}  // namespace orrery
