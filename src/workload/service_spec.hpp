// workload/service_spec.hpp - what only a service has in a job spec: its revision, its latencies,
// the shares of its tenants, how many replicas it may have, and how another revision takes its
// place.
//
// Read with a job of kind Serve (workload/job_spec.hpp). Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

/// Times that these shares of the requests are to stay below.
struct LatencySpec {
  std::optional<Seconds> p50;
  std::optional<Seconds> p90;
  std::optional<Seconds> p95;
  std::optional<Seconds> p99;
};

struct LatencyTarget {
  double quantile = 0.99;
  Seconds time;
};

/// The targets that are given, by quantile.
[[nodiscard]] std::vector<LatencyTarget> targets_of(const LatencySpec& spec);
/// The time of the highest quantile that is given; none: there is no target.
[[nodiscard]] std::optional<Seconds> tail_of(const LatencySpec& spec);

/// Latencies that a service is to keep.
struct SloSpec {
  LatencySpec ttft;  ///< time to the first token
  LatencySpec tpot;  ///< time between tokens
  /// For how long a request of class batch may wait for a replica; none: a day.
  std::optional<Seconds> batch_deadline;
  SourcePosition where;
};

template <class Visitor, SameStruct<SloSpec> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.optional("ttft_p50", s.ttft.p50);
  visitor.optional("ttft_p90", s.ttft.p90);
  visitor.optional("ttft_p95", s.ttft.p95);
  visitor.optional("ttft_p99", s.ttft.p99);
  visitor.optional("tpot_p50", s.tpot.p50);
  visitor.optional("tpot_p90", s.tpot.p90);
  visitor.optional("tpot_p95", s.tpot.p95);
  visitor.optional("tpot_p99", s.tpot.p99);
  visitor.optional("batch_deadline", s.batch_deadline);
}

/// The target that a name of the form ttft_p90 stands for; ttft and tpot are those of p99. Null:
/// there is none of that name.
[[nodiscard]] std::optional<Seconds>* target_named(SloSpec& slo, std::string_view name);

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

/// How it is found out whether a small model's answer is as good as the service's own.
enum class QualityMeasure : std::uint8_t {
  kExact,  ///< both are the same text
  kJudge,  ///< the service's model says so
};

constexpr std::array<EnumWord<QualityMeasure>, 2> enum_words(QualityMeasure) {
  return {{{"exact", QualityMeasure::kExact}, {"judge", QualityMeasure::kJudge}}};
}

/// Lets a service with a smaller model answer where its answers are good enough.
struct QualitySpec {
  std::string small;  ///< name of the other service, of the same tenant; empty: there is none
  QualityMeasure measure = QualityMeasure::kExact;
  double max_loss = 0.05;  ///< share of all answers that may be worse
  double confidence = 0.95;
  double audit_rate = 0.05;  ///< share of the requests that both models answer, to compare
  SourcePosition where;
};

template <class Visitor, SameStruct<QualitySpec> Self>
void describe(Visitor& visitor, Self& q) {
  visitor.required("small", q.small);
  visitor.optional("measure", q.measure);
  visitor.optional("max_loss", q.max_loss);
  visitor.optional("confidence", q.confidence);
  visitor.optional("audit_rate", q.audit_rate);
}

/// Between which numbers the replicas follow what clients ask for.
struct ScalingSpec {
  std::uint32_t min = 1;  ///< 0: the last one rests while there are no requests
  std::uint32_t max = 1;
  std::optional<Seconds> idle;     ///< time without requests before it rests; none: 10 min
  std::optional<double> quantile;  ///< of the demand that the replicas serve; none: 0.95
  SourcePosition where;
};

template <class Visitor, SameStruct<ScalingSpec> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.optional("min", s.min);
  visitor.required("max", s.max);
  visitor.optional("idle", s.idle);
  visitor.optional("quantile", s.quantile);
}

/// How the caches of prompts go from replicas of the role "prefill" to those of the role "decode":
/// the first compute prompts alone, the others answers, and prompts where that is sooner.
struct TransferSpec {
  Bytes token;          ///< size of a token's keys and values in the cache
  BytesPerSecond rate;  ///< of a replica's link
  SourcePosition where;
};

template <class Visitor, SameStruct<TransferSpec> Self>
void describe(Visitor& visitor, Self& t) {
  visitor.required("token", t.token);
  visitor.required("rate", t.rate);
}

struct ServiceSpec {
  std::vector<RevisionSpec> revisions;  ///< none: the job's `launch` starts the engine
  SloSpec slo;
  std::vector<ServiceTenantSpec> tenants;  ///< others have weight 1, priority 0 and no limit
  std::optional<ScalingSpec> scaling;      ///< none: the number of replicas stays
  RolloutSpec rollout;
  QualitySpec quality;
  std::optional<TransferSpec> transfer;  ///< none: each replica computes its own prompts
};

/// Checks the latencies, the tenants, the scaling, the quality and the rollout of the service of
/// that name. Errors at their positions.
[[nodiscard]] Status check_service(const ServiceSpec& service, std::string_view name = {});

/// A role of a service's job.
struct ServiceRole {
  std::string_view name;
  std::uint32_t replicas = 1;
};

/// Returns what replicas of a role compute.
[[nodiscard]] EnginePart duty_in(const ServiceSpec& service, std::string_view role);

/// Checks that a service that is scaled has one role, begins with replicas of which it may have so
/// many, and has a revision, whose replicas report themselves; that one with a transfer has an
/// engine that hands caches over, and roles of both duties. Errors at the positions of the scaling,
/// the transfer or the engine.
[[nodiscard]] Status check_roles(const ServiceSpec& service, std::span<const ServiceRole> roles);

}  // namespace orrery
