// node/ending_signals.hpp - how a daemon is asked to end: SIGTERM and SIGINT, told on its loop.
//
// main() blocks them before any thread is made, so that all threads have them blocked; whoever owns
// the loop watches for them.
#pragma once

#include <memory>

#include "node/descriptor_watch.hpp"

namespace orrery {

/// Ignores SIGPIPE, too: a log whose reader has gone ends nobody.
void block_ending_signals();

/// Calls `ended` on the loop for each signal, as long as the watch lives. Error: no descriptor.
[[nodiscard]] Result<std::unique_ptr<DescriptorWatch>> watch_ending_signals(RealLoop& loop,
                                                                            Callback ended);

}  // namespace orrery
