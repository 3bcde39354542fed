// executor/slurm/slurm_setup.hpp - what a manager of managers.yaml means for Slurm's programs.
#pragma once

#include <string>
#include <vector>

#include "executor/managers/manager_spec.hpp"
#include "executor/slurm/slurm_manager.hpp"

namespace orrery {

/// What agents in a hold must know of the cluster.
struct PilotRoute {
  std::uint64_t cluster = 0;             ///< its number
  std::vector<std::string> controllers;  ///< HOST:PORT
  std::string authority;                 ///< certificate of its authority, PEM
  std::string program;                   ///< orrery-agent, where the spec names none
};

[[nodiscard]] SlurmSetup slurm_setup(const ManagerSpec& spec, const PilotRoute& route);

}  // namespace orrery
