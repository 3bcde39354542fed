// apps/orreryd/resource_managers.hpp - makes the resource managers of DIR/managers.yaml.
//
// Called by the daemon each time that its controller leads, before agents are let in, and at
// SIGHUP.
#pragma once

#include "base/system/real_env.hpp"
#include "executor/controller.hpp"
#include "executor/slurm/slurm_setup.hpp"

namespace orrery {

/// Lets the controller hold nodes. `route`: how agents in a hold reach the controllers; the rest of
/// it is filled in.
void begin_resource_managers(RealEnv& real, const ManagersSpec& spec, PilotRoute route,
                             Controller& controller);

}  // namespace orrery
