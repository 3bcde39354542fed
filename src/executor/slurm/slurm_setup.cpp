#include "executor/slurm/slurm_setup.hpp"

namespace orrery {

SlurmSetup slurm_setup(const ManagerSpec& spec, const PilotRoute& route) {
  const SlurmSpec& slurm = spec.slurm;
  SlurmSetup setup{.cluster = route.cluster,
                   .slurm_conf = slurm.config,
                   .partition = slurm.partition,
                   .account = slurm.account,
                   .qos = slurm.qos,
                   .reservation = slurm.reservation,
                   .sbatch_options = slurm.options};
  const LentAgentSpec agent = spec.agent.value_or(LentAgentSpec());
  setup.agent = {.program = agent.program.empty() ? route.program : agent.program,
                 .directory = agent.directory,
                 .options = agent.options,
                 .controllers = route.controllers,
                 .authority = route.authority};
  if (!slurm.output.empty()) setup.log_file = slurm.output;
  return setup;
}

}  // namespace orrery
