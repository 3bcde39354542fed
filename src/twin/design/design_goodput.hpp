// twin/design/design_goodput.hpp - what faults cost the jobs of a designed fleet, in closed form:
// how often they come, what a job still achieves, how many spare nodes it takes, which storage its
// checkpoints need.
//
// Uses the means of the same law of faults (twin/faults/fault_law.hpp) that the twin draws from.
// Values, pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hardware/failure_spec.hpp"
#include "perf/training/goodput.hpp"
#include "planner/economics.hpp"

namespace orrery {

/// The mean faults of one node.
struct NodeFaults {
  double rate = 0;  ///< faults a second that stop its jobs, including its part of the rack's
  Seconds detect;   ///< mean time until a fault is noticed
  Seconds out;      ///< mean time a fault takes the node out of use; faults that do not count as 0
};

struct RackOfNodes {
  std::uint32_t devices = 1;  ///< of a node
  double nodes = 1;           ///< of a rack
};

/// Means over draws of the law with a fixed seed, as repair times have no closed form by kind.
/// Errors: a catalog without times for a kind of fault. About 20 ms.
[[nodiscard]] Result<NodeFaults> node_faults(const Catalog& catalog, const FailureSpec& spec,
                                             const RackOfNodes& rack);

/// Spare nodes, and the nodes missing in spite of them.
struct Spares {
  std::uint32_t nodes = 0;
  double broken = 0;   ///< mean number of nodes out of use
  double missing = 0;  ///< of them, beyond the spares
};

/// The number of spares that pay: one more pays while the chance that it is needed is above 1 /
/// job_nodes, as a job that misses a node stands still as a whole. The nodes out of use are
/// Poisson, whatever the distribution of repair times (M/G/infinity). Precondition: job_nodes >= 1,
/// of the largest job.
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
  Bytes capacity;                         ///< in addition to checkpoints
  const StorageSystem* wanted = nullptr;  ///< none: choose the one of the least power
};

/// Share of its time for which checkpoints may stall the largest job.
inline constexpr double kStallShare = 0.01;

/// Chooses enough units that no job stalls for longer than that share at Young's interval (or no
/// faster than its own NICs allow), that all jobs read their data, and that ten checkpoints of each
/// fit. Errors: a system without a published write rate or capacity.
[[nodiscard]] Result<StorageChoice> storage_for(const PlannerFacts& facts, const StorageNeed& need);

/// How a job spends its time; `job.time_between_faults` decides.
struct JobGoodput {
  Goodput parts;
  Seconds stall;    ///< of a checkpoint
  Seconds restart;  ///< after a fault is known, including the reading of the state
};

/// Errors: infeasible, failures leave no time.
[[nodiscard]] Result<JobGoodput> training_goodput(const PlannerFacts& facts, const TrainedJob& job,
                                                  const StorageChoice& storage, Seconds detect);

}  // namespace orrery
