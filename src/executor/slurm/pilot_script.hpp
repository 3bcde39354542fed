// executor/slurm/pilot_script.hpp - the batch script of a pilot: one agent on each node of the
// job.
//
// Pure. The script becomes srun, which starts one shell on each node; the shell makes the node's
// directory, writes the CA certificate and the join token into it and runs the agent. An agent that
// was killed is started again: its ranks run on meanwhile. Both
// travel in the script and through srun's standard input, and never stand in an argument, which
// `ps` shows to everybody; who may read Slurm's copy of the script, its operators, may read them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "executor/holds/hold.hpp"

namespace orrery {

/// How agents are started on the nodes of a manager.
struct PilotAgent {
  std::string program = "orrery-agent";  ///< looked for in PATH unless it is a path
  /// Absolute, on each node, and writable only by the user of the job: the states of its agents.
  std::string directory;
  std::vector<std::string> options;      ///< further ones of the agent
  std::vector<std::string> controllers;  ///< HOST:PORT
  std::string authority;                 ///< the cluster's CA certificate, PEM
};

/// Returns `text` as one word of a POSIX shell. Precondition: it has no NUL.
[[nodiscard]] std::string shell_word(std::string_view text);

/// Returns the script. Errors (kInput): no controller, a directory that is not absolute, a token or
/// certificate that cannot be sent line by line, a NUL anywhere.
[[nodiscard]] Result<std::string> pilot_script(const PilotAgent& agent, const EnsureHold& hold);

}  // namespace orrery
