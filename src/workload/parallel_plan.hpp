// workload/parallel_plan.hpp - how a model is split over ranks.
//
// A value shared by planner, scheduler, runtime and launcher; the map from ranks to devices is
// fleet/rank_map.hpp's.
#pragma once

#include <cstdint>

namespace orrery {

struct ParallelPlan {
  std::uint32_t tp = 1;   ///< tensor parallel
  std::uint32_t pp = 1;   ///< pipeline stages
  std::uint32_t vpp = 1;  ///< virtual stages (chunks) a rank
  std::uint32_t dp = 1;   ///< data parallel
  std::uint32_t cp = 1;   ///< context parallel
  std::uint32_t ep = 1;  ///< expert parallel: over groups of the dp x cp ranks, no ranks of its own
  std::uint32_t zero = 0;  ///< ZeRO stage 0 to 3
  std::uint32_t micro_batch = 1;

  /// tp x cp x pp x dp.
  [[nodiscard]] std::uint64_t ranks() const { return std::uint64_t{tp} * cp * pp * dp; }

  friend bool operator==(const ParallelPlan&, const ParallelPlan&) = default;
};

}  // namespace orrery
