// scheduler/tenants/tenant_tree.hpp - the tenants of a fleet, resolved: dense ids, weights,
// guarantees, limits.
//
// Built by build_tenant_tree from a Tenants file and the fleet it is for; immutable, so any thread
// may read. Counts are of accelerators, by type of the fleet or of all types together (kAllTypes).
//
// A guarantee is a floor: so many accelerators of the type, or so many in all, belong to the tenant
// as soon as it has work for them. A tenant that states none has the sum of its children's; a
// stated guarantee must cover its children's. A tenant without a guarantee of a type, its own or of
// its children, uses what the tenants above it have. A limit is a ceiling, `borrow_limit` included.
//
// Invariant: id 0 is the root and the fleet itself, with neither guarantee nor limit; parents have
// smaller ids than their children, siblings have adjacent ids; the guarantees of siblings fit
// together into their parent's, those of the top level into the fleet, and each is within its
// limit.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/id.hpp"
#include "base/time.hpp"
#include "fleet/topology.hpp"
#include "scheduler/tenants/tenants_spec.hpp"

namespace orrery {

using TenantId = Id<struct TenantTag>;

/// Used in place of a type: all types together.
inline constexpr FleetTypeId kAllTypes{};

/// The value of a limit where there is none.
inline constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

class TenantTree {
 public:
  [[nodiscard]] static constexpr TenantId root() { return TenantId(0); }

  /// Number of tenants, the root included.
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(tenants_.size()); }
  [[nodiscard]] std::uint32_t type_count() const { return columns_ - 1; }
  /// Tables by tenant have a column for each type and a last one for all types together.
  [[nodiscard]] std::uint32_t columns() const { return columns_; }
  [[nodiscard]] std::uint32_t column(FleetTypeId type) const {
    return type.valid() ? type.value() : columns_ - 1;
  }

  /// "research/vision"; "" for the root.
  [[nodiscard]] const std::string& path(TenantId id) const { return at(id).path; }
  /// Invalid for the root.
  [[nodiscard]] TenantId parent(TenantId id) const { return at(id).parent; }
  [[nodiscard]] TenantId first_child(TenantId id) const { return at(id).first_child; }
  [[nodiscard]] std::uint32_t children(TenantId id) const { return at(id).children; }
  [[nodiscard]] bool is_leaf(TenantId id) const { return at(id).children == 0; }
  /// The lowest tenant that is above both or is one of them. O(depth).
  [[nodiscard]] TenantId common_ancestor(TenantId a, TenantId b) const;

  /// Weight of the tenant's share relative to its siblings'; positive.
  [[nodiscard]] double weight(TenantId id) const { return at(id).weight; }
  /// Whether the tenant may hold more than is guaranteed.
  [[nodiscard]] bool may_borrow(TenantId id) const { return at(id).borrow; }
  [[nodiscard]] std::optional<std::int64_t> guarantee(TenantId id, FleetTypeId type) const {
    return guarantees_[cell(id, type)];
  }
  [[nodiscard]] std::int64_t limit(TenantId id, FleetTypeId type) const {
    return limits_[cell(id, type)];
  }
  /// POSIX user as which the tenant's jobs run: its own, or that of the nearest tenant above it
  /// that names one; empty if none does.
  [[nodiscard]] const std::string& run_as(TenantId id) const { return at(id).run_as; }
  /// Time in which past usage loses half its weight.
  [[nodiscard]] Duration half_life() const { return half_life_; }

  /// The tree in which a tenant may take so many more devices of a type: every limit on its path is
  /// raised by that number, and every tenant on the path may borrow.
  [[nodiscard]] TenantTree with_room(TenantId tenant, FleetTypeId type, std::int64_t devices) const;

  /// The tenant with that path; "" is not found.
  [[nodiscard]] std::optional<TenantId> find(std::string_view path) const;
  /// The tenant that a job names; jobs belong to tenants without children. Errors at `where` name
  /// the nearest tenant, or the children.
  [[nodiscard]] Result<TenantId> job_tenant(std::string_view path,
                                            const SourcePosition& where) const;

 private:
  friend class TenantTreeBuilder;

  struct Tenant {
    std::string path;
    TenantId parent;
    TenantId first_child;
    std::uint32_t children = 0;
    double weight = 1;
    bool borrow = true;
    std::string run_as;
  };

  [[nodiscard]] const Tenant& at(TenantId id) const { return tenants_[id.value()]; }
  [[nodiscard]] std::size_t cell(TenantId id, FleetTypeId type) const {
    return std::size_t{id.value()} * columns_ + column(type);
  }

  std::vector<Tenant> tenants_;
  std::vector<std::optional<std::int64_t>> guarantees_;  ///< by tenant, then column
  std::vector<std::int64_t> limits_;
  std::map<std::string, TenantId, std::less<>> by_path_;
  std::uint32_t columns_ = 1;
  Duration half_life_;
};

/// Builds the tree of a file for a fleet. Errors with file:line:column: a type that the fleet does
/// not have (with the nearest), a guarantee above a limit, guarantees of children above their
/// parent's, or of the top level above what the fleet has. O(tenants x types).
[[nodiscard]] Result<TenantTree> build_tenant_tree(const TenantsSpec& spec,
                                                   const Topology& topology);

/// The tree of a fleet without a Tenants file: the root and one tenant, "default".
[[nodiscard]] TenantTree default_tenant_tree(const Topology& topology);

}  // namespace orrery
