#include "store/etcd/follow_outbox.hpp"

#include <chrono>
#include <utility>

namespace orrery {
namespace {

constexpr std::size_t kWaitingBytesMax = std::size_t{32} << 20;

}  // namespace

bool FollowOutbox::ended() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return phase_ == Phase::kEnded;
}

void FollowOutbox::end() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    phase_ = Phase::kEnded;
  }
  changed_.notify_all();
}

void FollowOutbox::wait(Duration time) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, std::chrono::nanoseconds(time.count_ns()),
                    [this] { return phase_ == Phase::kEnded; });
}

void FollowOutbox::post(std::function<void(const FollowOptions&)> call, std::size_t bytes) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock,
                  [this] { return waiting_bytes_ < kWaitingBytesMax || phase_ == Phase::kEnded; });
    if (phase_ == Phase::kEnded) return;
    waiting_bytes_ += bytes;
  }
  options_.inbox.post([self = shared_from_this(), made = std::move(call), bytes] {
    if (self->ended()) return;
    made(self->options_);
    {
      const std::lock_guard<std::mutex> lock(self->mutex_);
      self->waiting_bytes_ -= bytes;
    }
    self->changed_.notify_all();
  });
}

void FollowOutbox::post_batch(Batch batch) {
  const std::size_t bytes = batch.bytes.size();
  post([next = std::move(batch)](const FollowOptions& to) { to.batch(next); }, bytes);
}

void FollowOutbox::post_seen(const WriterSeen& seen) {
  post([seen](const FollowOptions& to) { to.seen(seen); }, 0);
}

void FollowOutbox::post_texts() {
  post([](const FollowOptions& to) { to.texts_put(); }, 0);
}

void FollowOutbox::post_ahead(std::uint64_t newest) {
  if (!options_.ahead) return;
  post([newest](const FollowOptions& to) { to.ahead(newest); }, 0);
}

void FollowOutbox::post_failure(const StorageError& error) {
  post([error](const FollowOptions& to) { to.failed(error); }, 0);
}

}  // namespace orrery
