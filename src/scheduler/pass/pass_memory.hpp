// scheduler/pass/pass_memory.hpp - what a scheduler keeps from pass to pass: scratch memory of the
// steps, and answers of earlier passes that still hold.
//
// Each step of a pass gets its own part. Invariant: while policy and requests stay the same,
// forgetting changes how long a pass takes, never the result.
#pragma once

#include "scheduler/moves/stay_memo.hpp"
#include "scheduler/pass/pass_fleet.hpp"
#include "scheduler/pass/queue_walk.hpp"
#include "scheduler/pass/start_search.hpp"
#include "scheduler/rounds/throughput_shares.hpp"

namespace orrery {

class PassMemory {
 public:
  explicit PassMemory(const PlaceTree& tree) : placers(tree) {}

  /// Drops what follows from the policy and from requests. `shares` and `stays` are kept, because
  /// they compare their inputs, and so is scratch memory.
  void forget() { queue.forget(); }

  PassFleet fleet;
  PassPlacers placers;
  QueueMemory queue;
  ThroughputShares shares;
  StayMemo stays;
};

}  // namespace orrery
