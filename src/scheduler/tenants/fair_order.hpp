// scheduler/tenants/fair_order.hpp - the order of tenants: which tenant's next job goes first.
//
// The order goes from the root down, among the children with waiting jobs: first those whose own
// guarantee covers a device of a type that their jobs wait for, then the smallest share; ties by
// ascending id. A tenant's share is what it holds and held lately (TenantUsage::recent) over the
// fleet's devices, of the type where that is most, divided by the tenant's weight.
//
// Built once a pass; the usage must outlive it and be the one that the pass edits. Invariant: the
// waiting children of each tenant are a heap, whose keys match the usage. Cost: O(tenants) to clear
// and O(waiting x (depth + types)) to build; next O(depth); the others O(depth x (types + log
// children)).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/tenants/tenant_usage.hpp"

namespace orrery {

/// A tenant has waiting jobs that may run on a type.
struct Waiting {
  TenantId tenant;
  FleetTypeId type;
};

class FairOrder {
 public:
  /// `capacity`: devices of each type. `waiting`: one for each tenant and type; tenants without
  /// children only.
  FairOrder(const TenantUsage& usage, std::span<const std::int64_t> capacity,
            std::span<const Waiting> waiting);

  /// The tenant whose job is next; it stays so until usage_changed() or exhausted() changes that.
  [[nodiscard]] std::optional<TenantId> next() const;
  /// The usage of a tenant changed: one of its jobs started or was preempted.
  void usage_changed(TenantId tenant);
  /// A tenant has no more waiting jobs to try.
  void exhausted(TenantId tenant);

 private:
  static constexpr std::uint32_t kAbsent = 0xffffffff;

  struct Key {
    std::uint8_t rank = 1;  ///< 0: below its guarantee
    double share = 0;
  };

  [[nodiscard]] std::size_t cell(TenantId tenant, std::uint32_t type) const {
    return std::size_t{tenant.value()} * usage_.tree().type_count() + type;
  }
  [[nodiscard]] bool waits(TenantId tenant) const { return slot_[tenant.value()] != kAbsent; }
  [[nodiscard]] Key key_of(TenantId tenant) const;
  [[nodiscard]] bool precedes(TenantId a, TenantId b) const;

  // The heap of a tenant's children: positions [0, live) from the id of its first child on.
  void put(TenantId parent, std::uint32_t position, TenantId child);
  void sift_up(TenantId parent, std::uint32_t position);
  void sift_down(TenantId parent, std::uint32_t position);
  void remove(TenantId child);

  const TenantUsage& usage_;
  std::vector<std::int64_t> capacity_;
  std::vector<std::uint32_t> wanted_;  ///< waiting tenants at or below, by tenant, then type
  std::vector<Key> keys_;
  std::vector<TenantId> heap_;
  std::vector<std::uint32_t> slot_;  ///< position of a tenant in its parent's heap
  std::vector<std::uint32_t> live_;  ///< children that wait
};

}  // namespace orrery
