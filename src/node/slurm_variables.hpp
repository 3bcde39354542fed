// node/slurm_variables.hpp - what scripts made for Slurm read of their job: SLURM_* variables and
// lists of hosts in its brackets.
//
// Pure functions; sbatch(1) and srun(1) of Slurm 22.05 say what each variable means. Only jobs of
// kSlurm get them. Hosts are what the nodes of a gang reach each other by: a script takes the first
// of SLURM_JOB_NODELIST for the address of its rendezvous.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery {

/// A job as one of its nodes sees it.
struct SlurmSeat {
  std::string job;      ///< its number
  std::string name;     ///< "train", or "train[3]" of an array
  std::string account;  ///< path of the tenant
  std::vector<std::string> addresses;
  std::uint32_t here = 0;  ///< among them
  std::size_t cpus = 0;
  std::optional<std::size_t> devices;  ///< none: there is no list of them
  std::uint32_t restarts = 0;
};

/// What is the same for the script and all tasks on a node. O(nodes).
[[nodiscard]] std::vector<std::pair<std::string, std::string>> slurm_variables(
    const SlurmSeat& node);

/// "node[01-03,7],login": neighbours in the list that differ in their last number alone share
/// brackets. Order and doubles stay, so that the place of a node is its number in the job: reading
/// it back (fleet/host_list.hpp) gives the same list. O(bytes).
[[nodiscard]] std::string compress_host_list(const std::vector<std::string>& hosts);

/// "4(x2),3": as many tasks on so many nodes, in order.
[[nodiscard]] std::string tasks_per_node_text(const std::vector<std::uint32_t>& tasks);

}  // namespace orrery
