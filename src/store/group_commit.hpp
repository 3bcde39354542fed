// store/group_commit.hpp - makes a log durable beside the loop that writes it: one thread that
// commits one batch at a time.
//
// Made by the loop's owner, which gives it the store for as long as it lives. The loop submits
// bytes and goes on; what it submits during a commit is collected in the next batch. So commits are
// grouped under load, and cost one write when idle. Failures: store/commit/commit_writer.hpp. A
// store that others follow is shown that the writer lives when there is nothing to write
// (StoreTraits::beat_every). Threads: one submits, the other is its own; callbacks run on the loop,
// through its inbox.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "store/commit/commit_writer.hpp"

namespace orrery {

class GroupCommit final : public LogCommits {
 public:
  static constexpr std::chrono::seconds kTextsPatience{5};

  explicit GroupCommit(CommitOptions options);
  /// Commits what was submitted; `durable` is called for it only if the loop goes on.
  ~GroupCommit() override;

  std::uint64_t submit(std::string_view bytes, std::uint64_t next_job = 0) override;
  void put_texts(StoreTexts texts) override;
  /// Waits kTextsPatience for an answer.
  [[nodiscard]] StorageStatus put_texts_now(StoreTexts texts) override;
  void put_archived(std::vector<ArchivedJob> jobs) override;
  void put_snapshot(std::string bytes) override;
  void compact(std::string bytes, Compacted done) override;
  [[nodiscard]] std::size_t waiting_bytes() const override;

 private:
  /// Adds work to the queue, under the lock.
  template <class Add>
  void add(Add add_work);
  void run();
  /// Waits for work, or until a beat is due; none: the end. Precondition: the lock is held.
  [[nodiscard]] std::optional<CommitWork> next(std::unique_lock<std::mutex>& lock);
  /// Writes until the store gives an answer or the loop ends. After more than one try a beat shows
  /// at once that the writer lives.
  [[nodiscard]] StorageStatus write_until_answered(CommitWork& work);
  /// Gives the snapshot of the work to the second thread, from which the work comes back.
  void put_beside(CommitWork work);

  CommitWriter writer_;  ///< used by thread_ alone, except for its options
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  CommitQueue queue_;  ///< guarded by mutex_, as phase_ is
  enum class Phase : std::uint8_t { kRuns, kEnding, kFailed } phase_ = Phase::kRuns;
  bool puts_beside_ = false;  ///< the second thread is at work; used by thread_ alone
  std::thread snapshots_;     ///< used by thread_ and the destructor alone
  std::thread thread_;
};

}  // namespace orrery
