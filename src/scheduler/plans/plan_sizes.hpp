// scheduler/plans/plan_sizes.hpp - which sizes of a gang have a plan, each searched for once.
//
// A queue asks for the same work on the same type repeatedly; PlanSizes caches the answers of
// scheduler/plans/plan_work.hpp. The sources and the work must outlive it. One thread. Cost: a
// search, milliseconds, the first time; O(log questions) after that.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "scheduler/plans/plan_work.hpp"

namespace orrery {

class PlanSizes {
 public:
  explicit PlanSizes(const PlanSources& sources) : sources_(sources) {}

  [[nodiscard]] const PlanSources& sources() const { return sources_; }

  /// counts_for() of the work that `key` names, in the range; key.devices is ignored.
  [[nodiscard]] const std::vector<std::uint32_t>& counts(const PlanKey& key, const Work& work,
                                                         const CountRange& range);

  /// Why there is no plan for the key; no value if there is one.
  [[nodiscard]] const std::optional<Rejection>& refusal(const PlanKey& key, const Work& work);

 private:
  using Range = std::tuple<WorkId, FleetTypeId, std::uint32_t, std::uint32_t>;

  PlanSources sources_;
  std::map<Range, std::vector<std::uint32_t>> counts_;
  std::map<PlanKey, std::optional<Rejection>> refusals_;
};

}  // namespace orrery
