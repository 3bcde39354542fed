// node/job_user.hpp - as which POSIX user a node runs a job, and why it does not.
//
// Made from the agent's own user, what its operator allows and the node's list of users. A look at
// the list may ask a directory service; the rest is pure.
#pragma once

#include <optional>
#include <string>

#include "node/agent_wire.hpp"
#include "node/rank_process.hpp"

namespace orrery {

/// A POSIX user of this node.
struct PosixUser {
  ProcessUser ids;
  std::string name;
  std::string home;
  std::string shell;
};

/// Whether an agent that is root runs jobs that have no user of their own as root, too.
enum class AgentUserJobs : std::uint8_t { kRefused, kAllowed };

/// Who the agent of a node is, and whose jobs it runs.
struct AgentUser {
  PosixUser own;
  JobUsers jobs = JobUsers::kOwn;
};

/// The user of this process. One without a name has its number for a name.
[[nodiscard]] AgentUser agent_user(AgentUserJobs allowed);

/// The user of that name, with all groups. Errors: kInfeasible: there is none; kEnvironment: the
/// list of users could not be read.
[[nodiscard]] Result<PosixUser> find_user(const std::string& name);

/// As whom a job with this `run_as` (empty: none) runs on a node: its ids where the processes have
/// to change theirs, and always its name, home and shell. Errors: kInfeasible: the node may not run
/// it, and why; kEnvironment: the node is broken.
struct JobUser {
  PosixUser user;
  bool changes = false;  ///< it is another one than the agent's
};
[[nodiscard]] Result<JobUser> job_user(const std::string& run_as, const AgentUser& agent);

}  // namespace orrery
