#include "scheduler/replace/replacement.hpp"

#include <algorithm>
#include <bit>

#include "base/assert.hpp"
#include "scheduler/pass/running_gang.hpp"
#include "scheduler/place/placer.hpp"
#include "scheduler/price/gang_pricing.hpp"
#include "scheduler/price/run_time.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {
namespace {

/// The maximum distance between a lost node and a replacement that is no spare.
constexpr std::uint32_t kReach = 512;

std::uint32_t distance(NodeId a, NodeId b) {
  return a.value() > b.value() ? a.value() - b.value() : b.value() - a.value();
}

void sort_by_node(std::vector<NodeDevices>& ranks) {
  std::sort(ranks.begin(), ranks.end(),
            [](const NodeDevices& a, const NodeDevices& b) { return a.node < b.node; });
}

bool has_node(std::span<const NodeDevices> ranks, NodeId node) {
  return std::any_of(ranks.begin(), ranks.end(),
                     [node](const NodeDevices& at) { return at.node == node; });
}

/// Whether the host resources for ranks on these devices are free.
bool has_host(const FleetView& fleet, const NodeDevices& at, const HostNeeds& host) {
  return host_ranks(fleet.topology().group(at.node).host, fleet.node(at.node), host) >=
         static_cast<std::uint32_t>(std::popcount(at.devices));
}

/// Whether a node is reserved for a job that starts there as soon as other jobs have left it.
bool is_reserved(const Situation& s, NodeId node) {
  return std::any_of(s.reserved.begin(), s.reserved.end(), [&](const Reservation& reservation) {
    return reservation.start <= s.now &&
           std::any_of(
               reservation.gangs.begin(), reservation.gangs.end(),
               [&](const PlacedGang& gang) { return has_node(gang.allocation.ranks, node); });
  });
}

/// Whether a closure that is not over begins before `end` and includes the node.
bool closes(const Situation& s, NodeId node, Instant end) {
  return std::any_of(s.closures.begin(), s.closures.end(), [&](const Closure& closure) {
    const bool endless = closure.loan && end == Instant::max();
    return !endless && closure.from < end && s.now < closure.to && has_node(closure.nodes, node);
  });
}

/// Whether another node may replace a lost one in a gang of that request: the placement rules must
/// still hold. Returns false for a rule that depends on the whole gang.
bool may_replace(const Topology& topology, const GangRequest& gang, NodeId lost, NodeId other) {
  const NodePlace& from = topology.place(lost);
  const NodePlace& to = topology.place(other);
  const auto together = [&](Level level) {
    return topology.ancestor(from.rack, level) == topology.ancestor(to.rack, level);
  };
  if (gang.exclusive || gang.segment != 0 || gang.asks_slice() || gang.rails_aligned) return false;
  switch (gang.required) {
    case TopologyLevel::kNode:
      return together(Level::kSite);
    case TopologyLevel::kScaleUp:
      return from.scale_up_first == to.scale_up_first;
    case TopologyLevel::kLeaf:
    case TopologyLevel::kGroup:
      return false;
    case TopologyLevel::kRack:
      return together(Level::kRack);
    case TopologyLevel::kPod:
      return together(Level::kPod);
    case TopologyLevel::kHall:
      return together(Level::kHall);
    case TopologyLevel::kSite:
    case TopologyLevel::kFleet:
      return together(Level::kSite);
  }
  return false;
}

/// Returns the first `devices` devices of an allocation, in the order of nodes, without those of
/// one node; no ranks if they are too few.
Allocation part_without(const Allocation& whole, NodeId lost, std::uint32_t devices) {
  Allocation part;
  part.share = whole.share;
  std::uint32_t left = devices;
  for (const NodeDevices& at : whole.ranks) {
    if (at.node == lost || left == 0) continue;
    std::uint64_t taken = at.devices;
    while (static_cast<std::uint32_t>(std::popcount(taken)) > left) taken &= ~std::bit_floor(taken);
    part.ranks.push_back({at.node, taken});
    left -= static_cast<std::uint32_t>(std::popcount(taken));
  }
  if (left > 0) part.ranks.clear();
  return part;
}

/// Chooses replacements for the nodes of one job.
class Choice {
 public:
  /// `end` is when the job is expected to end.
  Choice(const ReplacementContext& context, std::span<const PlacedGang> gangs, Instant end)
      : context_(context), end_(end) {
    for (const PlacedGang& gang : gangs) {
      for (const NodeDevices& at : gang.allocation.ranks) used_.push_back(at.node);
    }
  }

