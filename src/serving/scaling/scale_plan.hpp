// serving/scaling/scale_plan.hpp - how many replicas a service is to have now.
//
// A pure function of what is expected, what a replica serves, what it costs and what was ordered
// before; control, twin and tests ask it alike. Plain values. Cost: that of least_cost_mix().
// Invariants of an answer:
//   1. Its sum is within min..max of the terms.
//   2. An order is not reversed within a minute, except that a service without replicas gets one as
//      soon as a request waits.
//   3. A replica is given up only where the others still serve the demand of `demand_in`, one at a
//      time, and not while the one before may still be starting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "serving/scaling/replica_capacity.hpp"
#include "serving/scaling/replica_mix.hpp"

namespace orrery {

/// What the owner of a service allows.
struct ScaleTerms {
  std::uint32_t min = 1;
  std::uint32_t max = 1;
  Duration idle = Duration::minutes(10);  ///< without requests, after which there are no replicas
  double quantile = 0.95;                 ///< of the demand that is to be served
};

/// Replicas on one kind of machine.
struct ScaleVariant {
  std::string name;           ///< of the machine; empty: the only one
  std::uint32_t present = 0;  ///< replicas that were ordered
  std::uint32_t most = 0;     ///< that the cluster could hold
  ReplicaCapacity capacity;
  double usd_s = 0;  ///< dollars a second of one
  double watts = 0;  ///< of one
};

/// What clients ask for.
struct ScaleTraffic {
  RequestShape shape;
  TokenDemand demand;         ///< that must be served once a new replica is ready
  TokenDemand demand_in;      ///< that the rest must serve when one is given up
  std::uint32_t waiting = 0;  ///< requests that no replica has
  std::uint32_t running = 0;  ///< requests that replicas have
  Instant last_request;
};

struct ScalePower {
  std::optional<double> watts;  ///< that all replicas may draw; none: no limit
  double usd_per_joule = 0;     ///< what energy weighs beside dollars
};

enum class ScaleDirection : std::uint8_t { kIn, kOut };

/// The last order that changed the number of replicas.
struct PastScaleOrder {
  Instant at;
  ScaleDirection direction = ScaleDirection::kOut;
};

struct ScaleQuestion {
  Instant now;
  ScaleTerms terms;
  std::vector<ScaleVariant> variants;
  ScaleTraffic traffic;
  Duration cold_start;  ///< of a replica, until it takes requests
  std::optional<PastScaleOrder> last;
  ScalePower power;
};

struct ScaleAnswer {
  std::vector<std::uint32_t> replicas;  ///< by variant
  std::uint32_t total = 0;
  std::string why;  ///< in sentences, also where nothing changes
};

/// Adds what waits to a demand: its tokens are to be computed within `time`. Precondition: time >
/// 0.
[[nodiscard]] TokenDemand with_waiting(const TokenDemand& demand, std::uint32_t waiting,
                                       const RequestShape& shape, Duration time);

/// Precondition: min <= max, max > 0, at least one variant.
[[nodiscard]] ScaleAnswer plan_scale(const ScaleQuestion& question);

}  // namespace orrery
