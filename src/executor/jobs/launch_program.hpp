// executor/jobs/launch_program.hpp - what the nodes of a job receive beside the order to launch:
// its program and the places of its gangs.
//
// Made from control's state and the job's text, once for an epoch of an attempt, and the same for
// all its nodes. Cost: making it O(nodes of the job); a node's part O(nodes of its gangs).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/state/state.hpp"
#include "node/agent_wire.hpp"

namespace orrery {

/// Returns the address at which ranks on other nodes reach a node; empty: not known yet.
using NodeAddresses = std::function<std::string(NodeId)>;

class LaunchProgram {
 public:
  /// Precondition: the job holds devices, and launch_of(spec) is there.
  ///
  /// The port of a gang's rendezvous follows from job, attempt and gang: in [20000, 32000), below
  /// the range from which systems assign ports. If another program has the port, that attempt
  /// fails, and the next one uses another port.
  LaunchProgram(const State& state, const JobSpec& spec, JobId job, const NodeAddresses& addresses);

  /// Whether all addresses are known.
  [[nodiscard]] bool complete() const;
  /// Whether it is that of the job's present epoch.
  [[nodiscard]] bool is_of(const Job& job) const;
  /// Returns the part of a node. None: the address of a node of a gang there is not known, so the
  /// order must wait.
  [[nodiscard]] std::optional<NodeProgram> at(NodeId here) const;

 private:
  struct Gang {
    GangLayout layout;
    RankNeeds needs;
    bool reachable = true;  ///< the addresses of all its nodes are known
  };

  JobId job_;
  std::uint32_t attempt_;
  std::uint32_t epoch_;
  NodeProgram program_;  ///< without gangs
  std::vector<Gang> gangs_;
  std::map<std::pair<NodeId, std::uint32_t>, std::uint32_t> parts_;  ///< node, gang -> its place
};

/// Makes the programs of launches, each once for all nodes that are launched one after the other.
class LaunchPrograms {
 public:
  /// `step_key`: key for the secrets of attempts that run Slurm scripts
  /// (node/steps/step_secret.hpp).
  explicit LaunchPrograms(std::string step_key = {}) : step_key_(std::move(step_key)) {}

  /// Returns the part of a node in the present epoch of a job; none and preconditions: as for
  /// LaunchProgram.
  [[nodiscard]] std::optional<NodeProgram> part(const State& state, const JobSpec& spec,
                                                const std::pair<JobId, NodeId>& of,
                                                const NodeAddresses& addresses);
  /// Addresses or ids of nodes have changed.
  void forget() { last_.reset(); }

 private:
  std::string step_key_;
  std::optional<LaunchProgram> last_;
};

}  // namespace orrery
