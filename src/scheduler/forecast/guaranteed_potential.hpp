// scheduler/forecast/guaranteed_potential.hpp - what every preemption must raise, so that
// preemption ends.
//
// The potential of a usage is, from the highest priority p to the lowest,
//   E(p)  over tenants and guarantees (types, and all types), min(held at priority >= p, guarantee)
//   U(p)  devices held at priority >= p
// compared entry by entry. From a frozen queue there are finitely many usages, and an accepted plan
// leads to one of a greater potential: no sequence of plans is endless, whatever rule makes them.
//
// A rise alone would let a larger job preempt a smaller one of equal rights, so the plan must also
// be rightful: see PreemptionVerdict. Pure; no state.
#pragma once

#include <compare>
#include <cstdint>
#include <span>

#include "scheduler/tenants/tenant_usage.hpp"

namespace orrery {

enum class PreemptionVerdict : std::uint8_t {
  kAccepted,
  kNoGain,  ///< the potential does not rise
  /// The plan preempts work of the same or a higher priority in its own tenant, or for a tenant
  /// whose guarantees do not cover what it takes.
  kNoRight,
  kBelowGuarantee,  ///< a tenant that only gives is left with less than its guarantee
};

/// Compares the potential after `changes` with that before. O(changes x depth x priorities).
[[nodiscard]] std::strong_ordering compare_potential(const TenantUsage& before,
                                                     std::span<const UsageChange> changes);

/// Judges whether a plan of takes (positive changes) and gives (negative) may be carried out.
/// O(takes x gives x depth) beside the comparison.
[[nodiscard]] PreemptionVerdict judge_preemption(const TenantUsage& before,
                                                 std::span<const UsageChange> changes);

/// Whether a tenant that takes nothing is left with less than its guarantee. O(changes x depth).
[[nodiscard]] bool breaks_guarantee(const TenantUsage& before,
                                    std::span<const UsageChange> changes);

}  // namespace orrery
