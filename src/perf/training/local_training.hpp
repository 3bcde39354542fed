// perf/training/local_training.hpp - seconds of a training step of the ranks of one machine's CPUs,
// by the planner's own model with constants that were measured there.
//
// Made once for a training and a machine; immutable then. A rank is a device of one compute unit;
// what its products, attention, passes, optimiser and exchange take replaces the constants of the
// built-in calibration, one set for each number of busy ranks. Cost: making fits a few constants an
// entry, about a millisecond; a prediction copies the constants, about a tenth of one.
#pragma once

#include <cstdint>
#include <vector>

#include "perf/breakdown.hpp"
#include "perf/calibration.hpp"
#include "perf/machine/machine.hpp"
#include "workload/node_calibration.hpp"
#include "workload/parallel_plan.hpp"

namespace orrery {

/// How ranks of one machine exchange data.
enum class LocalExchange { kSharedMemory, kSockets };

/// A step of `sequences`, cut into `shards` that are computed whole.
struct LocalTraining {
  TrainedShape shape;
  std::uint32_t sequences = 1;
  std::uint32_t shards = 1;
  LocalExchange exchange = LocalExchange::kSharedMemory;

  [[nodiscard]] std::uint32_t per_shard() const { return sequences / shards; }
};

/// Replicas of tp x pp ranks.
struct LocalLayout {
  std::uint32_t ranks = 1;        ///< of all replicas
  std::uint32_t most_shards = 1;  ///< of the replica that has most
  std::uint32_t micro = 1;        ///< sequences computed at a time
  std::uint32_t tp = 1;
  std::uint32_t pp = 1;
  std::uint32_t vpp = 1;
  std::uint32_t zero = 0;
  Recompute recompute = Recompute::kNone;  ///< or kFull

  [[nodiscard]] std::uint32_t replicas() const { return ranks / (tp * pp); }
};

struct LocalStep {
  LocalLayout layout;
  double seconds = 0;
  Breakdown terms;  ///< their sum, but where the fullest rank decides
};

class LocalStepModel {
 public:
  /// `general`: the constants that no machine changes. Errors: the calibration has no model of the
  /// family, or no two that differ in layers.
  [[nodiscard]] static Result<LocalStepModel> make(const NodeCalibration& node,
                                                   const Calibration& general,
                                                   const LocalTraining& training);

  /// Between measured numbers of ranks in a straight line; never less than the fullest replica
  /// takes by itself. A pipeline runs empty after each shard; where ranks are more than cores,
  /// those that wait leave theirs to others. Errors: more ranks than were measured.
  [[nodiscard]] Result<LocalStep> predict(const LocalLayout& layout) const;

  [[nodiscard]] std::uint32_t ranks_max() const { return entries_.back().ranks; }

 private:
  /// The machine as it performs with so many busy ranks.
  struct Entry {
    std::uint32_t ranks = 1;
    Machine machine;
    Calibration constants;
  };
  /// Sequences that so many replicas compute together, in equal parts.
  struct Share {
    LocalLayout layout;
    std::uint32_t replicas = 1;
    double sequences = 1;
  };
  [[nodiscard]] Result<Breakdown> terms(const Entry& entry, const Share& share) const;
  /// While `busy` ranks are.
  [[nodiscard]] Result<Breakdown> terms(std::uint32_t busy, const Share& share) const;

  LocalTraining training_;
  Model model_;
  std::vector<Entry> entries_;  ///< ranks ascend
  std::uint32_t cores_ = 1;
};

}  // namespace orrery
