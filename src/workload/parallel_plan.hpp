// workload/parallel_plan.hpp - how a model is split over ranks, and what each rank keeps.
//
// A value shared by planner, scheduler, runtime and launcher; the map from ranks to devices is
// fleet/rank_map.hpp's.
#pragma once

#include <array>
#include <cstdint>

#include "base/format/field_reader.hpp"

namespace orrery {

/// What the backward pass computes again instead of keeping (Korthikanti et al. 2022).
enum class Recompute {
  kNone,
  kSelective,  ///< scores and softmax of attention
  kFull,       ///< whole layers: only their inputs are kept
};

inline std::array<EnumWord<Recompute>, 3> enum_words(Recompute) {
  return {{{"none", Recompute::kNone},
           {"selective", Recompute::kSelective},
           {"full", Recompute::kFull}}};
}

/// What is kept in host memory and crosses the host link every step.
enum class Offload { kNone, kOptimizer, kActivations, kBoth };

inline std::array<EnumWord<Offload>, 4> enum_words(Offload) {
  return {{{"none", Offload::kNone},
           {"optimizer", Offload::kOptimizer},
           {"activations", Offload::kActivations},
           {"both", Offload::kBoth}}};
}

/// How context-parallel ranks see each other's keys and values.
enum class ContextExchange { kRing, kAllToAll };

inline std::array<EnumWord<ContextExchange>, 2> enum_words(ContextExchange) {
  return {{{"ring", ContextExchange::kRing}, {"all-to-all", ContextExchange::kAllToAll}}};
}

/// Whether the norms and drop-outs between tensor-parallel regions are split along the sequence.
enum class SequenceParallel { kOff, kOn };

inline std::array<EnumWord<SequenceParallel>, 2> enum_words(SequenceParallel) {
  return {{{"off", SequenceParallel::kOff}, {"on", SequenceParallel::kOn}}};
}

struct ParallelPlan {
  std::uint32_t tp = 1;   ///< tensor parallel
  std::uint32_t pp = 1;   ///< pipeline stages
  std::uint32_t vpp = 1;  ///< virtual stages (chunks) a rank
  std::uint32_t dp = 1;   ///< data parallel
  std::uint32_t cp = 1;   ///< context parallel
  std::uint32_t ep = 1;  ///< expert parallel: over groups of the dp x cp ranks, no ranks of its own
  std::uint32_t zero = 0;  ///< ZeRO stage 0 to 3 (3: fully sharded data parallel)
  std::uint32_t micro_batch = 1;
  std::uint32_t shard = 0;  ///< ranks one copy of the state is sharded over (hybrid); 0: all of dp
  std::uint32_t recompute_layers = 0;  ///< kFull on so many layers of a rank; 0: on all
  /// kFull: share of the matrix products, by operations, whose results are kept all the same.
  double recompute_kept = 0;
  SequenceParallel sequence_parallel = SequenceParallel::kOff;
  Recompute recompute = Recompute::kNone;
  Offload offload = Offload::kNone;
  ContextExchange context_exchange = ContextExchange::kRing;

  /// tp x cp x pp x dp.
  [[nodiscard]] std::uint64_t ranks() const { return std::uint64_t{tp} * cp * pp * dp; }

  friend bool operator==(const ParallelPlan&, const ParallelPlan&) = default;
};

}  // namespace orrery
