// verbs/local/local_answer.hpp - what `orrery up` and `orrery down` say of a local cluster.
//
// Pure functions; texts are not escaped yet.
#pragma once

#include <string>
#include <vector>

#include "verbs/local/local_cluster.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

/// A local cluster that runs.
struct RunningCluster {
  std::string directory;         ///< absolute
  std::string asked;             ///< the directory as typed; empty: the default
  std::string address;           ///< host:port of the controller
  std::string gateway;           ///< URL for clients of services, without /v1
  std::vector<LocalNode> nodes;  ///< its own
  std::size_t lent = 0;          ///< nodes that resource managers lend
  std::size_t controllers = 1;
  std::size_t processes = 0;         ///< with agents, gateway and members of etcd
  std::vector<std::string> unknown;  ///< nodes of fleet.yaml that it does not have
  std::vector<std::string> started;  ///< processes that were started just now
  bool jobs_run_as_root = false;
};

/// Reads what there is to say of a cluster that was started. Errors: those of the controller.
[[nodiscard]] Result<RunningCluster> running_cluster(LocalCluster& cluster,
                                                     std::vector<std::string> started);

/// What is said of it, in this order.
struct RunningText {
  std::string head;  ///< "A local cluster of 4 nodes at ..."
  std::string note;  ///< for standard error: unknown nodes; empty: there are none
  std::string rest;  ///< what its nodes are, warnings, and what to type next
};
[[nodiscard]] RunningText running_text(const RunningCluster& cluster);
[[nodiscard]] Json running_json(const RunningCluster& cluster);

/// Returns what `orrery down` ended.
[[nodiscard]] VerbAnswer ended_answer(const LocalCluster::Ended& ended,
                                      LocalCluster::Keepers keepers);
/// Error (kInfeasible): a controller that `orrery up` did not start still runs.
[[nodiscard]] Status check_ended(const LocalCluster::Ended& ended);

}  // namespace orrery
