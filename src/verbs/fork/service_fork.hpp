// verbs/fork/service_fork.hpp - the verb `what-if` for a service: how its replicas, as they run
// now, would answer a trace of requests, and how they would with a change.
//
// Each replica computes at the pace that its warm-up measured and costs what it has cost so far.
// Cost: reading the trace, then twice that of the twin of services.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "control/state/state.hpp"
#include "twin/serving/service_setup.hpp"
#include "verbs/verb_answer.hpp"
#include "workload/revision_spec.hpp"

namespace orrery {

/// What is asked of a service, as typed; empty or 0: not given.
struct ServiceChange {
  std::string service;   ///< name, or number of its first job
  std::string requests;  ///< FILE[:FORMAT]
  std::string half;      ///< "first" or "second"
  std::uint32_t replicas = 0;
  std::string router;  ///< policy of the gateway
};

/// A service as it runs.
struct RunningService {
  struct Replica {
    std::uint64_t job = 0;
    ReplicaReport report;
    double usd_h = 0;  ///< dollars an hour so far; 0: unknown
  };
  std::string name;
  EngineSpec engine;
  RequestTargets targets;
  std::vector<Replica> replicas;  ///< that take requests, by job; at least one
};

/// A service that is running, as it may be asked for.
struct KnownService {
  std::uint32_t number = 0;  ///< of its first job
  std::string name;
};

/// Returns the number of the service that is named, or numbered, `asked`. Errors: there is none;
/// services of several tenants have the name. O(services).
[[nodiscard]] Result<std::uint32_t> number_of_service(std::span<const KnownService> known,
                                                      const std::string& asked);

/// Errors: those of number_of_service(), or none of the service's replicas takes requests.
[[nodiscard]] Result<RunningService> running_service(const State& state, Instant now,
                                                     const std::string& name);

/// Plays the requests against the service as it is and with the change. A replica that comes is
/// like the newest one; those that go are the newest. Errors: those of the trace; an unknown
/// policy; a replica that did not measure its pace; nothing to change.
[[nodiscard]] Result<VerbAnswer> service_what_if(const RunningService& service,
                                                 const ServiceChange& asked);

}  // namespace orrery