  /// Replaces the node of one rank. Returns false, with no change, if no node can.
  bool replace(NodeDevices& at, const GangRequest& gang) {
    const std::optional<NodeId> other = nearest_spare(at, gang);
    if (other) {
      spares_.push_back({at.node, *other});
      take(at, *other);
      return true;
    }
    const std::optional<NodeId> free = nearest_free(at, gang);
    if (free) take(at, *free);
    return free.has_value();
  }

  template <class Decision>
  [[nodiscard]] WithReplacements<Decision> with(Decision decision) && {
    return {std::move(decision), std::move(spares_), replaced_};
  }
  [[nodiscard]] std::span<const SpareTaken> spares() const { return spares_; }

 private:
  void take(NodeDevices& at, NodeId other) {
    at.node = other;
    used_.push_back(other);
    ++replaced_;
  }

  [[nodiscard]] const Topology& topology() const { return context_.situation.fleet.topology(); }

  [[nodiscard]] bool fits(const NodeDevices& lost, const GangRequest& gang, NodeId other) const {
    const Situation& s = context_.situation;
    return (s.fleet.node(other).free_mask & lost.devices) == lost.devices &&
           topology().place(other).group == topology().place(lost.node).group &&
           has_host(s.fleet, {other, lost.devices}, gang.host) &&
           may_replace(topology(), gang, lost.node, other) &&
           std::find(used_.begin(), used_.end(), other) == used_.end() && !is_reserved(s, other) &&
           !closes(s, other, end_);
  }

  [[nodiscard]] std::optional<NodeId> nearest_spare(const NodeDevices& lost,
                                                    const GangRequest& gang) const {
    std::optional<NodeId> best;
    for (const NodeId spare : context_.spares) {
      const bool nearer = !best || distance(spare, lost.node) < distance(*best, lost.node);
      if (nearer && fits(lost, gang, spare)) best = spare;
    }
    return best;
  }

  [[nodiscard]] std::optional<NodeId> nearest_free(const NodeDevices& lost,
                                                   const GangRequest& gang) const {
    const auto free = [&](NodeId id) {
      return context_.situation.fleet.node(id).health == NodeHealth::kReady && fits(lost, gang, id);
    };
    const std::uint32_t at = lost.node.value();
    for (std::uint32_t d = 1; d <= kReach; ++d) {
      if (at >= d && free(NodeId(at - d))) return NodeId(at - d);
      if (at + d < topology().node_count() && free(NodeId(at + d))) return NodeId(at + d);
    }
    return std::nullopt;
  }

  const ReplacementContext& context_;
  Instant end_;
  std::vector<NodeId> used_;
  std::vector<SpareTaken> spares_;
  std::size_t replaced_ = 0;
};

/// Computes the terms of a gang on a fleet in which some spares are ready.
class Terms {
 public:
  Terms(const ReplacementContext& context, std::span<const SpareTaken> spares)
      : context_(context), situation_(context.situation), fleet_(context.situation.fleet) {
    make_ready(fleet_, spares);
    situation_.fleet = fleet_.view();
  }

  [[nodiscard]] std::optional<GangTerms> find(const WaitingJob& job, const PlacedGang& gang) const {
    auto terms = terms_of({situation_, context_.policy, situation_.fleet, nullptr}, job, gang);
    return terms ? std::optional(*std::move(terms)) : std::nullopt;
  }

