#include "node/devices/driver_thread.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace orrery {

struct DriverThread::Shared {
  explicit Shared(Inbox& loop) : inbox(loop) {}

  Inbox& inbox;  ///< used with the mutex held, and only until it has stopped
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Call> calls;
  bool stopped = false;
  bool finished = false;

  void work(const std::shared_ptr<Shared>& self) {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return stopped || !calls.empty(); });
      if (stopped) break;
      Call call = std::move(calls.front());
      calls.pop_front();
      lock.unlock();
      Callback then = call();
      call = nullptr;
      lock.lock();
      if (stopped) break;
      inbox.post([self, then = std::move(then)] {
        // Set on the loop's own thread, so it needs no lock to be seen here.
        if (!self->stopped) then();
      });
    }
    finished = true;
    changed.notify_all();
  }
};

DriverThread::DriverThread(Inbox& inbox)
    : shared_(std::make_shared<Shared>(inbox)),
      thread_([shared = shared_] { shared->work(shared); }) {}

DriverThread::~DriverThread() {
  constexpr std::chrono::milliseconds kPatience(200);
  std::unique_lock<std::mutex> lock(shared_->mutex);
  shared_->stopped = true;
  shared_->calls.clear();
  shared_->changed.notify_all();
  const bool ended =
      shared_->changed.wait_for(lock, kPatience, [this] { return shared_->finished; });
  lock.unlock();
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void DriverThread::run(Call call) {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  shared_->calls.push_back(std::move(call));
  shared_->changed.notify_all();
}

}  // namespace orrery
