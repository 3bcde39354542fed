// executor/managers/resource_manager.hpp - a resource manager that lends nodes, as the controller
// talks to it.
//
// Built by the daemon, one for each entry of managers.yaml, over a program or a server of the
// manager; by the twin over a virtual one that lies. It decides nothing and repeats nothing:
// HoldLink does.
#pragma once

#include <functional>

#include "executor/holds/hold.hpp"

namespace orrery {

class ResourceManager {
 public:
  /// Called on the loop.
  using Reported = std::function<void(ManagerReport)>;

  virtual ~ResourceManager() = default;
  /// Carries out an order without blocking the loop. EnsureHold is answered by one HoldAnswer,
  /// ListHolds by one ManagerListing; the end of a ReleaseHold shows in later lists. Orders are
  /// carried out one after the other.
  virtual void carry_out(const ManagerOrder& order) = 0;
};

}  // namespace orrery
