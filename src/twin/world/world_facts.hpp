// twin/world/world_facts.hpp - what is true in a virtual world and control does not know: the work
// of jobs, the times that no job decides, and the faults.
//
// Values, made by the caller of a simulation; the World keeps a copy.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "agent/heartbeat_watch.hpp"
#include "control/setup.hpp"
#include "perf/calibration.hpp"
#include "twin/faults/failure_model.hpp"
#include "twin/replay_rules.hpp"

namespace orrery {

/// What a job truly is.
struct TrueJob {
  Duration work;                ///< run time where an option's speed is 1
  bool fails = false;           ///< its program ends with an error when its work is done
  std::uint64_t steps = 0;      ///< of a round-based replay
  double steps_per_second = 0;  ///< of a round-based replay
  bool peer_copy = false;       ///< its nodes keep copies of its state for each other
};

/// Times of the world that no job or node decides.
struct WorldTiming {
  Duration launch = Duration::seconds(5);  ///< of ranks, on any node
  Duration plan_search = Duration::seconds(1);
  Duration scheduler_latency = Duration::seconds(1);  ///< of a full pass
  /// Time from the loss of a node until an operator has cut it off and vouches for it (assumed: an
  /// alert is answered in 5 minutes, investigated and acted on in 10).
  Duration fencing = Duration::minutes(15);
  /// Time of a restart on nodes that are ready (the job's own and spares), without reading its
  /// state, where that is less than the job's own restart time. None: ready nodes make no
  /// difference.
  std::optional<Duration> warm_restart = std::nullopt;
  HeartbeatRule heartbeat;
};

struct WorldFacts {
  ReplayRules rules;
  WorldTiming timing;
  PlanSource plans;
  std::optional<FailureModel> failures = std::nullopt;  ///< none: nothing breaks by chance
  /// Faults that happen in any case, by time.
  std::vector<Fault> scripted = {};
  /// With a calibration, jobs contend for links and storage; nullptr: no contention.
  const Calibration* calibration = nullptr;
  /// The time of delivery of each node (twin/world/arrivals.hpp); empty: all nodes are there.
  std::vector<Instant> arrivals = {};

  [[nodiscard]] bool is_there(NodeId node, Instant at) const {
    return arrivals.empty() || arrivals[node.value()] <= at;
  }
};

}  // namespace orrery
