// workload/service_spec.hpp - what only a service has in a job spec: its revision, its latencies,
// the shares of its tenants, and how another revision takes its place.
//
// Read with a job of kind Serve (workload/job_spec.hpp). Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "workload/revision_spec.hpp"

namespace orrery {

/// By what a canary may be found worse than the present revision.
enum class RolloutGate : std::uint8_t {
  kErrors,   ///< more of its requests fail
  kSlo,      ///< more of its requests miss the latencies of `slo`
  kQuality,  ///< the scores of its answers are lower
};

constexpr std::array<EnumWord<RolloutGate>, 3> enum_words(RolloutGate) {
  return {{{"errors", RolloutGate::kErrors},
           {"slo", RolloutGate::kSlo},
           {"quality", RolloutGate::kQuality}}};
}

/// How replicas are replaced when a service is updated.
struct RolloutSpec {
  std::uint32_t surge = 1;        ///< replicas that may exist beyond those wanted
  std::uint32_t unavailable = 0;  ///< of those wanted, how many need not be ready
  std::vector<std::string>
      canary;                   ///< shares of the requests, stage by stage: "1%"; none: no canary
  std::optional<Seconds> bake;  ///< the least time of a stage
  std::vector<RolloutGate> gates;  ///< none: errors and slo
  SourcePosition where;
};

/// The stages of a canary as parts of 10,000. Error: no percentage from 0.01 % to 100 %, or one
/// that is not above the one before.
[[nodiscard]] Result<std::vector<std::uint32_t>> canary_shares(
    const std::vector<std::string>& stages);

template <class Visitor, SameStruct<RolloutSpec> Self>
void describe(Visitor& visitor, Self& r) {
  visitor.optional("surge", r.surge);
  visitor.optional("unavailable", r.unavailable);
  visitor.optional("canary", r.canary);
  visitor.optional("bake", r.bake);
  visitor.optional("gates", r.gates);
}

/// What the 99th percentile of requests is to stay below.
struct SloSpec {
  std::optional<Seconds> ttft_p99;  ///< time to the first token
  std::optional<Seconds> tpot_p99;  ///< time between tokens
  /// For how long a request of class batch may wait for a replica; none: a day.
  std::optional<Seconds> batch_deadline;
  SourcePosition where;
};

template <class Visitor, SameStruct<SloSpec> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.optional("ttft_p99", s.ttft_p99);
  visitor.optional("tpot_p99", s.tpot_p99);
  visitor.optional("batch_deadline", s.batch_deadline);
}

/// What a tenant gets of a service when its replicas are full.
struct ServiceTenantSpec {
  /// Holder of a key, or path of the tenant that keys belong to, which stands for those below too.
  std::string name;
  double weight = 1;                   ///< tokens beside those of tenants with the same priority
  std::int32_t priority = 0;           ///< requests of a higher one always come first
  std::optional<double> tokens_per_s;  ///< prompts and outputs; none: no limit
  SourcePosition where;
};

template <class Visitor, SameStruct<ServiceTenantSpec> Self>
void describe(Visitor& visitor, Self& t) {
  visitor.sole("name", t.name);
  visitor.optional("weight", t.weight);
  visitor.optional("priority", t.priority);
  visitor.optional("tokens_per_s", t.tokens_per_s);
}

struct ServiceSpec {
  std::vector<RevisionSpec> revisions;  ///< none: the job's `launch` starts the engine
  SloSpec slo;
  std::vector<ServiceTenantSpec> tenants;  ///< others have weight 1, priority 0 and no limit
  RolloutSpec rollout;
};

/// Checks the latencies, the tenants and the rollout. Errors at their positions.
[[nodiscard]] Status check_service(const ServiceSpec& service);

}  // namespace orrery
