// scheduler/preemption.hpp - which running jobs would have to yield so that a job fits.
//
// Pure: the running jobs that may be touched and their costs are the caller's, and so is the word
// on whether a set of them may be taken (guarantees, potential). The answer is a proposal.
//
// Method: victims are removed in the order of their cost a device until the job fits (the shortest
// such prefix, found by doubling and halving on one overlay); those the job does not touch return;
// each of the others, dearest first, returns if the job fits all the same. Then the last victim of
// the prefix is struck off and the search goes on from there for something cheaper.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "fleet/view.hpp"
#include "scheduler/place_try.hpp"

namespace orrery {

/// What a running gang holds.
struct HeldGang {
  const Allocation* allocation = nullptr;
  HostNeeds host;  ///< of one rank
};

/// A node that a running job can go on without.
struct VictimPart {
  std::uint32_t gang = 0;  ///< of the job
  NodeId node;             ///< of the gang
  std::int64_t cost = 0;
};

/// A running job that may be taken from. Costs are lost work, in any one unit; none is negative.
struct Victim {
  std::span<const HeldGang> gangs;
  std::int64_t cost = 0;              ///< of ending it all, at least that of its parts together
  std::span<const VictimPart> parts;  ///< what it can give up and go on
};

/// What one job yields.
struct Yield {
  std::uint32_t victim = 0;          ///< position among the victims
  std::vector<std::uint32_t> parts;  ///< ascending; empty: the whole job

  friend bool operator==(const Yield&, const Yield&) = default;
};

/// Invariant: `gangs` was placed on the view that shows everything of `yields` gone.
struct PreemptionPlan {
  std::vector<Yield> yields;  ///< ascending by victim
  std::vector<PlacedGang> gangs;
  std::int64_t cost = 0;
};

/// Hypotheses that a search is made in, kept because their memory is dear.
struct PreemptionScratch {
  std::optional<FleetOverlay> prefix;
  std::optional<FleetOverlay> trial;
};

/// Whether the job fits before any job leaves, as far as the caller knows.
enum class AsItIs : std::uint8_t { kUnknown, kDoesNotFit };

struct PreemptionAsk {
  PlaceTry place;
  /// A victim of the plan that must not be in it; nothing when the plan may be carried out. A
  /// victim named once is left alone from then on.
  std::function<std::optional<std::uint32_t>(const PreemptionPlan&)> object;
  /// Of the job: a larger victim is worth no more than one of this size.
  std::uint32_t devices = 1;
  std::int64_t cost_max = std::numeric_limits<std::int64_t>::max();
  AsItIs as_it_is = AsItIs::kUnknown;
  PreemptionScratch* scratch = nullptr;  ///< none: its own
};

/// The cheapest plan found; nothing when the job does not fit even after taking every victim, or no
/// plan found is allowed. No victim of the plan could be left out (unless the plan is so large that
/// the number of tries ends first). Precondition: the victims' devices are taken in the view, each
/// by one of them (or shared). Ties by ascending position. Cost: O(victims log victims) + at most
/// kPreemptionTries questions whether it fits, one placement a plan that is looked at, the edits of
/// about four removals of the prefix.
[[nodiscard]] std::optional<PreemptionPlan> plan_preemption(const FleetView& view,
                                                            std::span<const Victim> victims,
                                                            const PreemptionAsk& ask);

inline constexpr std::uint32_t kPreemptionTries = 512;

}  // namespace orrery
