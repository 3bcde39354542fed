// scheduler/preempt/preemption.hpp - which running jobs would have to be preempted so that a job
// fits.
//
// Pure: the caller supplies the running jobs that may be touched and their costs, and decides
// whether a set of them may be taken (guarantees, potential). The result is a proposal.
//
// Method: victims are removed in the order of their cost a device until the job fits (the shortest
// such prefix, found by doubling and halving on one overlay). Victims whose devices the job does
// not touch return; each of the others, the most expensive first, returns if the job still fits.
// Then the last victim of the prefix is struck off and the search continues from there for a
// cheaper plan.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "fleet/view.hpp"
#include "scheduler/place/place_try.hpp"

namespace orrery {

/// What a running gang holds.
struct HeldGang {
  const Allocation* allocation = nullptr;
  HostNeeds host;  ///< needs of one rank
};

/// A node without which a running job can go on.
struct VictimPart {
  std::uint32_t gang = 0;  ///< position among the job's gangs
  NodeId node;             ///< a node of the gang
  std::int64_t cost = 0;
};

/// A running job from which devices may be taken. Costs are lost work, in any one unit, never
/// negative.
struct Victim {
  std::span<const HeldGang> gangs;
  std::int64_t cost = 0;  ///< of preempting the whole job, at least that of its parts together
  std::span<const VictimPart> parts;  ///< nodes that it can give up and go on
};

/// What one job gives up.
struct Yield {
  std::uint32_t victim = 0;          ///< position among the victims
  std::vector<std::uint32_t> parts;  ///< ascending; empty: the whole job

  friend bool operator==(const Yield&, const Yield&) = default;
};

/// Invariant: `gangs` was placed on the view in which everything in `yields` is removed.
struct PreemptionPlan {
  std::vector<Yield> yields;  ///< ascending by victim
  std::vector<PlacedGang> gangs;
  std::int64_t cost = 0;
};

/// Overlays in which a search is made, kept because their memory is expensive to allocate.
struct PreemptionScratch {
  std::optional<FleetOverlay> prefix;
  std::optional<FleetOverlay> trial;
};

/// Whether the job fits before any job leaves, as far as the caller knows.
enum class AsItIs : std::uint8_t { kUnknown, kDoesNotFit };

struct PreemptionAsk {
  PlaceTry place;
  /// Returns a victim that must not be in the plan; no value if the plan may be carried out. A
  /// victim that was returned once is left alone from then on.
  std::function<std::optional<std::uint32_t>(const PreemptionPlan&)> object;
  /// Devices of the job: a victim that is larger is worth no more than one of this size.
  std::uint32_t devices = 1;
  std::int64_t cost_max = std::numeric_limits<std::int64_t>::max();
  AsItIs as_it_is = AsItIs::kUnknown;
  PreemptionScratch* scratch = nullptr;  ///< nullptr: the search uses its own
};

/// Returns the cheapest plan found; no value if the job does not fit even after taking every
/// victim, or if no plan found is allowed. No victim of the plan could be left out (unless the plan
/// is so large that the number of tries ends first). Precondition: the victims' devices are taken
/// in the view, each by one of them (or shared). Ties go by ascending position. Cost: O(victims log
/// victims) + at most kPreemptionTries checks whether the job fits, one placement for each plan
/// considered, the edits of about four removals of the prefix.
[[nodiscard]] std::optional<PreemptionPlan> plan_preemption(const FleetView& view,
                                                            std::span<const Victim> victims,
                                                            const PreemptionAsk& ask);

inline constexpr std::uint32_t kPreemptionTries = 512;

}  // namespace orrery
