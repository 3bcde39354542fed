// node/steps/slurm_variables.hpp - what scripts made for Slurm read of their job: SLURM_* variables
// and lists of hosts in Slurm's bracket form.
//
// Pure functions; sbatch(1) and srun(1) of Slurm 22.05 define each variable. Only jobs of kSlurm
// get them. Hosts are the addresses by which the nodes of a gang reach each other: a script takes
// the first of SLURM_JOB_NODELIST as the address of its rendezvous.
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
  std::uint32_t here = 0;  ///< index in addresses
  std::size_t cpus = 0;
  std::optional<std::size_t> devices;  ///< none: there is no list of devices
  std::uint32_t restarts = 0;
};

/// Returns the variables that the script and all tasks on a node share. O(nodes).
[[nodiscard]] std::vector<std::pair<std::string, std::string>> slurm_variables(
    const SlurmSeat& node);

/// Returns "node[01-03,7],login": neighbours in the list that differ only in their last number
/// share brackets. Order and duplicates stay, so that the place of a node is its number in the job:
/// reading it back (fleet/import/host_list.hpp) gives the same list. O(bytes).
[[nodiscard]] std::string compress_host_list(const std::vector<std::string>& hosts);

/// Returns "4(x2),3": runs of equal task counts over consecutive nodes.
[[nodiscard]] std::string tasks_per_node_text(const std::vector<std::uint32_t>& tasks);

}  // namespace orrery
