// twin/replicas/replica_run.hpp - one seed of several controllers on one log: three of them, some
// jobs, some thirty faults, then a calm phase, in which one must lead and everything has to finish.
//
// The seed determines everything. docs/design/012-replicated-log.md says what is promised.
#pragma once

#include "twin/replicas/replica_world.hpp"

namespace orrery {

struct ReplicaRun {
  std::string failure;         ///< the first promise that was broken; empty: none
  std::uint64_t history = 0;   ///< hash of the log
  std::uint64_t faults = 0;    ///< except lies of etcd and faults of the network
  std::uint64_t terms = 0;     ///< claims
  std::uint64_t jobs = 0;      ///< in the log
  std::uint64_t refusals = 0;  ///< starts that an older copy of the log was refused at
  std::uint64_t reads = 0;     ///< answered
};

/// The facts outlive the call.
[[nodiscard]] ReplicaRun run_replicas(const Facts& facts, std::uint64_t seed,
                                      const ReplicaWorld::Trace& trace = {});

}  // namespace orrery
