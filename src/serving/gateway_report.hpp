// serving/gateway_report.hpp - what a gateway has measured of the services it routes to.
//
// Made by a gateway about once a second, sent to the controller with the epoch of the table that
// the gateway routes by, which thereby acknowledges it. Counters grow from the start of the
// gateway's process; histograms cover the newest window. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "serving/latency_histogram.hpp"

namespace orrery {

/// Requests of one service. Each accepted request ends in exactly one of the first four.
struct ServiceCounts {
  std::uint64_t completed = 0;
  std::uint64_t cancelled = 0;  ///< by the client
  std::uint64_t shed = 0;       ///< refused with 429
  std::uint64_t failed = 0;     ///< answered with an error that is not the client's
  std::uint64_t prompt_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t over_limit = 0;  ///< of those shed, beyond the limit of their tenant
  std::uint64_t timed = 0;       ///< whose times are known, of a service; of tenants: none
  std::uint64_t late = 0;        ///< of these, beyond a target of the service
};

/// What became of the requests of a canary, or of those beside it, since the gateway knows of it.
struct ArmReport {
  std::uint64_t requests = 0;  ///< that a replica has completed or failed
  std::uint64_t failed = 0;
  double scores = 0;  ///< number of scores that clients or graders gave
  double score_sum = 0;
  LatencyHistogram ttft;
  LatencyHistogram tpot;
};

struct CanaryReport {
  std::uint32_t revision = 0;
  ArmReport canary;
  ArmReport others;
};

/// What a tenant has used of a service (serving/admission/tenant_terms.hpp says which
/// keys count as which tenant).
struct CallerCounts {
  std::string name;
  ServiceCounts counts;
};

/// What a gateway has let the smaller model of a service answer (serving/tiers/tier_gate.hpp).
struct QualityReport {
  std::uint64_t requests = 0;
  std::uint64_t small = 0;     ///< answered by it
  std::uint64_t compared = 0;  ///< of these, by both models
  std::uint64_t worse = 0;     ///< of these, worse by the comparison or not compared yet
  double bound = 0;            ///< answers that are worse, at most, with the promised confidence
  std::uint64_t learning = 0;  ///< gateways that learn what it can answer
  std::uint64_t retreats = 0;  ///< times that it had become worse
};

struct ServiceReport {
  std::uint64_t service = 0;  ///< RoutedService::id
  ServiceCounts counts;
  Duration window;                         ///< time that the rest covers
  std::uint64_t window_prompt_tokens = 0;  ///< tokens of the requests that ended in the window
  std::uint64_t window_output_tokens = 0;
  std::uint64_t window_requests = 0;  ///< of these, whose tokens are known
  std::uint64_t waiting = 0;          ///< requests that no replica has yet
  LatencyHistogram ttft;              ///< from the request's last byte to the answer's first
  LatencyHistogram tpot;              ///< between output tokens, the mean of each request
  std::vector<CallerCounts> tenants;  ///< by name
  std::optional<CanaryReport> canary;
  std::optional<QualityReport> quality;  ///< none: no smaller model answers
};

struct ReplicaLoad {
  std::uint64_t job = 0;
  std::uint32_t attempt = 0;
  std::uint32_t in_flight = 0;
};

struct GatewayReport {
  std::string gateway;  ///< its name, which no other gateway of the cluster has
  std::string url;      ///< by which clients reach it, without /v1
  std::uint64_t epoch = 0;
  std::uint64_t process = 0;  ///< a number that no other process has; 0: not told
  std::string peer_address;   ///< "HOST:PORT" for datagrams of other gateways; empty: it has none
  std::vector<ServiceReport> services;
  std::vector<ReplicaLoad> replicas;
};

}  // namespace orrery
