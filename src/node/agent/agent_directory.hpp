// node/agent/agent_directory.hpp - the directory of an agent: its lock, and the small files that
// outlive the agent.
//
// Opened at the agent's start, and held until this object is destroyed. Used on the loop.
// Invariant: a directory has at most one agent, and each agent of it has a higher incarnation.
//
//   DIR/lock         held by the agent
//   DIR/incarnation  how often an agent was started here
//   DIR/cluster      cluster and node that the attempts here belong to
//   DIR/clocks       accelerators that do not run at their full clock
//   DIR/burn-in      why only a burn-in that passes makes the node well
//   DIR/attempts/    node/launch/attempt_directories.hpp
//   DIR/run          node/launch/run_directory.hpp
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/env.hpp"
#include "base/system/file_descriptor.hpp"
#include "node/launch/attempt_directories.hpp"

namespace orrery {

/// Whether an agent can use the directory. Error (kInput): its path is too long for sockets.
[[nodiscard]] Status check_agent_directory(Storage& storage, const std::string& directory);

/// How an agent waits for the lock of a directory that another agent holds.
struct LockWait {
  std::function<void()> begin;          ///< called once, where the lock is not free
  std::function<bool(Duration)> pause;  ///< lets time pass; false: ends the wait. Empty: no wait
};

class AgentDirectory {
 public:
  /// Makes the directory and takes its lock, for which it waits up to 60 s where `wait` is given.
  /// Precondition: `path` is absolute. Errors: a path that is too long, a directory that another
  /// agent holds, or that cannot be written.
  [[nodiscard]] static Result<AgentDirectory> open(Storage& storage, std::string path,
                                                   const LockWait& wait = {});

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string clocks() const { return path_ + "/clocks"; }
  [[nodiscard]] std::string burn_in() const { return path_ + "/burn-in"; }
  [[nodiscard]] std::string attempts() const { return path_ + "/attempts"; }
  /// Parent of the attempts' files that end with the boot.
  [[nodiscard]] const std::string& run() const { return run_; }
  /// How often an agent was started here, this one included.
  [[nodiscard]] std::uint64_t incarnation() const { return incarnation_; }

  /// Notes the cluster and node of the attempts here. Error: `living` attempts run here, and they
  /// are of another cluster or node, which would end them as unknown.
  [[nodiscard]] Status join(std::uint64_t cluster, NodeId node, std::size_t living);

 private:
  AgentDirectory(Storage& storage, std::string path) : storage_(storage), path_(std::move(path)) {}

  [[nodiscard]] Status lock(const LockWait& wait);
  [[nodiscard]] Status count();

  Storage& storage_;
  std::string path_;
  std::string run_;
  FileDescriptor lock_;
  std::uint64_t incarnation_ = 0;
};

}  // namespace orrery
