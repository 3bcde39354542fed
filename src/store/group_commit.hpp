// store/group_commit.hpp - makes a log durable beside the loop that writes it: one thread that
// commits one batch at a time.
//
// Made by the loop's owner, which gives it the store for as long as it lives. The loop submits
// bytes and goes on; what it submits during a commit is collected in the next batch. So commits are
// grouped under load, and cost one write when idle. A store that gives no answer is asked again
// until it does. Any other failure is final: nothing after it is written, and the loop, which has
// sent nothing that depends on what was not durable, ends. A store that others follow is shown that
// the writer lives when there is nothing to write (StoreTraits::beat_every). Threads: one submits,
// the other is its own; callbacks run on the loop, through its inbox. Invariant: `durable` is
// called with each number in order, after the store has that batch.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "store/store.hpp"

namespace orrery {

enum class RoomMade : std::uint8_t { kNo, kYes };

struct GroupCommitOptions {
  Store& store;
  StoreTerm term = StoreTerm::kNone;
  std::uint64_t newest = 0;  ///< newest batch in the store
  const Clock& clock;
  Inbox& inbox;
  /// All batches up to this one are durable. Called on the loop; this and the next two callbacks
  /// must stay valid until the loop's last round.
  std::function<void(std::uint64_t)> durable;
  /// A commit failed; nothing more will be durable.
  std::function<void(const StorageError&)> failed;
  /// A write that began then has succeeded; called before the write's own callback. Only for a
  /// store with a StoreTraits::speaks_for. May be empty, as the others that follow.
  std::function<void(Instant)> spoke;
  /// The store gives no answer or has no space (an error), or takes writes again (a success). Once
  /// for each change.
  std::function<void(const StorageStatus&)> answers;
  /// A snapshot was put, or failed for lack of space: the log is complete without it.
  std::function<void(const StorageStatus&)> snapshot_put;
  /// put_archived() is done, or failed for lack of space.
  std::function<void(const StorageStatus&)> archive_put;
  /// Called by the committing thread when a batch finds no space (store/sqlite/disk_reserve.hpp);
  /// it retries once if some was freed.
  std::function<RoomMade()> make_room;
};

class GroupCommit {
 public:
  static constexpr std::chrono::seconds kTextsPatience{5};

  explicit GroupCommit(GroupCommitOptions options);
  /// Commits what was submitted; `durable` is called for it only if the loop goes on.
  ~GroupCommit();
  GroupCommit(const GroupCommit&) = delete;
  GroupCommit& operator=(const GroupCommit&) = delete;

  /// Adds bytes, which stay together, to the open batch; the log up to them gives out the job
  /// numbers below `next_job`. Returns the batch's number, which `durable` reports when it is
  /// durable. Cost: a copy.
  std::uint64_t submit(std::string_view bytes, std::uint64_t next_job = 0);
  /// Puts texts beside the log, durable before anything submitted later.
  void put_texts(StoreTexts texts);
  /// Like put_texts(), and waits until they are durable. Error kUnavailable: the store gave no
  /// answer for kTextsPatience; it may have the texts later.
  [[nodiscard]] StorageStatus put_texts_now(StoreTexts texts);
  /// Puts jobs into the archive; one call at a time, because archive_put does not identify calls.
  void put_archived(std::vector<ArchivedJob> jobs);
  /// Puts a snapshot of the state after everything that was submitted. The log goes on with a new
  /// segment even if the snapshot fails. Two snapshots are kept, and what the older one covers is
  /// dropped.
  void put_snapshot(std::string bytes);
  using Compacted = std::function<void(const StorageResult<CompactedLog>&)>;
  /// Puts a snapshot and drops everything it covers, so it must be known to be good. `done` is
  /// called on the loop, unless the log fails.
  void compact(std::string bytes, Compacted done);
  /// The bytes submitted and not yet committed; the receiver of commands limits them.
  [[nodiscard]] std::size_t waiting_bytes() const;

 private:
  enum class Kind : std::uint8_t { kBatch, kTexts, kArchive, kSnapshot, kCompaction, kBeat };
  struct Work {
    Kind kind = Kind::kBatch;
    Batch batch;
    StoreTexts texts;
    std::vector<ArchivedJob> jobs;
    Compacted compacted = {};
    std::shared_ptr<std::promise<StorageStatus>> put = {};  ///< for put_texts_now()
    std::optional<StorageStatus> beside = {};  ///< the second thread has put the snapshot
    CompactedLog log = {};                     ///< result of a finished compaction
  };

  void run();
  /// Waits for work, or until a beat is due; none: the end. Precondition: the lock is held.
  [[nodiscard]] std::optional<Work> next(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool waits_for(const Work& work, const StorageError& error) const;
  /// Writes until the store gives an answer or the loop ends.
  [[nodiscard]] StorageStatus write_until_answered(Work& work);
  /// Gives the snapshot of the work to the second thread, from which the work comes back.
  void put_beside(Work work);
  [[nodiscard]] StorageStatus commit(const Work& work);
  [[nodiscard]] StorageStatus write(Work& work);
  [[nodiscard]] StorageStatus write_snapshot(Work& work);
  /// Whether nothing may be written after it.
  [[nodiscard]] static bool is_final(const Work& work, const StorageStatus& status);
  /// Posts the result of the work to the loop.
  void tell(const Work& work, const StorageStatus& status) const;

  GroupCommitOptions options_;
  StoreTraits traits_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Work> queue_;  ///< guarded by mutex_, as waiting_bytes_, newest_ and phase_ are
  std::size_t waiting_bytes_ = 0;
  std::uint64_t newest_;  ///< newest submitted batch
  enum class Phase : std::uint8_t { kRuns, kEnding, kFailed } phase_ = Phase::kRuns;
  bool puts_beside_ = false;  ///< the second thread is at work; used by thread_ alone
  std::thread snapshots_;     ///< used by thread_ and the destructor alone
  std::thread thread_;
};

}  // namespace orrery
