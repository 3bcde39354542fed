// scheduler/pass/start_search.hpp - where and how a waiting job can start now, beside what the pass
// keeps for others, or why it cannot.
//
// Belongs to one pass; its placers belong to the scheduler's memory. It starts nothing: the answer
// holds until the context changes. Cost: a placement, or a few beside reservations; a job that
// lacks devices by number alone is refused without one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/pass/pass_context.hpp"
#include "scheduler/place/job_placer.hpp"
#include "scheduler/price/priced_placer.hpp"

namespace orrery {

enum class RefusalCause : std::uint8_t {
  kOther,
  kNoRoom,       ///< lack of room alone, whatever the job's length and tenant
  kReservation,  ///< the place is kept for another job, which this job would delay
};

/// Why a job cannot start, and what that depends on.
struct StartRefusal {
  Refusal refusal;
  RefusalCause cause = RefusalCause::kOther;
};

using StartOrRefusal = tl::expected<PlannedStart, StartRefusal>;

/// Whether a start has to fit the power budget.
enum class PowerCounts : std::uint8_t { kYes, kNo };

/// Whose quota the devices that are free in a view, but not yet in the fleet, count in.
enum class FreedBy : std::uint8_t { kOthers, kOwnTenant };

/// The placers that a scheduler keeps for its passes.
struct PassPlacers {
  explicit PassPlacers(const PlaceTree& tree) : jobs(tree), priced(tree) {}

  JobPlacer jobs;
  PricedPlacer priced;
};

class StartSearch {
 public:
  StartSearch(PassContext& pass, PassPlacers& placers);

  /// Finds a start beside reservations, or on their devices if the job ends before they begin.
  [[nodiscard]] StartOrRefusal find(const WaitingJob& job, PowerCounts power = PowerCounts::kYes);
  /// What limits a start.
  struct Limits {
    PowerCounts power = PowerCounts::kYes;
    FreedBy freed_by = FreedBy::kOthers;
  };
  /// Finds a start in a view of the fleet, by the option that the policy chooses.
  [[nodiscard]] StartOrRefusal in(const FleetView& view, const WaitingJob& job,
                                  const Limits& limits);
  [[nodiscard]] StartOrRefusal in(const FleetView& view, const WaitingJob& job) {
    return in(view, job, {});
  }
  /// Finds a start in a view by the first option that fits, whatever the policy chooses.
  [[nodiscard]] StartOrRefusal by_fit(const FleetView& view, const WaitingJob& job,
                                      const Limits& limits);
  /// Finds a start in a view for a job of one gang by one option, on nodes that do not close before
  /// it would be done.
  [[nodiscard]] StartOrRefusal by_option(const FleetView& view, const WaitingJob& job,
                                         std::uint32_t option);
  /// Returns the start on devices that are already chosen, with the terms of each gang.
  [[nodiscard]] StartOrRefusal with_terms(const FleetView& view, const WaitingJob& job,
                                          std::vector<PlacedGang> gangs,
                                          PowerCounts power = PowerCounts::kYes) const;

  [[nodiscard]] JobPlaceRules rules_for(const WaitingJob& job) const {
    return rules_for(job, nullptr);
  }
  /// Whether there is room in a view; quotas count only if the rules have them.
  [[nodiscard]] bool fits(const FleetView& view, const WaitingJob& job,
                          const JobPlaceRules& rules) {
    return placers_.jobs.fits(view, *job.request, rules);
  }
  [[nodiscard]] JobPlacer& jobs() { return placers_.jobs; }
  [[nodiscard]] Placer& gangs() { return placers_.jobs.placer(); }

  [[nodiscard]] PriceContext context_of(const FleetView& view,
                                        PowerCounts power = PowerCounts::kYes) const;
  /// The price of a job with these gangs, each beside those before it. Precondition: their devices
  /// are free in the view.
  [[nodiscard]] Price price_of_all(const FleetView& view, const WaitingJob& job,
                                   std::span<const PlacedGang> gangs,
                                   std::span<const GangTerms> terms) const;
  /// The end of a job that starts now with its slowest option.
  [[nodiscard]] Instant latest_end(const WaitingJob& job) const;

 private:
  [[nodiscard]] StartOrRefusal by_price(const FleetView& view, const WaitingJob& job,
                                        const Limits& limits);
  /// `freed`: a view without some of the victims, whose devices the tenant may have again.
  [[nodiscard]] JobPlaceRules rules_for(const WaitingJob& job, const FleetView* freed) const;
  [[nodiscard]] std::optional<std::uint32_t> missing_beside_slots(const WaitingJob& job);
  [[nodiscard]] std::uint32_t missing_beside_slots(const WaitingJob& job, const GangOption& option);

  PassContext& pass_;
  const Situation& s_;
  const Policy& policy_;
  PassPlacers& placers_;
  std::uint64_t offered_at_ = 0;  ///< PassFleet::edits() for which cached offers hold
  std::size_t starts_told_ = 0;   ///< starts that the priced placer knows
  std::uint32_t vain_views_ = 0;  ///< vain searches beside reservations
};

}  // namespace orrery
