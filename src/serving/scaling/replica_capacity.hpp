// serving/scaling/replica_capacity.hpp - how many tokens a second a replica serves within the
// latencies that its service promises.
//
// From the cost of the engine's steps (serving/engine_step_cost.hpp). Each token of a prompt and
// each token of an answer takes a share of the replica's time; the shares of all requests together
// stay below `busy`, so that requests do not queue for longer than the target of the first token
// allows. Plain values; pure. Cost: O(slots).
#pragma once

#include <cstdint>

#include "serving/engine_step_cost.hpp"
#include "serving/scaling/demand_forecast.hpp"

namespace orrery {

/// Mean tokens of a request. The defaults hold until requests are known.
struct RequestShape {
  double prompt = 512;
  double output = 128;
};

struct CapacityTerms {
  EngineStepCost cost;
  std::uint32_t slots = 1;  ///< requests that the replica computes at a time
  RequestShape shape;
  double ttft_s = 0;  ///< targets of the 99th percentile; 0: none
  double tpot_s = 0;
  double error = 0.1;  ///< share by which the replica may be slower than its cost says
};

struct ReplicaCapacity {
  double prompt_token_s = 0;  ///< seconds of the replica for a token of a prompt
  double output_token_s = 0;  ///< .. for a token of an answer, computed in the batch
  double busy = 0;            ///< share of its time that requests may take; 0: nothing is known
  std::uint32_t batch = 0;    ///< requests at a time that keep the target between tokens
  bool keeps = true;          ///< whether a request alone on the replica meets the targets
};

/// Returns the capacity with the largest batch whose steps keep the target between tokens, and the
/// largest share of time at which the wait for a place in it keeps the target of the first token.
/// The wait is that of a queue with `batch` servers (Sakasegawa 1977), its tail exponential.
/// Without a target, a replica may be busy for 0.8 of its time. Where a request alone misses a
/// target, the capacity is that of a replica without this target.
[[nodiscard]] ReplicaCapacity replica_capacity(const CapacityTerms& terms);

/// Returns how many such replicas a demand keeps busy; 0 where the capacity is unknown.
[[nodiscard]] double replicas_for(const TokenDemand& demand, const ReplicaCapacity& capacity);

/// Returns the requests of that shape that one replica serves a second; 0: unknown.
[[nodiscard]] double requests_s_of(const ReplicaCapacity& capacity, const RequestShape& shape);

}  // namespace orrery
