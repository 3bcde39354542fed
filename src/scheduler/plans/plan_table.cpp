#include "scheduler/plans/plan_table.hpp"

#include <algorithm>

namespace orrery {

const PlanEntry* PlanTable::find(const PlanKey& key) const {
  if (key.work.value() >= by_work_.size()) return nullptr;
  const std::vector<Slot>& slots = by_work_[key.work.value()];
  const auto at = std::lower_bound(slots.begin(), slots.end(), key,
                                   [](const Slot& slot, const PlanKey& k) { return slot.key < k; });
  return at == slots.end() || at->key != key ? nullptr : &at->entry;
}

void PlanTable::put(const PlanKey& key, PlanEntry entry) {
  if (key.work.value() >= by_work_.size()) by_work_.resize(key.work.value() + std::size_t{1});
  std::vector<Slot>& slots = by_work_[key.work.value()];
  const auto at = std::lower_bound(slots.begin(), slots.end(), key,
                                   [](const Slot& slot, const PlanKey& k) { return slot.key < k; });
  if (at != slots.end() && at->key == key) {
    at->entry = std::move(entry);
    return;
  }
  slots.insert(at, {key, std::move(entry)});
  ++size_;
}

std::optional<Repriced> reprice(const PlannedWork& work, const Placement& placement) {
  if (const PlannedService* service = work.service()) {
    const double instance = devices_of(service->layout);
    if (placement.domain_ranks > 0 && placement.domain_ranks < instance) return std::nullopt;
    return Repriced{.step_seconds = work.step_seconds};
  }
  const bool apart = placement.domain_ranks < work.devices;
  if (apart && placement.tier == NetworkTier::kNone) return std::nullopt;
  const PlannedTraining& training = *work.training();
  // The canonical piece is priced with the oversubscription of its own network, which is replaced
  // by the quality of the real links.
  Placement there = placement;
  there.scale_out_quality /= training.scale_out_quality;
  const double seconds = training.model->reprice(training.plan, there).total();
  return Repriced{.step_seconds = seconds, .ratio = seconds / work.step_seconds};
}

}  // namespace orrery
