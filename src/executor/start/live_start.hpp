// executor/start/live_start.hpp - the start of a controller: reads its directory, from the claim of
// the store up to a core with its history. With a log that others share, executor/start/standby.hpp
// comes before it.
//
// Each start has a term of its own, and a record of its own if one was requested:
// RECORD/0000000007 for the seventh. Texts of a new log are stored only after a setup could be made
// of them, so that a refused file can be corrected. Cost: that of reading the log.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/env.hpp"
#include "base/log.hpp"
#include "executor/agents/agent_keys.hpp"
#include "executor/controller_options.hpp"
#include "executor/live/control_clock.hpp"
#include "executor/live/live_setup.hpp"
#include "executor/log/live_record.hpp"
#include "executor/log/live_store.hpp"
#include "store/history.hpp"

namespace orrery {

/// What a start has read.
struct LiveStart {
  Instant began;              ///< time of day
  std::uint64_t cluster = 0;  ///< the number that agents know the cluster by
  ClaimedStore store;
  std::string step_key;  ///< key for the secrets of scripts
  AgentKeys agent_keys;
  std::unique_ptr<LiveSetup> setup;
  std::unique_ptr<Core> core;  ///< resumed
  RecoveredHistory history;
  ControlClock clock;
  std::unique_ptr<HistoryWriter> writer;  ///< continues the history
  std::unique_ptr<LiveRecord> record;     ///< none: no recording
};

/// Texts of a log, and the setup made of them.
struct LogTexts {
  StoreTexts texts;
  std::unique_ptr<LiveSetup> setup;
};
/// Returns the texts of a claimed log, or puts those of a new one. Errors: of the store; of a text.
[[nodiscard]] Result<LogTexts> begin_texts(const Env& env, ClaimedStore& claimed,
                                           const ControllerOptions& options);

/// What a start has when its core has its history.
struct RecoveredStart {
  Instant began;  ///< time of day
  ClaimedStore store;
  LogTexts log;
  RecoveredCore recovered;
};
/// Errors: the files of the directory; of the store.
[[nodiscard]] Result<LiveStart> complete_start(const Env& env, const Log& log,
                                               const ControllerOptions& options,
                                               RecoveredStart start);

/// Starts with DIR/store, which is claimed at once. Errors: of the texts; of the store (another
/// process has it); damage of the log with its place.
[[nodiscard]] Result<LiveStart> start_from(const Env& env, const Log& log,
                                           const ControllerOptions& options);

}  // namespace orrery
