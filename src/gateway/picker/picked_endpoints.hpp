// gateway/picker/picked_endpoints.hpp - which replicas of a service Envoy is told of, and in which
// order.
//
// A pure function over a router's state. Cost: O(replicas of the service).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "serving/routing/router.hpp"

namespace orrery {

struct PickedEndpoint {
  ReplicaKey key;
  std::string address;  ///< "IP:PORT"
};

struct PickedEndpoints {
  RouteDecision decision;
  std::vector<PickedEndpoint> endpoints;  ///< where a replica is chosen: it first, then fallbacks
  bool any_eligible = false;              ///< some replica may be chosen, now or later

  /// "IP:PORT[,IP:PORT..]"
  [[nodiscard]] std::string text() const;
};

/// Chooses as choose() does, among the replicas whose endpoints are in the subset (none: all) and
/// are addresses in numbers, as Envoy needs them. Fallbacks follow by their expected wait.
[[nodiscard]] PickedEndpoints pick_endpoints(const RouterState& router, RouteQuery query,
                                             const std::optional<std::vector<std::string>>& subset);

}  // namespace orrery
