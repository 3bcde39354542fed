// twin/design_goodput.hpp - what faults cost the jobs of a designed fleet, in closed form: how
// often they come, what a job still achieves, how many spare nodes it takes, which storage its
// checkpoints need.
//
// The same law of faults (twin/fault_law.hpp) that the twin draws from, by its means. Values, pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hardware/failure_spec.hpp"
#include "perf/goodput.hpp"
#include "planner/economics.hpp"

namespace orrery {

/// Of one node, on the average.
struct NodeFaults {
  double rate = 0;  ///< faults a second that stop its jobs, its part of the rack's included
  Seconds detect;   ///< until one is noticed
  Seconds out;      ///< for which one takes the node out of use, those that do not included
};

struct RackOfNodes {
  std::uint32_t devices = 1;  ///< of a node
  double nodes = 1;           ///< of a rack
};

/// Means over draws of the law with a fixed seed, as repair times have no closed form by kind.
/// Errors: a catalog without times for a kind of fault. About 20 ms.
[[nodiscard]] Result<NodeFaults> node_faults(const Catalog& catalog, const FailureSpec& spec,
                                             const RackOfNodes& rack);

/// Spare nodes, and what is short in spite of them.
struct Spares {
  std::uint32_t nodes = 0;
  double broken = 0;   ///< nodes out of use, on the average
  double missing = 0;  ///< of them, beyond the spares
};

/// As many spares as earn their keep: one more pays while the chance that it is needed is above
/// 1 / job_nodes, as a job that misses a node stands whole. Nodes that are out are Poisson,
/// whatever the distribution of repair times (M/G/infinity). Precondition: job_nodes >= 1, of the
/// largest job.
[[nodiscard]] Spares spares_for(const NodeFaults& faults, double nodes, double job_nodes);

/// One job that trains, as storage and goodput see it.
struct TrainedJob {
  Bytes checkpoint;  ///< of one copy of the state
  double accelerators = 1;
  const NodeType* node = nullptr;
  Seconds step;
  double count = 1;             ///< of equal jobs
  BytesPerSecond ingest;        ///< of one
  Seconds time_between_faults;  ///< of one

  [[nodiscard]] double nodes() const;
};

struct StorageChoice {
  const StorageSystem* system = nullptr;
  std::uint32_t units = 0;
  BytesPerSecond write;  ///< that the checkpoints need
  BytesPerSecond ingest;
  Bytes capacity;
};

struct StorageNeed {
  std::vector<TrainedJob> jobs;
  Bytes capacity;                         ///< beside checkpoints
  const StorageSystem* wanted = nullptr;  ///< none: the one of the least power
};

/// Parts of its time in which the largest job may stand for checkpoints.
inline constexpr double kStallShare = 0.01;

/// Enough units that no job stands for longer than that part at Young's interval (or no faster than
/// its own NICs allow), that all read their data, and that ten checkpoints of each job fit.
/// Errors: a system without a published write rate or capacity.
[[nodiscard]] Result<StorageChoice> storage_for(const PlannerFacts& facts, const StorageNeed& need);

/// What a job does with its time. `job.time_between_faults` decides.
struct JobGoodput {
  Goodput parts;
  Seconds stall;    ///< of a checkpoint
  Seconds restart;  ///< after a fault is known, reading included
};

/// Errors: infeasible, failures leave no time.
[[nodiscard]] Result<JobGoodput> training_goodput(const PlannerFacts& facts, const TrainedJob& job,
                                                  const StorageChoice& storage, Seconds detect);

}  // namespace orrery
