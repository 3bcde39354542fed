// executor/controller_options.hpp - what a controller is started with.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "executor/control_host.hpp"
#include "executor/controller_settings.hpp"
#include "executor/log/shared_log.hpp"
#include "node/agent_wire.hpp"
#include "perf/facts.hpp"
#include "store/setup_texts.hpp"

namespace orrery {

/// A job that has ended, for its row in the archive.
struct EndedJob {
  const State& state;
  JobId job;
  Instant now;
  const AttemptNotes* notes = nullptr;  ///< what its ranks said last; none: it is not known here
};

struct ControllerOptions {
  std::string directory;
  SetupTexts setup;    ///< for a new log; an existing one has its own
  const Facts& facts;  ///< outlives the controller
  ControllerSettings settings = {};
  /// Returns the archive's form of a job that has ended; none: all jobs stay in the state.
  std::function<std::string(const EndedJob&)> archived_form = {};
  /// The log that this controller shares with others; none: DIR/store, which it has alone.
  std::optional<SharedLog> shared = {};
  std::string record = {};   ///< directory for a record of each start; empty: no record
  std::string catalog = {};  ///< directory that overrides the built-in catalog; empty: none
  /// What to do when an agent reports ranks of a job that is not in the log.
  ControlHost::LostJobs lost_jobs = ControlHost::LostJobs::kAsk;
  /// Called if the log cannot be written, or another controller has taken over: the process must
  /// end.
  std::function<void(const Error&)> failed;
};

}  // namespace orrery
