// scheduler/tenants/tenant_usage.hpp - what tenants hold now and held recently, and what they may
// take.
//
// A value; the tree must outlive it. A copy allocates once for each tenant that holds something, so
// a pass applies a hypothesis and reverts it rather than copying. What a tenant holds also counts
// for every tenant above it, up to the root.
//
// Past usage is a mean of the devices held, in which the weight of a moment halves with every half
// life that has passed since; times half_life / ln 2 it is decayed usage in device-seconds.
//
// Entitlement and reclaim:
// - A tenant's guarantee covers a device if the floor of its type or that of all types has room.
// - A tenant is entitled to a device if every guarantee on its path covers it and there is at least
//   one. So a tenant without a guarantee shares in what is guaranteed above it, and the tenants
//   below another are never entitled to more than is guaranteed to that one.
// - Reclaim may take what is above the floors, of the type and of all types, of each tenant on the
//   victim's path.
// - Between two tenants only the parts of their paths below their common ancestor count, as nothing
//   above it loses or gains: inside a full group, a child's entitlement holds against its siblings.
//
// Invariant: used(t) is the sum over t's children for every tenant that has some.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.hpp"
#include "scheduler/tenants/tenant_tree.hpp"

namespace orrery {

/// Devices taken (positive) or given back (negative) by work of one priority.
struct UsageChange {
  TenantId tenant;
  FleetTypeId type;
  std::int32_t priority = 0;
  std::int64_t devices = 0;
};

/// Devices of one type held by work of one priority.
struct Holding {
  std::int32_t priority = 0;
  FleetTypeId type;
  std::int64_t devices = 0;
};

/// What prevents a tenant from taking more.
enum class RoomBound : std::uint8_t {
  kNone,
  kLimit,
  kGuarantee,  ///< the tenant, or one above it, may not borrow
};

struct Room {
  std::int64_t devices = kUnlimited;
  RoomBound bound = RoomBound::kNone;
  TenantId tenant;   ///< owner of the limit or guarantee; the lowest in the tree among equals
  FleetTypeId type;  ///< the type it is for, or kAllTypes
};

class TenantUsage {
 public:
  explicit TenantUsage(const TenantTree& tree);

  [[nodiscard]] const TenantTree& tree() const { return *tree_; }

  /// Precondition: the change names a type and gives back no more than is held at that priority.
  /// O(depth x holdings of a tenant).
  void apply(const UsageChange& change);
  /// Advances by a time in which nothing changed: two steps have the same result as one step of
  /// their sum. O(tenants x types).
  void advance(Duration time);

  [[nodiscard]] std::int64_t used(TenantId tenant, FleetTypeId type) const {
    return used_[cell(tenant, type)];
  }
  /// Devices used by work of that priority or a higher one. O(holdings of the tenant).
  [[nodiscard]] std::int64_t used_at_least(TenantId tenant, FleetTypeId type,
                                           std::int32_t priority) const;
  /// Holdings by descending priority, then by type.
  [[nodiscard]] std::span<const Holding> holdings(TenantId tenant) const {
    return holdings_[tenant.value()];
  }
  /// Mean number of devices held recently.
  [[nodiscard]] double recent(TenantId tenant, FleetTypeId type) const {
    return recent_[cell(tenant, type)];
  }

  /// Sets the mean from another usage: one from before a change of tenants, or a stored one.
  void set_recent(TenantId tenant, FleetTypeId type, double devices) {
    recent_[cell(tenant, type)] = devices;
  }

  /// This usage under another tree with the same tenants, which must outlive it.
  [[nodiscard]] TenantUsage under(const TenantTree& tree) const;

  /// How many more devices of a type the tenant may take by its path, guaranteed or borrowed.
  /// O(depth).
  [[nodiscard]] Room room(TenantId tenant, FleetTypeId type) const;
  /// How many more devices of a type the tenant's own guarantee covers: zero or less (it borrows)
  /// gives no entitlement; no value if it has no guarantee of the type.
  [[nodiscard]] std::optional<std::int64_t> covered(TenantId tenant, FleetTypeId type) const;
  /// Whether the tenant is entitled to `devices` more against another tenant; the root stands for
  /// any other tenant. For a plan that preempts, call this on the usage without its victims.
  /// O(depth).
  [[nodiscard]] bool entitled(TenantId tenant, FleetTypeId type, std::int64_t devices,
                              TenantId against = TenantTree::root()) const;
  /// Devices of a type that a tenant holds and held recently, over its weight, to be compared with
  /// that of `beside`: taken of the tenant on its path just below their common ancestor. O(depth).
  [[nodiscard]] double share(TenantId tenant, TenantId beside, FleetTypeId type) const;
  /// Whether the tenant's path permits what it holds of a type. O(depth).
  [[nodiscard]] bool within_limits(TenantId tenant, FleetTypeId type) const;
  /// Devices that may be reclaimed from a tenant for another; the root stands for any other tenant.
  /// O(depth).
  [[nodiscard]] std::int64_t above_guarantee(TenantId tenant, FleetTypeId type,
                                             TenantId claimant = TenantTree::root()) const;

 private:
  [[nodiscard]] std::size_t cell(TenantId tenant, FleetTypeId type) const {
    return std::size_t{tenant.value()} * tree_->columns() + tree_->column(type);
  }

  const TenantTree* tree_;
  std::vector<std::int64_t> used_;  ///< by tenant, then column
  std::vector<double> recent_;
  std::vector<std::vector<Holding>> holdings_;
};

}  // namespace orrery
