#include "scheduler/moves/defragment.hpp"

#include <algorithm>
#include <bit>

namespace orrery {
namespace {

/// Makes the devices a goal will get unavailable while some of them are still in use.
class Claim {
 public:
  Claim(FleetOverlay& overlay, std::span<const PlacedGang> gangs)
      : overlay_(&overlay),
        claimed_(overlay.view().topology().node_count()),
        whole_(claimed_.size()) {
    for (const PlacedGang& gang : gangs) {
      for (const NodeDevices& at : gang.allocation.ranks) claim(gang, at);
      for (const NodeDevices& at : gang.allocation.idle) {
        claimed_[at.node.value()] |= at.devices;
        whole_[at.node.value()] |= at.devices;
      }
      hide(gang.allocation);
    }
  }

  /// Hides claimed devices of `allocation` after it was given back.
  void hide(const Allocation& allocation) {
    for (const NodeDevices& at : allocation.ranks) hide(at);
    for (const NodeDevices& at : allocation.idle) hide(at);
  }

 private:
  void claim(const PlacedGang& gang, const NodeDevices& at) {
    claimed_[at.node.value()] |= at.devices;
    NodeState state = overlay_->view().node(at.node);
    detail::move_host(state, gang.host, static_cast<std::uint32_t>(std::popcount(at.devices)));
    overlay_->set_node(at.node, state);
    if (gang.allocation.share == kWholeDevice) {
      whole_[at.node.value()] |= at.devices;
      return;
    }
    const DeviceId device = detail::shared_device(overlay_->view().topology(), at);
    const int used = overlay_->view().shared(device) + gang.allocation.share;
    overlay_->set_shared(device, static_cast<std::uint16_t>(used));
  }
  /// Hides claimed devices of a node; shared ones that are claimed whole get no further shares.
  void hide(const NodeDevices& at) {
    NodeState state = overlay_->view().node(at.node);
    state.free_mask &= ~claimed_[at.node.value()];
    overlay_->set_node(at.node, state);
    const std::uint32_t first = overlay_->view().topology().place(at.node).first_device.value();
    for (std::uint64_t left = at.devices & whole_[at.node.value()]; left != 0; left &= left - 1) {
      const DeviceId device(first + static_cast<std::uint32_t>(std::countr_zero(left)));
      if (overlay_->view().shared(device) != 0) overlay_->set_shared(device, kShareMax);
    }
  }

  FleetOverlay* overlay_;
  std::vector<std::uint64_t> claimed_;  ///< by node
  std::vector<std::uint64_t> whole_;    ///< claimed devices that will not be shared, by node
};

class RoomMaker {
 public:
  RoomMaker(const FleetView& view, std::span<const MovableGang> movable, Placer& placer)
      : movable_(movable), placer_(placer), moved_(movable.size()), now_(view), trial_(view) {}

  std::optional<RoomPlan> plan(const RoomGoal& goal);

 private:
  /// The moves of a plan, or the gang that finds no other place.
  using MovesOrGang = tl::expected<std::vector<GangMove>, std::uint32_t>;

  [[nodiscard]] std::vector<Victim> victims();
  [[nodiscard]] MovesOrGang relocate(const PreemptionPlan& plan);
  void carry_out(const RoomPlan& plan);

  std::span<const MovableGang> movable_;
  Placer& placer_;
  std::vector<bool> moved_;           ///< by gang
  std::vector<std::uint32_t> gangs_;  ///< gangs of the victims
  FleetOverlay now_;                  ///< the fleet after the plans made so far
  FleetOverlay trial_;
};

std::vector<Victim> RoomMaker::victims() {
  gangs_.clear();
  std::vector<Victim> victims;
  for (std::uint32_t gang = 0; gang < movable_.size(); ++gang) {
    if (moved_[gang]) continue;
    gangs_.push_back(gang);
    victims.push_back({.gangs = std::span(&movable_[gang].held, 1), .cost = movable_[gang].cost});
  }
  return victims;
}

// Larger gangs first: they have fewer places to go to.
RoomMaker::MovesOrGang RoomMaker::relocate(const PreemptionPlan& plan) {
  std::vector<std::uint32_t> order;
  order.reserve(plan.yields.size());
  for (const Yield& yield : plan.yields) order.push_back(yield.victim);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return movable_[gangs_[a]].request->devices > movable_[gangs_[b]].request->devices;
  });
  trial_.reset(now_.view());
  Claim claim(trial_, plan.gangs);
  std::vector<GangMove> moves;
  for (const std::uint32_t victim : order) {
    const MovableGang& gang = movable_[gangs_[victim]];
    AllocationOrRefusal to = placer_.place(trial_.view(), *gang.request);
    if (!to) return tl::unexpected(victim);
    take(trial_, *to, gang.held.host);
    give_back(trial_, *gang.held.allocation, gang.held.host);
    claim.hide(*gang.held.allocation);
    moves.push_back({gangs_[victim], *std::move(to)});
  }
  return moves;
}

void RoomMaker::carry_out(const RoomPlan& plan) {
  for (const GangMove& move : plan.moves) {
    const HeldGang& held = movable_[move.gang].held;
    take(now_, move.to, held.host);
    give_back(now_, *held.allocation, held.host);
    moved_[move.gang] = true;
  }
  take(now_, plan.gangs);
}

std::optional<RoomPlan> RoomMaker::plan(const RoomGoal& goal) {
  const std::vector<Victim> all = victims();
  const PreemptionAsk ask{
      .place = goal.place,
      .object = [this](const PreemptionPlan& plan) -> std::optional<std::uint32_t> {
        const MovesOrGang moves = relocate(plan);
        return moves ? std::nullopt : std::optional(moves.error());
      },
      .devices = goal.devices,
      .cost_max = goal.gain - 1};
  std::optional<PreemptionPlan> found = plan_preemption(now_.view(), all, ask);
  if (!found) return std::nullopt;
  RoomPlan plan{.gain = goal.gain, .cost = found->cost};
  plan.moves = *relocate(*found);
  plan.gangs = std::move(found->gangs);
  carry_out(plan);
  return plan;
}

}  // namespace

std::vector<RoomPlan> make_room(const FleetView& view, std::span<const MovableGang> movable,
                                std::span<const RoomGoal> goals, Placer& placer) {
  RoomMaker maker(view, movable, placer);
  std::vector<RoomPlan> plans;
  for (std::uint32_t goal = 0; goal < goals.size(); ++goal) {
    std::optional<RoomPlan> plan = maker.plan(goals[goal]);
    if (!plan || plan->moves.empty()) continue;
    plan->goal = goal;
    plans.push_back(*std::move(plan));
  }
  return plans;
}

}  // namespace orrery
