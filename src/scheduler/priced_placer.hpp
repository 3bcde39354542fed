// scheduler/priced_placer.hpp - places a job where it serves its goal best: of every type it may
// use, every size it may have and several placements of each, at the least price, or with the
// fewest joules where its goal is energy. Each site has its prices, so that each site that has room
// is offered.
//
// Roles and gangs are placed one after the other, each at what it adds least to the price of the
// job given those before; a job may rather wait for better hardware, when that is cheaper by the
// time the hardware is expected. Pure in its inputs; keeps scratch memory. One thread. Ties: first
// option, best fit.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "scheduler/gang_pricing.hpp"
#include "scheduler/job_placer.hpp"

namespace orrery {

struct PricedJob {
  std::vector<PlacedGang> gangs;
  std::vector<GangTerms> terms;  ///< of each gang
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
      {};  ///< with the gangs of its role that are still to be placed, if all were alike
};

/// Whether a view stays as it is until forget_offers(), or is gone after one look.
enum class ViewLasts : std::uint8_t { kNo, kYes };

class PricedPlacer {
 public:
  explicit PricedPlacer(const PlaceTree& tree);

  /// Forgets what it counted of running jobs and nodes; before the first job of a pass.
  void begin();
  /// A job starts in this pass: those that may wait for its devices count on them from `end` on.
  void add_start(const JobRequest& job, std::span<const PlacedGang> gangs, Instant end);

  /// In a view that lasts, jobs that ask for the same gang are offered the same places: they are
  /// looked for once.
  [[nodiscard]] PricedOrRefusal place(const WaitingJob& job, const PriceContext& context,
                                      const JobPlaceRules& rules, ViewLasts lasts);
  /// A view that was said to last has changed.
  void forget_offers() { lasting_offers_.clear(); }

  /// Every candidate of the last gang that was placed, in the order they were tried.
  [[nodiscard]] const std::vector<Candidate>& candidates() const { return candidates_; }
  /// Plans that were asked for and are not in the table.
  [[nodiscard]] const std::vector<PlanKey>& missing() const { return missing_; }
  /// Since begin(), and for jobs without a deadline: as far as waiting for better hardware goes,
  /// the same places would get the same answers before then.
  [[nodiscard]] Instant holds_until() const { return holds_until_; }
  /// Since begin(), the first instant at which a job that waits for cleaner or cheaper electricity
  /// would start.
  [[nodiscard]] Instant wake() const { return wake_; }
  /// Whether the last refusal was for want of room alone, of which length and price say nothing.
  [[nodiscard]] bool lacks_room() const { return lacks_room_; }

 private:
  struct Next {
    const WaitingJob* job;
    std::uint32_t role;
    std::span<const PlacedGang> placed;
    std::span<const GangTerms> terms;  ///< of the placed
    std::span<const NodeRun> avoid;
    std::uint32_t alike;  ///< gangs of the role that are not placed yet, this one among them
  };
  /// Places for a gang, or why there is none.
  struct Offers {
    std::vector<Allocation> places;
    std::optional<Refusal> refusal;
  };
  /// The nodes of a view, by their address, and what is asked of it.
  using Asked = std::pair<const void*, GangRequest>;
  /// Devices of a type that come free, by when.
  struct Freed {
    Instant at;
    std::uint32_t devices;  ///< in all until then
  };
  struct FreedOfType {
    std::vector<Freed> starts;  ///< of this pass, with their own devices
    std::vector<Freed> list;    ///< by time; empty: not counted yet
    std::uint32_t claimed = 0;  ///< by jobs of this pass that wait for them
  };

  [[nodiscard]] tl::expected<Candidate, Refusal> place_gang(const PriceContext& context,
                                                            const Next& next,
                                                            const JobPlaceRules& rules);
  [[nodiscard]] const Offers& offers_of(const PriceContext& context, const Next& next,
                                        const GangRequest& gang, const JobPlaceRules& rules);
  [[nodiscard]] static Dollars cost_with(const PriceContext& context, const Next& next,
                                         const PlacedGang& gang, const GangTerms& terms);
  /// The last refusal, where an offer was refused or there was none.
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
  std::vector<PlaceId> sites_;  ///< of the fleet, where it has several
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
  std::optional<std::vector<NodeRun>> lemons_;  ///< nodes that fail often; none: not looked at yet
};

}  // namespace orrery
