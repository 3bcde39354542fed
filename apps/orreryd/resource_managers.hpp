// apps/orreryd/resource_managers.hpp - the resource managers of DIR/managers.yaml, made and begun.
//
// Called by the daemon each time that its controller leads, when its doors are open.
#pragma once

#include "apps/orreryd/config_files.hpp"
#include "base/system/real_env.hpp"
#include "executor/controller.hpp"
#include "executor/slurm/slurm_setup.hpp"

namespace orrery {

/// `route`: how agents in a hold reach the controllers; the rest is filled in. Errors: of the file,
/// with its line; see LiveHolds::begin(). Without the file no manager lends nodes.
[[nodiscard]] Status begin_resource_managers(RealEnv& real, ConfigFiles& files, PilotRoute route,
                                             Controller& controller);

}  // namespace orrery
