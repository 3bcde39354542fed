// executor/side_thread.hpp - one thread beside a loop, for what takes too long on it.
//
// Made by the loop's owner; given work that touches nothing the loop does, whose results it posts
// to the loop's inbox. In the order in which it was given, one at a time. What has not begun when
// it ends is dropped, what has is waited for. Threads: any may give work.
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
  std::deque<std::function<void()>> queue_;  ///< guarded by mutex_, as is the next
  enum class Phase : std::uint8_t { kRuns, kEnding } phase_ = Phase::kRuns;
  std::thread thread_;
};

}  // namespace orrery
