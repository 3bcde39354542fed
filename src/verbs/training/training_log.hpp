// verbs/training/training_log.hpp - the files that orrery-train writes: loss.csv and events.jsonl.
//
// Values, read once. Invariant: steps ascend.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "workload/parallel_plan.hpp"

namespace orrery {

struct TrainedStep {
  std::uint64_t step = 0;
  double loss = 0;
  double seconds = 0;
  double compute_seconds = 0;  ///< time of the leading rank's own work
  std::uint32_t ranks = 0;
  std::uint32_t generation = 0;
};

/// A list of members, and since when it holds.
struct TrainedGeneration {
  std::uint32_t attempt = 0;
  std::uint32_t generation = 0;
  std::uint32_t ranks = 0;
  std::uint64_t step = 0;
  double at = 0;                  ///< seconds since 1970
  std::optional<double> lost_at;  ///< when a peer was missed
};

struct TrainingLog {
  std::vector<TrainedStep> steps;
  std::vector<TrainedGeneration> generations;
  std::vector<double> recoveries_s;  ///< from a loss seen to the end of the next step
  std::vector<std::uint64_t> checkpoints;
  std::optional<double> held_out_loss;
  std::optional<double> ended_at;                                    ///< seconds since 1970
  std::string state_sha256;                                          ///< "": it did not end
  enum class Memory { kShared, kSockets } memory = Memory::kShared;  ///< among its ranks

  std::optional<ParallelPlan> layout;  ///< but for the number of replicas

  /// Returns the layout with the replicas of usual_ranks(); "": it is not known.
  [[nodiscard]] std::string layout_text() const;
  [[nodiscard]] double median_step_s() const;
  /// Returns the number of ranks that did most steps; 0: no steps.
  [[nodiscard]] std::uint32_t usual_ranks() const;
  /// Returns the mean step time with `ranks` ranks; 0: no such steps.
  [[nodiscard]] double mean_step_s(std::uint32_t ranks) const;
};

/// Errors name file and line.
[[nodiscard]] Result<TrainingLog> read_training_log(const std::string& directory);

}  // namespace orrery
