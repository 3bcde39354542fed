// perf/training/layer_cost.hpp - seconds of one micro-batch in one layer on one rank, forward and
// backward, by term; and in embedding and head.
//
// Depends only on tp, cp, ep, the micro-batch and what is recomputed, so a search computes it once
// for all pipeline and data-parallel sizes. Pure. Cost: about a microsecond a layer kind.
#pragma once

#include <span>
#include <vector>

#include "perf/breakdown.hpp"
#include "perf/training/model_work.hpp"
#include "perf/training/training_constants.hpp"
#include "workload/parallel_plan.hpp"

namespace orrery {

/// Values that are constant over the layers of a job: the model's work and attention at its
/// sequence.
struct JobWork {
  const ModelWork* model = nullptr;
  const TrainingJob* job = nullptr;
  /// Forward attention operations a token, for each kind of layer, as its kernel counts them.
  std::span<const double> attention_flops;
};

/// Returns the values that JobWork::attention_flops points to.
[[nodiscard]] std::vector<double> attention_flops_of(const ModelWork& model,
                                                     const TrainingJob& job);

/// Bytes of an activation that ranks send each other: of 16 bits, or as wide as products are.
[[nodiscard]] double exchanged_bytes(NumberFormat format);

struct LayerCost {
  Breakdown forward;
  Breakdown backward;           ///< without what is recomputed
  double recomputed = 0;        ///< seconds of the forward pass done again
  double compute_forward = 0;   ///< seconds of forward that other streams may hide behind
  double compute_backward = 0;  ///< of backward and recomputation

  [[nodiscard]] double seconds() const { return forward.total() + backward.total() + recomputed; }
};

/// One layer of `kind`. `group_stride`: where the expert-parallel ranks lie, see layer_cost.cpp.
[[nodiscard]] LayerCost layer_cost(const JobWork& work, std::size_t kind, const ParallelPlan& plan,
                                   const TrainingConstants& constants);

/// Embedding and head with the loss, on the ranks that hold them.
struct EndsCost {
  double embedding = 0;  ///< seconds a micro-batch, forward and backward
  double head = 0;
};
[[nodiscard]] EndsCost ends_cost(const JobWork& work, const ParallelPlan& plan,
                                 const TrainingConstants& constants);

}  // namespace orrery