 private:
  const ReplacementContext& context_;
  Situation situation_;
  FleetOverlay fleet_;
};

std::optional<ResizeJob> resize_to(const Terms& terms, const RunningJob& job, Instant now,
                                   PlacedGang gang) {
  std::optional<GangTerms> found = terms.find(as_waiting(job, now), gang);
  if (!found) return std::nullopt;
  return ResizeJob{.job = job.id, .gangs = {std::move(gang)}, .terms = {*std::move(found)}};
}

/// Adds the terms of the gangs to a start, and its expected time: the longest of the gangs', or
/// none if that of one is not known.
bool set_terms(const Terms& terms, const WaitingJob& job, StartJob& start) {
  start.expected = Duration();
  for (const PlacedGang& gang : start.gangs) {
    std::optional<GangTerms> found = terms.find(job, gang);
    if (!found) return false;
    start.expected = found->length && start.expected
                         ? std::optional(std::max(*start.expected, *found->length))
                         : std::nullopt;
    start.terms.push_back(*std::move(found));
  }
  return true;
}

bool closes_before_end(const Situation& s, const StartJob& start) {
  const Instant end = start.expected ? s.now + *start.expected : Instant::max();
  return std::any_of(start.gangs.begin(), start.gangs.end(), [&](const PlacedGang& gang) {
    return std::any_of(gang.allocation.ranks.begin(), gang.allocation.ranks.end(),
                       [&](const NodeDevices& at) { return closes(s, at.node, end); });
  });
}

}  // namespace

void make_ready(FleetOverlay& fleet, std::span<const SpareTaken> spares) {
  for (const SpareTaken& taken : spares) {
    NodeState state = fleet.view().node(taken.spare);
    state.health = NodeHealth::kReady;
    fleet.set_node(taken.spare, state);
  }
}

std::optional<WithReplacements<ResizeJob>> resize_with_replacement(
    const ReplacementContext& context, const RunningJob& job, NodeId lost) {
  ORRERY_ASSERT(job.gangs.size() == 1, "only a job of one gang is resized");
  const Instant now = context.situation.now;
  PlacedGang gang = job.gangs.front();
  Choice choice(context, job.gangs, job.expected_end > now ? job.expected_end : Instant::max());
  std::vector<NodeDevices>& ranks = gang.allocation.ranks;
  const auto at = std::find_if(ranks.begin(), ranks.end(),
                               [lost](const NodeDevices& each) { return each.node == lost; });
  if (at == ranks.end() || !choice.replace(*at, request_of(*job.request, gang))) {
    return std::nullopt;
  }
  sort_by_node(ranks);
  std::optional<ResizeJob> resize =
      resize_to(Terms(context, choice.spares()), job, now, std::move(gang));
  if (!resize) return std::nullopt;
  return std::move(choice).with(*std::move(resize));
}

std::optional<ResizeJob> resize_without(const ReplacementContext& context, const RunningJob& job,
                                        NodeId lost) {
  ORRERY_ASSERT(job.gangs.size() == 1, "only a job of one gang is resized");
  const PlacedGang& old = job.gangs.front();
  const GangRequest& had = request_of(*job.request, old);
  const std::vector<GangOption>& options = job.request->roles[old.role].options;
  const Terms terms(context, {});
  for (std::uint32_t i = 0; i < options.size(); ++i) {
    const GangRequest& gang = options[i].gang;
    if (gang.type != had.type || gang.devices >= had.devices) continue;
    Allocation left = part_without(old.allocation, lost, gang.devices);
    if (left.ranks.empty()) continue;
    std::optional<ResizeJob> smaller =
        resize_to(terms, job, context.situation.now, {old.role, i, std::move(left), gang.host});
    if (smaller) return smaller;
  }
  return std::nullopt;
}

std::optional<WithReplacements<StartJob>> restart_in_place(const ReplacementContext& context,
                                                           const WaitingJob& job,
                                                           std::span<const PlacedGang> gangs) {
  const Situation& s = context.situation;
  const Duration left = time_left(job, s.plans, Duration::max());
  Choice choice(context, gangs, left == Duration::max() ? Instant::max() : s.now + left);
  StartJob start{.job = job.id, .gangs = {gangs.begin(), gangs.end()}};
  for (PlacedGang& gang : start.gangs) {
    for (NodeDevices& at : gang.allocation.ranks) {
      const NodeState& node = s.fleet.node(at.node);
      const bool free = node.health == NodeHealth::kReady &&
                        (node.free_mask & at.devices) == at.devices &&
                        has_host(s.fleet, at, gang.host);
      if (free) continue;
      const bool whole = gang.allocation.share >= kWholeDevice;
      if (!whole || !choice.replace(at, request_of(*job.request, gang))) return std::nullopt;
    }
    sort_by_node(gang.allocation.ranks);
  }
  if (!set_terms(Terms(context, choice.spares()), job, start) || closes_before_end(s, start)) {
    return std::nullopt;
  }
  return std::move(choice).with(std::move(start));
}

}  // namespace orrery
