// serving/scaling/autoscaler.hpp - follows what clients ask of one service, tick by tick, and says
// how many replicas it is to have.
//
// The controller and the twin each own one for a service; time comes with what is seen. Pure:
// the same sequence of what is seen gives the same answers. Memory and cost: those of a
// DemandForecast; a look between two ticks is O(1).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "serving/engine_step_cost.hpp"
#include "serving/scaling/demand_forecast.hpp"
#include "serving/scaling/late_correction.hpp"
#include "serving/scaling/scale_plan.hpp"
#include "serving/scaling/shortage.hpp"

namespace orrery {

/// What has come to a service and left it, since someone counts.
struct ServiceFlow {
  std::int64_t requests = 0;  ///< that came; those that were refused do not count
  std::uint64_t prompt_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t answered = 0;  ///< whose latencies are known
  std::uint64_t late = 0;      ///< of these, beyond a target
};

/// What its owner wants of a service.
struct ScaleTargets {
  ScaleTerms terms;
  double ttft_s = 0;  ///< of the 99th percentile; 0: none
  double tpot_s = 0;
  ScalePower power;
};

/// The replicas of a service on one kind of machine.
struct SeenVariant {
  std::string name;                   ///< of the machine; empty: the only one
  std::uint32_t wanted = 0;           ///< replicas that were ordered
  std::uint32_t ready = 0;            ///< replicas that take requests
  std::uint32_t slots = 1;            ///< of each of them
  EngineStepCost cost;                ///< of each of them; unknown: none has measured its pace
  std::optional<std::uint32_t> most;  ///< that machines allow; none: any number
  double usd_s = 0;                   ///< dollars a second of one
  double watts = 0;                   ///< of one
};

/// A service at one time.
struct SeenDemand {
  Instant now;
  ServiceFlow flow;
  RequestShape shape;                 ///< of the requests that were answered lately
  std::uint32_t waiting = 0;          ///< requests that no replica has
  std::uint32_t running = 0;          ///< requests that replicas have
  std::vector<SeenVariant> variants;  ///< at least one, at each time the same
  Duration cold_start;                ///< of a replica
  std::optional<PastScaleOrder> last;
};

class Autoscaler {
 public:
  /// Returns how many replicas are wanted; none: it is not yet time to look again. To be called at
  /// least once a tick; a request that waits for a replica that rests is answered at once.
  [[nodiscard]] std::optional<ScaleAnswer> look(const SeenDemand& seen,
                                                const ScaleTargets& targets);

 private:
  void note_paces(const SeenDemand& seen);
  void observe(const SeenDemand& seen, const ScaleTargets& targets);
  /// Learns how fast replicas are that have had requests waiting for a whole tick.
  void learn_speed(const SeenDemand& seen);
  /// Learns from the answers of a tick, in which that much was asked for.
  void learn_lateness(const SeenDemand& seen, const ScaleTargets& targets,
                      const TokenDemand& asked);
  [[nodiscard]] ReplicaCapacity capacity(std::size_t variant, const ScaleTargets& targets) const;
  /// Returns the most that was expected within the last minute, and now.
  [[nodiscard]] TokenDemand most_needed(Instant now, const TokenDemand& demand);
  [[nodiscard]] ScaleAnswer plan(const SeenDemand& seen, const ScaleTargets& targets);

  struct Needed {
    Instant at;
    TokenDemand demand;
  };
  /// Replicas of one variant, as they were measured last.
  struct Pace {
    EngineStepCost cost;
    std::uint32_t slots = 1;
  };

  std::optional<Instant> tick_;  ///< when the demand was observed last
  ServiceFlow flow_;             ///< what had come then
  bool queued_ = false;          ///< whether so many waited then that the replicas were full
  Instant last_request_;
  DemandForecast forecast_;
  std::deque<Needed> needed_;  ///< at the ticks of the last minute
  RequestShape shape_;
  std::vector<Pace> paces_;  ///< by variant
  double speed_ = 1;         ///< of full replicas, as a share of what their cost says
  LateCorrection late_;
  Shortage shortage_;
};

}  // namespace orrery
