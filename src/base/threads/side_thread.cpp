#include "base/threads/side_thread.hpp"

#include <utility>

namespace orrery {

SideThread::SideThread() : thread_([this] { work(); }) {}

SideThread::~SideThread() {
  {
    const std::scoped_lock lock(mutex_);
    phase_ = Phase::kEnding;
  }
  wake_.notify_one();
  thread_.join();
}

void SideThread::run(std::function<void()> work) {
  {
    const std::scoped_lock lock(mutex_);
    queue_.push_back(std::move(work));
  }
  wake_.notify_one();
}

void SideThread::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return phase_ == Phase::kEnding || !queue_.empty(); });
    if (phase_ == Phase::kEnding) return;
    std::function<void()> next = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    next();
    next = nullptr;  // what it holds may take long to destroy
    lock.lock();
  }
}

}  // namespace orrery
