// workload/service_spec.hpp - what only a service has in a job spec: its revision, its latencies,
// and how another revision takes its place.
//
// Read with a job of kind Serve (workload/job_spec.hpp). Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "workload/revision_spec.hpp"

namespace orrery {

/// How replicas are replaced when a service is updated.
struct RolloutSpec {
  std::uint32_t surge = 1;        ///< replicas that may exist beyond those wanted
  std::uint32_t unavailable = 0;  ///< of those wanted, how many need not be ready
  SourcePosition where;
};

template <class Visitor, SameStruct<RolloutSpec> Self>
void describe(Visitor& visitor, Self& r) {
  visitor.optional("surge", r.surge);
  visitor.optional("unavailable", r.unavailable);
}

/// What the 99th percentile of requests is to stay below.
struct SloSpec {
  std::optional<Seconds> ttft_p99;  ///< time to the first token
  std::optional<Seconds> tpot_p99;  ///< time between tokens
  SourcePosition where;
};

template <class Visitor, SameStruct<SloSpec> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.optional("ttft_p99", s.ttft_p99);
  visitor.optional("tpot_p99", s.tpot_p99);
}

struct ServiceSpec {
  std::vector<RevisionSpec> revisions;  ///< none: the job's `launch` starts the engine
  SloSpec slo;
  RolloutSpec rollout;
};

/// Checks the latencies and the rollout. Errors at their positions.
[[nodiscard]] Status check_service(const ServiceSpec& service);

}  // namespace orrery
