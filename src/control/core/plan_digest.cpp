// control/core/plan_digest.cpp - computes and prints digests of plan entries.
#include "control/core/plan_digest.hpp"

#include <fmt/format.h>

namespace orrery {

PlanDigest digest_of(const PlanEntry* entry) {
  if (entry == nullptr) return std::monostate{};
  if (!*entry) return entry->error().kind;
  return PlansFound{.plans = (*entry)->size(),
                    .step_seconds = (*entry)->empty() ? 0 : (*entry)->front().step_seconds};
}

std::string print_digest(const PlanDigest& digest) {
  if (const auto* found = std::get_if<PlansFound>(&digest)) {
    return fmt::format("{} plans, the best of {} s a step", found->plans, found->step_seconds);
  }
  if (const auto* refused = std::get_if<RejectionKind>(&digest)) {
    return fmt::format("no plan ({})", name_of(*refused));
  }
  return "nothing";
}

}  // namespace orrery
