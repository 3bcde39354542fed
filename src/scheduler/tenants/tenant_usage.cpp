#include "scheduler/tenants/tenant_usage.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/numbers/math.hpp"

namespace orrery {
namespace {

void change_holding(std::vector<Holding>& holdings, const UsageChange& change) {
  const auto at = std::lower_bound(
      holdings.begin(), holdings.end(), change, [](const Holding& held, const UsageChange& wanted) {
        return held.priority != wanted.priority ? held.priority > wanted.priority
                                                : held.type < wanted.type;
      });
  const bool found =
      at != holdings.end() && at->priority == change.priority && at->type == change.type;
  if (!found) {
    ORRERY_ASSERT(change.devices >= 0, "what is given back was held");
    holdings.insert(at, {change.priority, change.type, change.devices});
    return;
  }
  at->devices += change.devices;
  ORRERY_ASSERT(at->devices >= 0, "no more is given back than was held");
  if (at->devices == 0) holdings.erase(at);
}

}  // namespace

TenantUsage::TenantUsage(const TenantTree& tree)
    : tree_(&tree),
      used_(std::size_t{tree.size()} * tree.columns(), 0),
      recent_(used_.size(), 0),
      holdings_(tree.size()) {}

void TenantUsage::apply(const UsageChange& change) {
  ORRERY_ASSERT(change.type.valid(), "devices are of a type");
  if (change.devices == 0) return;
  for (TenantId at = change.tenant; at.valid(); at = tree_->parent(at)) {
    change_holding(holdings_[at.value()], change);
    used_[cell(at, change.type)] += change.devices;
    used_[cell(at, kAllTypes)] += change.devices;
  }
}

void TenantUsage::advance(Duration time) {
  constexpr double kLn2 = 0.6931471805599453;
  const double lives = time.count_seconds() / tree_->half_life().count_seconds();
  // The integral of devices under the decay, over the same integral of one device.
  const double fresh = -math::expm1(-kLn2 * lives);
  for (std::size_t i = 0; i < recent_.size(); ++i) {
    recent_[i] += (static_cast<double>(used_[i]) - recent_[i]) * fresh;
  }
}

TenantUsage TenantUsage::under(const TenantTree& tree) const {
  ORRERY_ASSERT(tree.size() == tree_->size() && tree.columns() == tree_->columns(),
                "the trees are of the same tenants");
  TenantUsage usage = *this;
  usage.tree_ = &tree;
  return usage;
}

std::int64_t TenantUsage::used_at_least(TenantId tenant, FleetTypeId type,
                                        std::int32_t priority) const {
  std::int64_t devices = 0;
  for (const Holding& held : holdings(tenant)) {
    if (held.priority < priority) break;
    if (!type.valid() || held.type == type) devices += held.devices;
  }
  return devices;
}

Room TenantUsage::room(TenantId tenant, FleetTypeId type) const {
  Room room;
  const auto bind = [&room](const Room& bound) {
    if (bound.devices < room.devices) room = bound;
  };
  TenantId tied;  // may not borrow; no guarantee on which it could draw was found yet
  for (TenantId at = tenant; at.valid(); at = tree_->parent(at)) {
    for (const FleetTypeId column : {type, kAllTypes}) {
      const std::int64_t limit = tree_->limit(at, column);
      if (limit == kUnlimited) continue;
      bind({std::max<std::int64_t>(0, limit - used(at, column)), RoomBound::kLimit, at, column});
    }
    if (!tree_->may_borrow(at) && !tied.valid()) tied = at;
    if (!tied.valid()) continue;
    if (const std::optional<std::int64_t> left = covered(at, type)) {
      bind({std::max<std::int64_t>(0, *left), RoomBound::kGuarantee, at, type});
      tied = TenantId();
    }
  }
  if (tied.valid()) bind({0, RoomBound::kGuarantee, tied, type});
  return room;
}

std::optional<std::int64_t> TenantUsage::covered(TenantId tenant, FleetTypeId type) const {
  std::optional<std::int64_t> most;
  for (const FleetTypeId column : {type, kAllTypes}) {
    const std::optional<std::int64_t> floor = tree_->guarantee(tenant, column);
    if (!floor) continue;
    const std::int64_t left = *floor - used(tenant, column);
    if (!most || left > *most) most = left;
  }
  return most;
}

bool TenantUsage::entitled(TenantId tenant, FleetTypeId type, std::int64_t devices,
                           TenantId against) const {
  bool guaranteed = false;
  const TenantId shared = tree_->common_ancestor(tenant, against);
  for (TenantId at = tenant; at != shared; at = tree_->parent(at)) {
    const std::optional<std::int64_t> left = covered(at, type);
    if (!left) continue;
    if (*left < devices) return false;
    guaranteed = true;
  }
  return guaranteed;
}

double TenantUsage::share(TenantId tenant, TenantId beside, FleetTypeId type) const {
  const TenantId shared = tree_->common_ancestor(tenant, beside);
  TenantId at = tenant;
  while (at != shared && tree_->parent(at) != shared) at = tree_->parent(at);
  return (static_cast<double>(used(at, type)) + recent(at, type)) / tree_->weight(at);
}

bool TenantUsage::within_limits(TenantId tenant, FleetTypeId type) const {
  bool tied = false;
  for (TenantId at = tenant; at.valid(); at = tree_->parent(at)) {
    for (const FleetTypeId column : {type, kAllTypes}) {
      if (used(at, column) > tree_->limit(at, column)) return false;
    }
    tied = tied || !tree_->may_borrow(at);
    const std::optional<std::int64_t> left = tied ? covered(at, type) : std::nullopt;
    if (left && *left < 0) return false;
    tied = tied && !left;
  }
  return true;
}

std::int64_t TenantUsage::above_guarantee(TenantId tenant, FleetTypeId type,
                                          TenantId claimant) const {
  std::int64_t devices = used(tenant, type);
  const TenantId shared = tree_->common_ancestor(tenant, claimant);
  for (TenantId at = tenant; at != shared; at = tree_->parent(at)) {
    for (const FleetTypeId column : {type, kAllTypes}) {
      const std::optional<std::int64_t> floor = tree_->guarantee(at, column);
      if (floor) devices = std::min(devices, used(at, column) - *floor);
    }
  }
  return std::max<std::int64_t>(0, devices);
}

}  // namespace orrery
