// scheduler/tenant_usage.hpp - what tenants hold now and held lately, and what they may take.
//
// A value that belongs to whoever holds it; the tree must outlive it. A copy allocates once a
// tenant that holds something, so a pass applies a hypothesis and takes it back rather than
// copying. What a tenant holds counts for every tenant above it too, up to the root.
//
// Past usage is a mean of the devices held, in which a moment counts half as much for every half
// life that it lies back; times half_life / ln 2 it is decayed usage in device-seconds.
//
// Who has a right to what:
// - A tenant's guarantee covers a device if the floor of its type or that of all types has room.
// - A device is a tenant's right if every guarantee on its path covers it and there is one. So a
//   tenant without a guarantee shares in what is guaranteed above it, and nobody gets by right more
//   than is guaranteed to a tenant above, whoever below it came first.
// - Reclaim may take what is above the floors, of the type and of all types, of each tenant on the
//   victim's path.
// - Between two tenants only what lies below both paths' meeting counts, as nothing above it loses
//   or gains: inside a full group, one child's right is still honoured by its siblings.
//
// Invariant: used(t) is the sum over t's children for every tenant that has some.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.hpp"
#include "scheduler/tenant_tree.hpp"

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

/// What keeps a tenant from taking more.
enum class RoomBound : std::uint8_t {
  kNone,
  kLimit,
  kGuarantee,  ///< it, or a tenant above it, may not borrow
};

struct Room {
  std::int64_t devices = kUnlimited;
  RoomBound bound = RoomBound::kNone;
  TenantId tenant;   ///< whose limit or guarantee it is; among equals the lowest in the tree
  FleetTypeId type;  ///< the type it is for, or kAllTypes
};

class TenantUsage {
 public:
  explicit TenantUsage(const TenantTree& tree);

  [[nodiscard]] const TenantTree& tree() const { return *tree_; }

  /// Precondition: a type, and no more given back than is held at that priority.
  /// O(depth x holdings of a tenant).
  void apply(const UsageChange& change);
  /// Lets time pass in which nothing changed: two steps give what one of their sum gives.
  /// O(tenants x types).
  void advance(Duration time);

  [[nodiscard]] std::int64_t used(TenantId tenant, FleetTypeId type) const {
    return used_[cell(tenant, type)];
  }
  /// By work of that priority or a higher one. O(holdings of the tenant).
  [[nodiscard]] std::int64_t used_at_least(TenantId tenant, FleetTypeId type,
                                           std::int32_t priority) const;
  /// By priority from high to low, then by type.
  [[nodiscard]] std::span<const Holding> holdings(TenantId tenant) const {
    return holdings_[tenant.value()];
  }
  /// Mean devices held lately.
  [[nodiscard]] double recent(TenantId tenant, FleetTypeId type) const {
    return recent_[cell(tenant, type)];
  }

  /// Takes up a mean of another usage: one of before a change of tenants, or a kept one.
  void set_recent(TenantId tenant, FleetTypeId type, double devices) {
    recent_[cell(tenant, type)] = devices;
  }

  /// The same usage under another tree of the same tenants, which must outlive it.
  [[nodiscard]] TenantUsage under(const TenantTree& tree) const;

  /// How many more devices of a type its path lets a tenant take, guaranteed or borrowed. O(depth).
  [[nodiscard]] Room room(TenantId tenant, FleetTypeId type) const;
  /// How many more devices of a type the tenant's own guarantee covers: none or fewer (it borrows)
  /// are no right; no value where it has no guarantee of the type.
  [[nodiscard]] std::optional<std::int64_t> covered(TenantId tenant, FleetTypeId type) const;
  /// Whether `devices` more are the tenant's right against another, the root standing for anybody.
  /// For a plan that preempts, ask the usage without its victims. O(depth).
  [[nodiscard]] bool entitled(TenantId tenant, FleetTypeId type, std::int64_t devices,
                              TenantId against = TenantTree::root()) const;
  /// Devices of a type that a tenant holds and held lately, over its weight, to be compared with
  /// another's: of the tenant on its path below the one where both paths meet. O(depth).
  [[nodiscard]] double share(TenantId tenant, TenantId beside, FleetTypeId type) const;
  /// Whether its path lets a tenant hold what it holds of a type. O(depth).
  [[nodiscard]] bool within_limits(TenantId tenant, FleetTypeId type) const;
  /// Devices that may be reclaimed from a tenant for another, the root standing for anybody.
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
