// base/system/real_loop.hpp - the event loop of the real Env: epoll, a timerfd and an eventfd.
//
// Built by RealEnv and driven by its thread alone; only post() may be called from elsewhere. A
// round waits for something to do, then runs the timers due, the callbacks posted and the
// descriptors ready at that moment, in this order; what those cause waits for the next round, so
// nothing starves. Cost: O(log n) a timer or descriptor, one wake-up for any number of posts.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/env.hpp"
#include "base/system/file_descriptor.hpp"
#include "base/system/real_clock.hpp"

namespace orrery {

/// Told when a watched descriptor is ready. It may unwatch, and destroy itself, inside the call.
class ReadyHandler {
 public:
  virtual ~ReadyHandler() = default;
  /// `events`: EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP; level-triggered.
  virtual void on_ready(std::uint32_t events) = 0;
};

enum class WatchId : std::uint64_t { kNone = 0 };

class RealLoop final : public Timers, public Inbox {
 public:
  struct Descriptors {
    FileDescriptor epoll;
    FileDescriptor timer;
    FileDescriptor wakeup;
  };

  /// Fails when the process or system is out of descriptors.
  [[nodiscard]] static Result<std::unique_ptr<RealLoop>> create();
  /// Precondition: timer and wakeup are in epoll; create() sees to it.
  explicit RealLoop(Descriptors descriptors) : descriptors_(std::move(descriptors)) {}

  TimerId call_at(Instant monotonic, Callback callback) override;
  TimerId call_after(Duration delay, Callback callback) override;
  bool cancel(const TimerId& timer) override;
  void post(Callback callback) override;

  /// Watches `fd`, which stays the caller's, until unwatch(); `handler` is borrowed as long.
  [[nodiscard]] Result<WatchId> watch(int fd, std::uint32_t events, ReadyHandler& handler);
  /// Changes the events watched for. Precondition: watched.
  void rewatch(WatchId watch, std::uint32_t events);
  /// Precondition: watched, and the descriptor not yet closed. No call follows, even in this round.
  void unwatch(WatchId watch);

  /// Blocks until something happens, then handles it. Returns early on a signal. Precondition: not
  /// inside a callback.
  void run_round();

 private:
  struct Watch {
    int fd = -1;
    ReadyHandler* handler = nullptr;
  };

  void arm_timer();
  void run_due_timers();
  void run_posted();
  void drain(const epoll_event& event);

  // What epoll hands back for the loop's own two descriptors; watches come after.
  static constexpr std::uint64_t kTimerToken = 1;
  static constexpr std::uint64_t kWakeupToken = 2;

  RealClock clock_;
  Descriptors descriptors_;
  std::map<TimerId, Callback> timers_;
  std::uint64_t next_sequence_ = 1;
  Instant armed_ = Instant::max();  ///< when timer_ fires; max: it does not
  std::map<WatchId, Watch> watches_;
  std::uint64_t next_watch_ = 3;
  std::array<epoll_event, 256> ready_{};
  enum class Phase { kIdle, kInRound } phase_ = Phase::kIdle;

  std::mutex posted_mutex_;  ///< guards posted_, the only thing other threads touch
  std::vector<Callback> posted_;
};

}  // namespace orrery
