// node/launch/launch_environment.hpp - the launch contract: what each process of a job finds in its
// environment, by framework.
//
// Pure functions over what the agent knows of a job; the keeper starts processes with the result.
// Nothing is inherited: only what is named here or in the job's spec is set, so no variable of
// another launcher (Slurm, PMI, Open MPI) can mislead a program.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/keeper.hpp"
#include "workload/job_spec.hpp"

namespace orrery {

/// The launcher whose variables give a process its rank.
enum class LaunchStyle : std::uint8_t {
  kNative,
  kTorch,
  kDeepspeed,
  kTensorflow,
  kJax,
  kMpi,
  kSlurm,  ///< a script of Slurm: see node/steps/step_server.hpp
};

/// Returns the style of a framework's id in the catalog, "mpi" or "slurm"; a framework without
/// variables of its own is native.
[[nodiscard]] LaunchStyle launch_style_of(std::string_view framework);

/// Which variable lists the devices that a process may use.
enum class DeviceList : std::uint8_t { kNone, kCuda, kRocm, kNeuron, kTpu };

/// Returns the list of a platform's id in the catalog.
[[nodiscard]] DeviceList device_list_of(std::string_view platform);

/// One node of a gang, with its ranks.
struct GangNode {
  std::string address;  ///< name or number that the other nodes reach it by
  std::vector<std::uint32_t> ranks;
};

/// One gang over all its nodes. Invariant: ranks count from 0 without gaps; `here` is one of nodes.
struct GangLayout {
  std::uint32_t gang = 0;
  std::vector<GangNode> nodes;
  std::uint32_t here = 0;         ///< this node's place in `nodes`
  std::uint16_t master_port = 0;  ///< free on the first node, as are the next ones, one for each of
                                  ///< its ranks
  std::uint32_t restarts = 0;     ///< of the job so far
};

/// What each rank of a gang asked of its node, beside its device.
struct RankNeeds {
  std::uint32_t gang = 0;
  std::uint32_t cpu = 0;     ///< thousandths of a core; 0: not given
  std::uint32_t memory = 0;  ///< MiB; 0: not given
};

using Variables = std::vector<std::pair<std::string, std::string>>;

/// Names of the files that get a copy of what ranks write, with patterns
/// (workload/slurm/output_pattern.hpp); empty: none.
struct OutputNames {
  std::string output;
  std::string errors;  ///< of standard error; empty: it goes where standard output goes
};

/// What is the same for every process of an attempt on one node.
struct LaunchFacts {
  std::string job;     ///< its name
  std::string tenant;  ///< its path
  AttemptId attempt;
  std::string plan;      ///< JSON
  std::string progress;  ///< path of the stream of progress lines
  std::string hostfile;  ///< path, for kMpi
  std::string rankfile;  ///< path, for kMpi
  LaunchStyle style = LaunchStyle::kNative;
  LaunchUnit per = LaunchUnit::kAccelerator;
  std::vector<std::string> command;
  Variables environment;  ///< of the spec
  std::uint32_t restarts_max = 0;
  DeviceList devices = DeviceList::kNone;
  std::vector<std::string> device_names;  ///< the platform's, by device; none: their numbers
  std::uint32_t threads = 1;              ///< cores of one device's part of the node
  std::string openblas_core_type;
};

/// One process to start.
struct RankStart {
  std::vector<RankSlot> slots;  ///< one, or all of a gang on the node (kNode, kMpi, kSlurm)
  std::uint32_t rank = 0;
  Variables environment;  ///< each name once, ascending
};

/// Returns the processes of one share. The contract's variables override the spec's environment,
/// which overrides defaults (threads, OpenBLAS). With kMpi the command starts the ranks itself:
/// there is one process, on the node of rank 0, and none on the others. With kSlurm there is one a
/// node, whatever `per` is. Precondition: the layout is of the share's gang and gives this node the
/// share's ranks. O(ranks here x variables; for TensorFlow x ranks of the gang).
[[nodiscard]] std::vector<RankStart> rank_starts(const LaunchFacts& facts, const GangLayout& layout,
                                                 const RankShare& share);

/// Returns the file for `mpirun --hostfile`: "address slots=N", one address per line. Nodes of one
/// address (emulated ones on one machine) share a line: mpirun takes no address twice. A slot is
/// one unit of `per`.
[[nodiscard]] std::string mpi_hostfile(const GangLayout& layout, LaunchUnit per);
/// Returns the file for `mpirun --rankfile`: "rank R=address slot=0-15", ranks ascending. It fixes
/// the node of a rank, not the core: each rank may use all `cores` of its node, which is taken to
/// be like this one. They are physical cores: mpirun counts those, and ends where a core is named
/// that does not exist.
[[nodiscard]] std::string mpi_rankfile(const GangLayout& layout, LaunchUnit per,
                                       std::uint32_t cores);

}  // namespace orrery
