// apps/orrery/remote_command.hpp - one command beside a rank, with this program's own standard
// input, output and errors as its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/orrery/local_terminal.hpp"
#include "verbs/cluster/live_session.hpp"

namespace orrery {

struct RemoteCommand {
  std::uint64_t job = 0;
  std::optional<std::uint32_t> gang;
  std::optional<std::uint32_t> rank;
  std::vector<std::string> command;  ///< empty: the shell of the job's user
  enum class Terminal : std::uint8_t { kNo, kYes } terminal = Terminal::kNo;
  std::string terminal_type;  ///< its TERM
};

/// Runs the command until it has ended or a signal ends this program, and returns its exit status;
/// for an ending signal 128 and its number. Errors: those of the controller, in its words; a
/// terminal is wanted and there is none.
[[nodiscard]] Result<int> run_remote(LiveSession& session, const RemoteCommand& asked,
                                     NotedSignals& signals);

}  // namespace orrery
