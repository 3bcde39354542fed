#include "scheduler/forecast/guaranteed_potential.hpp"

#include <algorithm>
#include <functional>
#include <vector>

namespace orrery {
namespace {

// The effect of a change on one guarantee.
struct Shift {
  TenantId tenant;
  FleetTypeId column;
  std::int32_t priority = 0;
  std::int64_t devices = 0;
};

bool before_in_table(const Shift& a, const Shift& b) {
  return a.tenant != b.tenant ? a.tenant < b.tenant : a.column < b.column;
}

// The usage after some changes, as far as it concerns guarantees.
class ChangedUsage {
 public:
  ChangedUsage(const TenantUsage& before, std::span<const UsageChange> changes)
      : before_(before), tree_(before.tree()), changes_(changes) {
    for (const UsageChange& change : changes) {
      for (TenantId at = change.tenant; at.valid(); at = tree_.parent(at)) {
        for (const FleetTypeId column : {change.type, kAllTypes}) {
          if (!tree_.guarantee(at, column)) continue;
          shifts_.push_back({at, column, change.priority, change.devices});
        }
      }
    }
    std::stable_sort(shifts_.begin(), shifts_.end(), before_in_table);
  }

  [[nodiscard]] std::strong_ordering potential() const {
    for (const std::int32_t priority : priorities()) {
      const std::int64_t guaranteed = guaranteed_rise(priority);
      if (guaranteed != 0) return guaranteed <=> 0;
      std::int64_t held = 0;
      for (const UsageChange& change : changes_) {
        if (change.priority >= priority) held += change.devices;
      }
      if (held != 0) return held <=> 0;
    }
    return std::strong_ordering::equal;
  }

  // Whether the tenant of `take` has a right to what it takes against the tenant of `give`.
  [[nodiscard]] bool has_right(const UsageChange& take, const UsageChange& give) const {
    bool guaranteed = false;
    const TenantId shared = tree_.common_ancestor(take.tenant, give.tenant);
    for (TenantId at = take.tenant; at != shared; at = tree_.parent(at)) {
      const bool of_type = tree_.guarantee(at, take.type).has_value();
      const bool of_all = tree_.guarantee(at, kAllTypes).has_value();
      if (!of_type && !of_all) continue;
      guaranteed = true;
      const bool covered =
          (of_type && above(at, take.type) <= 0) || (of_all && above(at, kAllTypes) <= 0);
      if (!covered) return false;
    }
    return guaranteed;
  }

  // Whether a tenant that takes nothing falls below its guarantee.
  [[nodiscard]] bool breaks_guarantee() const {
    std::vector<TenantId> takers;
    for (const UsageChange& change : changes_) {
      if (change.devices <= 0) continue;
      for (TenantId at = change.tenant; at.valid(); at = tree_.parent(at)) takers.push_back(at);
    }
    std::sort(takers.begin(), takers.end());
    return std::any_of(shifts_.begin(), shifts_.end(), [&](const Shift& shift) {
      return !std::binary_search(takers.begin(), takers.end(), shift.tenant) &&
             above(shift.tenant, shift.column) < 0;
    });
  }

 private:
  [[nodiscard]] std::span<const Shift> shifts_of(TenantId tenant, FleetTypeId column) const {
    const auto [first, last] =
        std::equal_range(shifts_.begin(), shifts_.end(), Shift{tenant, column}, before_in_table);
    return {first, last};
  }

  // Devices held after the changes beyond a guarantee. Precondition: the guarantee exists.
  [[nodiscard]] std::int64_t above(TenantId tenant, FleetTypeId column) const {
    std::int64_t devices = before_.used(tenant, column) - *tree_.guarantee(tenant, column);
    for (const Shift& shift : shifts_of(tenant, column)) devices += shift.devices;
    return devices;
  }

  // The priorities at which an entry of the potential can differ, from high to low.
  [[nodiscard]] std::vector<std::int32_t> priorities() const {
    std::vector<std::int32_t> found;
    for (const UsageChange& change : changes_) found.push_back(change.priority);
    if (found.empty()) return found;
    const std::int32_t highest = *std::max_element(found.begin(), found.end());
    TenantId last;
    for (const Shift& shift : shifts_) {
      if (shift.tenant == last) continue;
      last = shift.tenant;
      for (const Holding& held : before_.holdings(last)) {
        if (held.priority < highest) found.push_back(held.priority);
      }
    }
    std::sort(found.begin(), found.end(), std::greater<>());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  // The change of E at a priority.
  [[nodiscard]] std::int64_t guaranteed_rise(std::int32_t priority) const {
    std::int64_t rise = 0;
    for (auto at = shifts_.begin(); at != shifts_.end();) {
      const auto [tenant, column, unused, none] = *at;
      std::int64_t shifted = 0;
      for (const Shift& shift : shifts_of(tenant, column)) {
        if (shift.priority >= priority) shifted += shift.devices;
        ++at;
      }
      if (shifted == 0) continue;
      const std::int64_t held = before_.used_at_least(tenant, column, priority);
      const std::int64_t guarantee = *tree_.guarantee(tenant, column);
      rise += std::min(held + shifted, guarantee) - std::min(held, guarantee);
    }
    return rise;
  }

  const TenantUsage& before_;
  const TenantTree& tree_;
  std::span<const UsageChange> changes_;
  std::vector<Shift> shifts_;
};

}  // namespace

std::strong_ordering compare_potential(const TenantUsage& before,
                                       std::span<const UsageChange> changes) {
  return ChangedUsage(before, changes).potential();
}

bool breaks_guarantee(const TenantUsage& before, std::span<const UsageChange> changes) {
  return ChangedUsage(before, changes).breaks_guarantee();
}

PreemptionVerdict judge_preemption(const TenantUsage& before,
                                   std::span<const UsageChange> changes) {
  const ChangedUsage after(before, changes);
  if (after.potential() != std::strong_ordering::greater) return PreemptionVerdict::kNoGain;
  for (const UsageChange& take : changes) {
    if (take.devices <= 0) continue;
    for (const UsageChange& give : changes) {
      if (give.devices >= 0 || give.priority < take.priority) continue;
      if (!after.has_right(take, give)) return PreemptionVerdict::kNoRight;
    }
  }
  if (after.breaks_guarantee()) return PreemptionVerdict::kBelowGuarantee;
  return PreemptionVerdict::kAccepted;
}

}  // namespace orrery
