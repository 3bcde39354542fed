// planner/serving/serving_capacity.hpp - the most requests one instance of a service keeps in
// flight before its memory, its scheduler or a limit on latency stops it.
//
// Pure. Cost: some fifty predictions.
#pragma once

#include <array>
#include <optional>

#include "base/format/field_reader.hpp"
#include "perf/serving/serving.hpp"

namespace orrery {

/// Limits on the mean over requests.
struct LatencyLimits {
  std::optional<Seconds> ttft;
  std::optional<Seconds> tpot;

  [[nodiscard]] bool ttft_met(const ServingPrediction& p) const { return !ttft || p.ttft <= *ttft; }
  [[nodiscard]] bool tpot_met(const ServingPrediction& p) const { return !tpot || p.tpot <= *tpot; }
  friend bool operator==(const LatencyLimits&, const LatencyLimits&) = default;
  [[nodiscard]] bool met(const ServingPrediction& p) const { return ttft_met(p) && tpot_met(p); }
};

/// What prevents a larger batch.
enum class ServingBound {
  kThroughput,  ///< it would serve no more requests
  kMemory,      ///< the cache of one more sequence
  kScheduler,   ///< the engine's cap on running sequences
  kFirstToken,  ///< the limit on the time to the first token
  kTokenTime,   ///< the limit on the time of a following token
  kRate,        ///< no higher rate is requested
};

inline std::array<EnumWord<ServingBound>, 6> enum_words(ServingBound) {
  return {{{"throughput", ServingBound::kThroughput},
           {"memory", ServingBound::kMemory},
           {"scheduler", ServingBound::kScheduler},
           {"ttft", ServingBound::kFirstToken},
           {"tpot", ServingBound::kTokenTime},
           {"rate", ServingBound::kRate}}};
}

/// An instance with the number of requests in flight that gives the highest throughput within the
/// limits.
struct ServingCapacity {
  double concurrency = 0;
  ServingPrediction prediction;
  ServingBound bound = ServingBound::kMemory;
};

struct CapacityAnswer {
  std::optional<ServingCapacity> capacity;
  ServingPrediction least;  ///< with one request in flight for each attention group and stage
};

/// The capacity for `job`, whose own concurrency, rate and batch limit are ignored. No capacity: it
/// does not fit, or even the least load breaks a limit.
[[nodiscard]] CapacityAnswer serving_capacity(const ServingJob& job,
                                              const ServingConstants& constants,
                                              const LatencyLimits& limits);

/// Whether every figure is finite: none is if the catalog lacks a rate that the job needs.
[[nodiscard]] bool is_finite(const ServingPrediction& prediction);

}  // namespace orrery
