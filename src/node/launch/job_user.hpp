// node/launch/job_user.hpp - the POSIX user that a node runs a job as, or why it does not run the
// job.
//
// Made from the agent's own user, what its operator allows and the node's list of users. Reading
// the list may query a directory service; the rest is pure.
#pragma once

#include <optional>
#include <string>

#include "node/agent_wire.hpp"
#include "node/keeper/rank_process.hpp"

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

/// The user of a node's agent, and whose jobs it runs.
struct AgentUser {
  PosixUser own;
  JobUsers jobs = JobUsers::kOwn;
};

/// Returns the user of this process. A user without a name has its number as its name.
[[nodiscard]] AgentUser agent_user(AgentUserJobs allowed);

/// Returns the user of that name, with all groups. Errors: kInfeasible: there is none;
/// kEnvironment: the list of users could not be read.
[[nodiscard]] Result<PosixUser> find_user(const std::string& name);

/// The user that a job with this `run_as` (empty: none) runs as: its ids where the processes have
/// to change theirs, and always its name, home and shell. Errors: kInfeasible: the node may not run
/// it, and why; kEnvironment: the node is broken.
struct JobUser {
  PosixUser user;
  bool changes = false;  ///< whether it differs from the agent's
};
[[nodiscard]] Result<JobUser> job_user(const std::string& run_as, const AgentUser& agent);

}  // namespace orrery
