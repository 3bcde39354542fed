// scheduler/pass/usage_edits.hpp - what tenants hold, as a pass leaves it.
//
// Belongs to one pass. A job that is stopping has already left, and a job already holds the devices
// kept for it. The usage of the situation is copied at the first edit. Invariant: answers that
// depend on usage stay valid while changes() stays the same.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/policy.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

class UsageEdits {
 public:
  /// A value that changes() never has.
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  UsageEdits(const Situation& situation, const Policy& policy)
      : usage_(situation.usage), policy_(policy) {}

  /// The usage as the pass leaves it; the reference is valid until the next change. Precondition:
  /// the situation has usage.
  [[nodiscard]] const TenantUsage& now() const { return copy_ ? *copy_ : *usage_; }
  /// Returns now() as a reference that stays valid and shows all later changes. Precondition: the
  /// situation has usage.
  [[nodiscard]] const TenantUsage& live() { return edit(); }

  /// Does nothing in a situation without usage.
  void apply(const UsageChange& change);
  enum class Held { kMore, kLess };
  void count(const JobRequest& job, std::span<const PlacedGang> gangs, Held held);

  /// The number of changes applied.
  [[nodiscard]] std::uint64_t changes() const { return changes_; }
  /// The tenants whose usage changed since forget_changed().
  [[nodiscard]] std::span<const TenantId> changed() const { return changed_; }
  void forget_changed() { changed_.clear(); }

  /// Whether quotas let the job have each of its options.
  [[nodiscard]] bool may_take_any(const JobRequest& request) const;

 private:
  [[nodiscard]] TenantUsage& edit();

  const TenantUsage* usage_;  ///< of the situation
  const Policy& policy_;
  std::optional<TenantUsage> copy_;  ///< once the pass edits it
  std::uint64_t changes_ = 0;
  std::vector<TenantId> changed_;
};

}  // namespace orrery
