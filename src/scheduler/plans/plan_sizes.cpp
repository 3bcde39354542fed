#include "scheduler/plans/plan_sizes.hpp"

namespace orrery {

const std::vector<std::uint32_t>& PlanSizes::counts(const PlanKey& key, const Work& work,
                                                    const CountRange& range) {
  const auto [at, fresh] = counts_.try_emplace(Range(key.work, key.type, range.min, range.max));
  if (fresh) at->second = counts_for(sources_, work, key.type, range);
  return at->second;
}

const std::optional<Rejection>& PlanSizes::refusal(const PlanKey& key, const Work& work) {
  const auto [at, fresh] = refusals_.try_emplace(key);
  if (fresh) {
    PlanEntry entry = plan_work(sources_, work, {key.type, key.devices}, 1);
    if (!entry) at->second = std::move(entry.error());
  }
  return at->second;
}

}  // namespace orrery
