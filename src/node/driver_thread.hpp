// node/driver_thread.hpp - a thread for calls into drivers, which may hang as long as the kernel's
// driver does: the loop, and with it the agent's heartbeat, goes on meanwhile.
//
// Owned and used on the loop. Whatever a call needs is its own, or shared with the owner who leaves
// it alone: where a call hangs, the thread outlives this object, and ends when the call returns.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "base/env.hpp"

namespace orrery {

class DriverThread {
 public:
  /// Runs on the thread; what it returns runs on the loop, unless this object is gone by then.
  using Call = std::function<Callback()>;

  explicit DriverThread(Inbox& inbox);
  DriverThread(const DriverThread&) = delete;
  DriverThread& operator=(const DriverThread&) = delete;
  /// Waits a moment for the call in progress. Calls that have not begun are dropped.
  ~DriverThread();

  /// One after the other. Unbounded: whoever asks bounds what is outstanding.
  void run(Call call);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace orrery
