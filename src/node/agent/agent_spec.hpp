// node/agent/agent_spec.hpp - what an operator configures for the agent of a node (DIR/agent.yaml,
// kind: Agent): how often it reads its machine, and programs that prepare, clean and check it.
//
// Values, read once at the agent's start. docs/cluster.md describes the keys.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/format/document.hpp"
#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"

namespace orrery {

/// A program of the operator's that runs once for each attempt.
struct HookSpec {
  std::vector<std::string> command;
  Seconds timeout{60};
  SourcePosition where;
};

/// A program of the operator's that runs periodically, and exits with 0 while the node is well.
struct HealthSpec {
  std::vector<std::string> command;
  Seconds interval{60};
  Seconds timeout{30};
  std::uint32_t failures = 3;  ///< in a row, before the node is unwell
  SourcePosition where;
};

/// Device files of one accelerator, where no driver names them.
struct DeviceSpec {
  std::vector<std::string> files;
  SourcePosition where;
};

struct AgentSpec {
  std::string api_version = "orrery/v1";
  std::string kind = "Agent";
  Seconds telemetry{10};
  std::optional<HookSpec> prologue;
  std::optional<HookSpec> epilogue;
  std::optional<HealthSpec> health;
  std::optional<HookSpec> burn_in;       ///< on demand; none: the agent's own
  std::vector<DeviceSpec> devices;       ///< in order, in place of those found; empty: as found
  std::uint64_t processes_max = 32'768;  ///< of an attempt, threads included; 0: any number
  /// Whether an agent that is root runs jobs without run_as, as root; none: the agent's command
  /// line decides.
  std::optional<bool> allow_agent_user;
};

/// Errors with file:line:column.
[[nodiscard]] Result<AgentSpec> read_agent_spec(const Document& document);

}  // namespace orrery
