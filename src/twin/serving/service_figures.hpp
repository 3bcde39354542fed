// twin/serving/service_figures.hpp - what requests and replicas of a modelled service came to.
//
// Plain values; quantiles are exact (of all requests, by nearest rank).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace orrery {

struct QuantilesOf {
  double mean = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double max = 0;
};

/// Reorders the values.
[[nodiscard]] QuantilesOf quantiles_of(std::vector<float>& values);

/// Requests of one class; each ends in exactly one of completed, shed and failed.
struct ClassFigures {
  std::uint64_t requests = 0;
  std::uint64_t completed = 0;
  std::uint64_t shed = 0;    ///< refused: the queue was full, or the wait too long
  std::uint64_t failed = 0;  ///< too long for every replica
  std::uint64_t within = 0;  ///< completed within the targets
  QuantilesOf ttft;          ///< seconds, from the arrival at the gateway
  QuantilesOf tpot;          ///< seconds between tokens, the mean of each request
  QuantilesOf whole;         ///< seconds to the last token
};

/// How often requests did not go straight through.
struct DetourFigures {
  std::uint64_t preemptions = 0;  ///< in engines
  std::uint64_t moved = 0;        ///< answers that went on at another replica
  std::uint64_t retried = 0;      ///< requests sent again before their first token
  std::uint64_t waited = 0;       ///< requests that waited at the gateway
  std::uint64_t apart = 0;        ///< requests whose prompt another replica was to compute
};

/// What the replicas did and cost.
struct ReplicaFigures {
  std::uint64_t steps = 0;
  std::uint64_t events = 0;  ///< fewer than the steps where some were skipped
  double alive_s = 0;        ///< from each replica's order to its end
  double busy_s = 0;         ///< in which steps ran
  double usd = 0;            ///< 0: no price is known
  double joules = 0;         ///< 0: no power is known
  std::uint32_t most = 0;    ///< at a time
  std::uint32_t orders = 0;  ///< changes of their number
};

struct ServiceFigures {
  ClassFigures all;
  ClassFigures interactive;
  ClassFigures batch;
  Duration span;                    ///< from the first arrival to the last end
  std::uint64_t prompt_tokens = 0;  ///< of completed requests
  std::uint64_t output_tokens = 0;
  double hit_rate = 0;     ///< prompt tokens found in caches, of all that began
  double oracle_rate = 0;  ///< the same with one cache without limits, in the order of arrival
  DetourFigures detours;
  ReplicaFigures replicas;

  [[nodiscard]] double tokens() const {
    return static_cast<double>(prompt_tokens) + static_cast<double>(output_tokens);
  }
};

}  // namespace orrery
