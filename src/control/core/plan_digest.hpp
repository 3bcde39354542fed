// control/core/plan_digest.hpp - what a log keeps of an entry of the plan table: enough to notice
// that the search now finds something else than when the log was written.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "scheduler/plans/plan_table.hpp"

namespace orrery {

struct PlansFound {
  std::uint64_t plans = 0;
  double step_seconds = 0;  ///< step time of the best plan

  friend bool operator==(const PlansFound&, const PlansFound&) = default;
};

/// The first alternative: there was no entry.
using PlanDigest = std::variant<std::monostate, PlansFound, RejectionKind>;

[[nodiscard]] PlanDigest digest_of(const PlanEntry* entry);

/// "3 plans, the best of 1.5 s a step", "no plan (memory)", "nothing".
[[nodiscard]] std::string print_digest(const PlanDigest& digest);

}  // namespace orrery
