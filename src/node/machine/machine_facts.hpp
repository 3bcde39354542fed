// node/machine/machine_facts.hpp - facts of a machine that decide how well Orrery works on it, from
// its kernel, disk and libraries.
//
// Made by look_at_machine() for `orrery doctor`; plain values. node/machine/machine_check.hpp says
// what they mean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "node/devices/discovery.hpp"

namespace orrery {

/// The disk that a directory is on, or would be.
struct DiskFacts {
  std::string path;     ///< the directory, or the nearest existing one above it
  std::string trouble;  ///< why nothing can be written there; empty: it can
  std::uint64_t free_bytes = 0;
  Duration sync;     ///< how long a small write takes to be durable, the median
  std::string kind;  ///< "nfs", "tmpfs" or the like where that matters; else empty
};

/// Accelerators of one name.
struct DeviceFacts {
  std::string name;  ///< as their maker calls them
  std::uint32_t count = 0;
  std::string driver;  ///< with its version; empty: no driver reports them
};

/// The OpenBLAS that programs of this machine find.
struct OpenBlasFacts {
  std::string config;   ///< "OpenBLAS 0.3.21 DYNAMIC_ARCH ..."; empty: there is none
  std::string kernels;  ///< the CPU whose kernels it chose, such as "Prescott"
};

struct ClockFacts {
  std::string source;         ///< of the kernel
  Duration jump;              ///< of the time of day against monotonic time, during the look
  bool backwards = false;     ///< monotonic time went back
  bool synchronised = false;  ///< whether the kernel's clock is synchronised by a server
};

struct PythonFacts {
  std::string version;                ///< empty: there is no python3
  std::vector<std::string> packages;  ///< those of torch, jax and numpy that it finds
};

/// An agent that runs on the machine as root, so that it starts jobs of several POSIX users.
struct RootAgentFacts {
  std::string node;
  bool jobs_as_root = false;  ///< it runs jobs without run_as, as root (allow_agent_user)
};

struct MachineFacts {
  std::string machine;  ///< host name
  std::string kernel;   ///< release
  std::uint32_t cores = 0;
  std::uint64_t memory_bytes = 0;
  std::string core_type;              ///< openblas_core_type() of its CPU
  std::string control_groups;         ///< "v2", "v1"; empty: none
  std::string control_group_trouble;  ///< why none can be made; empty: it can
  std::string listen_trouble;         ///< why it cannot listen at a port of loopback
  std::string name_trouble;           ///< why other machines do not reach it by its name
  std::uint64_t open_files_max = 0;
  DiskFacts disk;
  ClockFacts clock;
  PythonFacts python;
  OpenBlasFacts openblas;
  std::vector<DeviceFacts> devices;
  std::vector<std::string> device_trouble;  ///< what could not be found out about accelerators
  std::vector<RootAgentFacts> root_agents = {};
  bool processes_hidden = false;  ///< /proc is mounted with hidepid: users see their own alone
};

/// Writes and removes a small file in the directory of a cluster, which need not exist, or above
/// it; makes and removes a control group, runs python3, and loads OpenBLAS. Accelerators are those
/// that an agent would find. Takes about a second.
[[nodiscard]] MachineFacts look_at_machine(const Clock& clock, const std::string& directory,
                                           const Discovery& accelerators);

}  // namespace orrery
