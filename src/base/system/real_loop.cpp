#include "base/system/real_loop.hpp"

#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/assert.hpp"

namespace orrery {
namespace {

tl::unexpected<Error> loop_error(const char* what) {
  return environment_error(
      fmt::format("event loop: {}: {}", what, std::generic_category().message(errno)));
}

int control(int epoll, int operation, int fd, epoll_event event) {
  return ::epoll_ctl(epoll, operation, fd, &event);
}

epoll_event event_for(std::uint64_t token, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  return event;
}

}  // namespace

Result<std::unique_ptr<RealLoop>> RealLoop::create() {
  Descriptors own{FileDescriptor(::epoll_create1(EPOLL_CLOEXEC)), {}, {}};
  if (!own.epoll.valid()) return loop_error("epoll_create1");
  own.timer = FileDescriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!own.timer.valid()) return loop_error("timerfd_create");
  own.wakeup = FileDescriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!own.wakeup.valid()) return loop_error("eventfd");
  const int epoll = own.epoll.get();
  if (control(epoll, EPOLL_CTL_ADD, own.timer.get(), event_for(kTimerToken, EPOLLIN)) != 0 ||
      control(epoll, EPOLL_CTL_ADD, own.wakeup.get(), event_for(kWakeupToken, EPOLLIN)) != 0) {
    return loop_error("epoll_ctl");
  }
  return std::make_unique<RealLoop>(std::move(own));
}

TimerId RealLoop::call_at(Instant monotonic, Callback callback) {
  const TimerId timer{monotonic, next_sequence_++};
  timers_.emplace(timer, std::move(callback));
  return timer;
}

TimerId RealLoop::call_after(Duration delay, Callback callback) {
  return call_at(clock_.now_monotonic() + delay, std::move(callback));
}

bool RealLoop::cancel(const TimerId& timer) { return timers_.erase(timer) > 0; }

void RealLoop::post(Callback callback) {
  const std::lock_guard<std::mutex> lock(posted_mutex_);
  posted_.push_back(std::move(callback));
  if (posted_.size() > 1) return;  // the wake-up of the first one is still on its way
  const std::uint64_t one = 1;
  while (::write(descriptors_.wakeup.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

Result<WatchId> RealLoop::watch(int fd, std::uint32_t events, ReadyHandler& handler) {
  if (control(descriptors_.epoll.get(), EPOLL_CTL_ADD, fd, event_for(next_watch_, events)) != 0) {
    return loop_error("epoll_ctl");
  }
  const WatchId id{next_watch_++};
  watches_.emplace(id, Watch{fd, &handler});
  return id;
}

void RealLoop::rewatch(WatchId watch, std::uint32_t events) {
  const auto found = watches_.find(watch);
  ORRERY_ASSERT(found != watches_.end(), "only what is watched can be changed");
  const auto token = static_cast<std::uint64_t>(watch);
  const int failed =
      control(descriptors_.epoll.get(), EPOLL_CTL_MOD, found->second.fd, event_for(token, events));
  ORRERY_ASSERT(failed == 0, "the descriptor of a watch stays open");
}

void RealLoop::unwatch(WatchId watch) {
  const auto found = watches_.find(watch);
  ORRERY_ASSERT(found != watches_.end(), "nothing is unwatched twice");
  const int failed =
      control(descriptors_.epoll.get(), EPOLL_CTL_DEL, found->second.fd, epoll_event{});
  ORRERY_ASSERT(failed == 0, "the descriptor of a watch stays open");
  watches_.erase(found);
}

void RealLoop::run_round() {
  ORRERY_ASSERT(phase_ == Phase::kIdle, "a callback must not run the loop");
  arm_timer();
  const int count = ::epoll_wait(descriptors_.epoll.get(), ready_.data(),
                                 static_cast<int>(ready_.size()), /*timeout=*/-1);
  if (count < 0) {
    ORRERY_ASSERT(errno == EINTR, "epoll_wait fails only for a signal");
    return;
  }
  phase_ = Phase::kInRound;
  const auto ready = static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < ready; ++i) drain(ready_[i]);
  run_due_timers();
  run_posted();
  for (std::size_t i = 0; i < ready; ++i) {
    // A handler before this one may have unwatched it.
    const auto found = watches_.find(WatchId{ready_[i].data.u64});
    if (found != watches_.end()) found->second.handler->on_ready(ready_[i].events);
  }
  phase_ = Phase::kIdle;
}

void RealLoop::arm_timer() {
  const Instant next = timers_.empty() ? Instant::max() : timers_.begin()->first.at;
  if (next == armed_) return;
  armed_ = next;
  itimerspec setting{};
  if (next != Instant::max()) {
    // All zero would disarm, and a negative time is refused: both are long past.
    const std::int64_t ns = std::max<std::int64_t>(next.ns(), 1);
    setting.it_value.tv_sec = ns / 1'000'000'000;
    setting.it_value.tv_nsec = ns % 1'000'000'000;
  }
  const int failed =
      ::timerfd_settime(descriptors_.timer.get(), TFD_TIMER_ABSTIME, &setting, nullptr);
  ORRERY_ASSERT(failed == 0, "any time after boot can be set");
}

void RealLoop::drain(const epoll_event& event) {
  if (event.data.u64 != kTimerToken && event.data.u64 != kWakeupToken) return;
  const bool timer = event.data.u64 == kTimerToken;
  if (timer) armed_ = Instant::max();
  std::uint64_t count = 0;
  while (::read(timer ? descriptors_.timer.get() : descriptors_.wakeup.get(), &count,
                sizeof count) < 0 &&
         errno == EINTR) {
  }
}

void RealLoop::run_due_timers() {
  const Instant now = clock_.now_monotonic();
  const std::uint64_t sequence_end = next_sequence_;
  auto next = timers_.begin();
  while (next != timers_.end() && next->first.at <= now) {
    if (next->first.sequence >= sequence_end) {
      ++next;
      continue;
    }
    const auto due = timers_.extract(next);
    due.mapped()();
    next = timers_.upper_bound(due.key());
  }
}

void RealLoop::run_posted() {
  std::vector<Callback> posted;
  {
    const std::lock_guard<std::mutex> lock(posted_mutex_);
    posted.swap(posted_);
  }
  for (Callback& callback : posted) callback();
}

}  // namespace orrery
