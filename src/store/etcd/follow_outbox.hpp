// store/etcd/follow_outbox.hpp - what a follower's thread posts to the loop, and the end of it.
//
// Made by a follower; the callbacks that it has posted share it, because they may outlive the
// follower. Threads: the follower's posts and waits; the loop ends it. Invariants: after end() no
// callback calls out; the bytes that wait for the loop are bounded.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "base/time.hpp"
#include "store/shared_store.hpp"

namespace orrery {

class FollowOutbox : public std::enable_shared_from_this<FollowOutbox> {
 public:
  explicit FollowOutbox(FollowOptions options) : options_(std::move(options)) {}

  /// Waits until the loop has taken enough of the batches before, or the end.
  void post_batch(Batch batch);
  void post_seen(const WriterSeen& seen);
  void post_texts();
  void post_ahead(std::uint64_t newest);
  void post_failure(const StorageError& error);
  /// Waits, but not beyond the end.
  void wait(Duration time);
  [[nodiscard]] bool ended() const;

  /// Called on the loop: nothing calls back from now on.
  void end();

 private:
  void post(std::function<void(const FollowOptions&)> call, std::size_t bytes);

  FollowOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t waiting_bytes_ = 0;  ///< guarded by mutex_, as phase_ is
  enum class Phase : std::uint8_t { kRuns, kEnded } phase_ = Phase::kRuns;
};

}  // namespace orrery
