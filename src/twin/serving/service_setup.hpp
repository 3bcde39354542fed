// twin/serving/service_setup.hpp - what a service in virtual time consists of: groups of replicas,
// the gateway's rules, what fails, and what changes the number of replicas.
//
// Plain values, filled by a verb, a study or a benchmark.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "serving/engine_step_cost.hpp"
#include "serving/peers/peer_loads.hpp"
#include "serving/routing/router.hpp"
#include "twin/serving/engine_model.hpp"
#include "workload/service_spec.hpp"

namespace orrery {

/// Replicas that are alike.
struct ReplicaGroup {
  std::string name;
  std::uint32_t count = 1;            ///< ready at the beginning
  std::optional<std::uint32_t> most;  ///< that machines allow; none: any number
  EngineRules rules;
  EngineStepCost cost;
  double request_s = 0;   ///< of a request outside of steps: network, tokens, text
  double usd_h = 0;       ///< dollars an hour of a replica; 0: unknown
  double watts = 0;       ///< while a step runs; 0: unknown
  double watts_idle = 0;  ///< otherwise
  Duration cold_start;    ///< from an order, or a crash, to its first request
  ReplicaDuty duty = ReplicaDuty::kBoth;
  std::optional<RoutedTransfer> transfer;  ///< of the caches of prompts that it computes for others
};

/// A replica crashes; another attempt is ready after the group's cold start.
struct ReplicaCrash {
  std::uint32_t replica = 0;  ///< in the order of groups; modulo those that are ready
  Duration at;
};

/// Upper limits of each request; 0: none.
struct RequestTargets {
  double ttft_s = 0;
  double tpot_s = 0;
};

/// Requests whose last token came.
struct AnsweredRequests {
  std::uint64_t requests = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t output_tokens = 0;
  double ttft_s = 0;       ///< sum of the times to their first tokens
  double tpot_s = 0;       ///< .. and between tokens
  std::uint64_t late = 0;  ///< beyond a target
};

/// What gateways measure between two ticks.
struct ServiceWindow {
  Duration begin;
  Duration length;
  std::uint64_t arrived = 0;
  std::uint64_t refused = 0;  ///< of these, and of those that waited
  AnsweredRequests answered;
  std::size_t waiting = 0;           ///< at the gateway, at its end
  std::size_t in_flight = 0;         ///< at replicas, at its end
  std::vector<std::uint32_t> ready;  ///< replicas by group, at its end
  std::vector<std::uint32_t> starting;
};

/// Returns how many replicas of each group there are to be. What it keeps between two ticks begins
/// anew with each run, which copies it.
using ServiceScaler = std::function<std::vector<std::uint32_t>(const ServiceWindow&)>;

struct ServiceSetup {
  std::vector<ReplicaGroup> groups;
  RouterOptions router;
  std::uint32_t gateways = 1;  ///< each of which gets a request as often as the others
  Duration tell = kPeerTell;   ///< between what gateways tell each other; zero: they do not
  RequestTargets targets;
  std::vector<ServiceTenantSpec> tenants;
  Duration queue_wait = Duration::seconds(60);  ///< of interactive requests for a replica
  Duration batch_wait = Duration::hours(24);
  std::vector<ReplicaCrash> crashes;
  Duration tick = Duration::seconds(1);  ///< as gateways report
  ServiceScaler scaler;                  ///< none: the number of replicas stays
  std::uint64_t seed = 1;
};

}  // namespace orrery
