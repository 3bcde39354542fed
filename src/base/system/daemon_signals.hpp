// base/system/daemon_signals.hpp - the signals that a daemon handles on its loop: SIGTERM and
// SIGINT, to end; SIGHUP, to read its files again.
//
// main() blocks them before any thread is made, so that all threads have them blocked; the owner of
// the loop watches for them.
#pragma once

#include <memory>

#include "base/system/descriptor_watch.hpp"

namespace orrery {

enum class DaemonSignals : std::uint8_t {
  kEnd,     ///< SIGTERM, SIGINT
  kReload,  ///< SIGHUP
};

/// Blocks them and ignores SIGPIPE: a log whose reader has gone must not end the daemon.
void block_signals(DaemonSignals which);

/// Calls `told` on the loop for each signal, as long as the watch lives. Error: no descriptor.
[[nodiscard]] Result<std::unique_ptr<DescriptorWatch>> watch_signals(RealLoop& loop,
                                                                     DaemonSignals which,
                                                                     Callback told);

}  // namespace orrery
