// base/threads/side_thread.hpp - one thread beside a loop, for work that takes too long on the
// loop.
//
// Made by the loop's owner. Its work uses nothing that the loop uses, and posts results to the
// loop's inbox. Work runs one at a time, in the order in which it was given. At the end, work that
// has not begun is dropped, and running work is waited for. Any thread may give work.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace orrery {

class SideThread {
 public:
  SideThread();
  ~SideThread();
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  void run(std::function<void()> work);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;  ///< guarded by mutex_, as phase_ is
  enum class Phase : std::uint8_t { kRuns, kEnding } phase_ = Phase::kRuns;
  std::thread thread_;
};

}  // namespace orrery
