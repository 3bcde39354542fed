// scheduler/moves/stay_memo.hpp - running jobs for which no place of another type, wherever it
// lies, is worth a move, and until when that holds.
//
// Belongs to a scheduler's memory. Invariant: an entry is that of the job's present run, its size
// and its clock, under the inputs of prices with which it was made; forgetting it changes how long
// a pass takes, never the result. Cost of begin(): O(nodes), O(running) when inputs change.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/policy.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

class StayMemo {
 public:
  /// Called once a pass, before the other calls.
  void begin(const Situation& situation, const Policy& policy);
  [[nodiscard]] bool stays(std::uint32_t running, const Situation& situation) const;
  void remember(std::uint32_t running, const RunningJob& job, Instant until) {
    entries_[running] = {job.id, job.since, job.expected_end, until};
  }

 private:
  struct Entry {
    JobId id;
    Instant since;         ///< as in RunningJob
    Instant expected_end;  ///< with `id` and `since` it identifies the run, its size and its clock
    Instant until;
  };
  /// The inputs beside the job on which an entry depends.
  struct Inputs {
    PriceWeights weights;
    Seconds horizon;
    bool power = false;
    double failures_per_node_second = 0;
    std::vector<float> node_risk;
  };

  std::vector<Entry> entries_;  ///< by running job
  Inputs inputs_;
};

}  // namespace orrery
