// node/devices/driver_thread.hpp - a thread for calls into drivers, which may hang as long as the
// kernel's driver does: the loop, and with it the agent's heartbeat, goes on meanwhile.
//
// Owned and used on the loop. Data that a call needs is its own, or shared with an owner that does
// not touch it: where a call hangs, the thread outlives this object, and ends when the call
// returns.
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
  /// Waits briefly for the call in progress. Calls that have not begun are dropped.
  ~DriverThread();

  /// Queues a call; calls run one after the other. The queue is unbounded: callers limit their
  /// outstanding calls.
  void run(Call call);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace orrery
