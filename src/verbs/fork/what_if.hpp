// verbs/fork/what_if.hpp - the verb `what-if`: how a running cluster would go on as it is, and with
// a change.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "verbs/fork/live_fork.hpp"
#include "verbs/fork/service_fork.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

/// The options as typed; empty: not given.
struct WhatIfOptions {
  std::vector<std::string> files;  ///< job specs that would be submitted
  std::uint32_t copies = 1;
  std::vector<std::string> drain;  ///< names of nodes
  bool at_once = false;            ///< what runs on drained nodes is stopped
  std::vector<std::string> add;    ///< names of nodes that are away
  std::string policy;
  std::string tenants;
  std::vector<std::string> caps;  ///< "NAME=POWER" or "NAME=none"
  std::string span = "7 days";
  std::string store;  ///< empty: that of the cluster
  ServiceChange service;
};

/// Returns what an operator would do at the fork: policy, tenants, caps, nodes that come, drains,
/// in this order. Errors: anything wrong in an option, naming it; those of the files, with their
/// line.
[[nodiscard]] Result<std::vector<InputKind>> commands_asked(const WhatIfOptions& asked,
                                                            const State& state);

/// Plays the cluster, or a service of it, as it is and with the change. It only reads the store.
/// Errors: those of commands_asked(), LiveFork and service_what_if(); nothing to change; a change
/// of the cluster and a service at once.
[[nodiscard]] Result<VerbAnswer> what_if(const CommandOptions& options, const WhatIfOptions& asked);

}  // namespace orrery
