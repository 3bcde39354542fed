// executor/side_reads.hpp - reads of a controller's situation that take too long on the loop: each
// runs on a thread beside it, on a held situation.
//
// Owned by the controller, on its loop. Reads run one at a time, in the order in which they were
// requested. Each is prepared on the loop when its turn comes, so that at most one situation is
// held and nothing is held for a client that has gone.
// Invariant: at most kWaitingMax reads wait. Cost on the loop: that of holding the situation, once
// a read.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>

#include "base/env.hpp"
#include "base/threads/side_thread.hpp"
#include "control/core/held_situation.hpp"
#include "executor/live/live_host.hpp"

namespace orrery {

class SideReads {
 public:
  /// What is done on the loop with what was read.
  using Finish = std::function<void()>;
  /// Runs on the thread; uses nothing that the loop uses.
  using Read = std::function<Finish(const HeldSituation&)>;
  /// Runs on the loop just before the situation is held, and collects what the read needs of the
  /// state beside it; an empty function: nothing is to be read any more.
  using Prepare = std::function<Read()>;
  static constexpr std::size_t kWaitingMax = 64;

  SideReads(const Env& env, LiveHost& host) : env_(env), host_(host) {}

  /// Requests a read. Returns false where kWaitingMax wait already: it is not taken.
  [[nodiscard]] bool add(Prepare prepare);
  /// Calls `then` on the thread once the read that runs now, if one does, has ended. Any thread.
  void after_running(std::function<void()> then) { thread_.run(std::move(then)); }

 private:
  void begin_next();

  Env env_;
  LiveHost& host_;
  std::deque<Prepare> waiting_;
  Read running_;  ///< none: no read runs; destroyed on the loop, whatever it holds
  SideThread thread_;
};

}  // namespace orrery
