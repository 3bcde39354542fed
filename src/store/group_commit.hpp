// store/group_commit.hpp - makes a log durable beside the loop that writes it: one thread that
// commits, one batch at a time.
//
// Made by the loop's owner, who gives it the store for as long as it lives. The loop submits bytes
// and goes on; while a commit runs, what it submits gathers in the next batch. So commits group by
// themselves under load, and cost one write when idle. A failure is final: nothing after it is
// written, and the loop, which told nobody of what was not durable, ends.
// Threads: one submits, the other is its own; callbacks run on the loop, through its inbox.
// Invariant: `durable` is told each number in order, after the store has that batch.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "store/store.hpp"

namespace orrery {

enum class RoomMade : std::uint8_t { kNo, kYes };

struct GroupCommitOptions {
  Store& store;
  StoreTerm term = StoreTerm::kNone;
  std::uint64_t newest = 0;  ///< batch that the store has
  Inbox& inbox;
  /// All batches up to this one are durable. Called on the loop; what it refers to outlives the
  /// loop's last round, as do those of the other two.
  std::function<void(std::uint64_t)> durable;
  /// Nothing more will be.
  std::function<void(const StorageError&)> failed;
  /// A snapshot is there, or for want of room is not: the log is whole without it. May be none.
  std::function<void(const StorageStatus&)> snapshot_put;
  /// What put_archived was given is there, or for want of room is not. May be none.
  std::function<void(const StorageStatus&)> archive_put;
  /// Called by the committing thread when a batch finds no room (store/disk_reserve.hpp); it tries
  /// once more if some was made. May be none.
  std::function<RoomMade()> make_room;
};

class GroupCommit {
 public:
  /// At which a batch is closed; what is submitted at once stays together.
  static constexpr std::size_t kBatchBytes = std::size_t{1} << 20;

  explicit GroupCommit(GroupCommitOptions options);
  /// What was submitted is committed first; nobody is told of it unless the loop goes on.
  ~GroupCommit();
  GroupCommit(const GroupCommit&) = delete;
  GroupCommit& operator=(const GroupCommit&) = delete;

  /// Adds bytes to the batch that is open; job numbers below `next_job` are given out by the log up
  /// to them. Returns the batch's number, with which `durable` will tell that they are durable.
  /// Cost: a copy.
  std::uint64_t submit(std::string_view bytes, std::uint64_t next_job = 0);
  /// Texts beside the log, durable before what is submitted after them.
  void put_texts(StoreTexts texts);
  /// Jobs for the archive; one call at a time is told of.
  void put_archived(std::vector<ArchivedJob> jobs);
  /// Of the state after all that was submitted. The log goes on with a new segment, whatever
  /// becomes of the snapshot. Two snapshots are kept, and what the older one covers is dropped.
  void put_snapshot(std::string bytes);
  using Compacted = std::function<void(const StorageResult<CompactedLog>&)>;
  /// The same, and drops all that the snapshot covers, which has to be known to be good. `done` is
  /// called on the loop, unless the log fails.
  void compact(std::string bytes, Compacted done);
  /// Submitted and not yet committed: whoever takes commands bounds it.
  [[nodiscard]] std::size_t waiting_bytes() const;

 private:
  enum class Kind : std::uint8_t { kBatch, kTexts, kArchive, kSnapshot, kCompaction };
  struct Work {
    Kind kind = Kind::kBatch;
    Batch batch;
    StoreTexts texts;
    std::vector<ArchivedJob> jobs;
    Compacted compacted = {};
    CompactedLog log = {};  ///< of a compaction that is done
  };

  void run();
  [[nodiscard]] StorageStatus commit(const Work& work);
  [[nodiscard]] StorageStatus write(Work& work);
  /// Whether nothing may be written after it.
  [[nodiscard]] static bool is_final(const Work& work, const StorageStatus& status);
  /// Posts what became of it.
  void tell(const Work& work, const StorageStatus& status) const;

  GroupCommitOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Work> queue_;  ///< guarded by mutex_, as are the next three
  std::size_t waiting_bytes_ = 0;
  std::uint64_t newest_;  ///< submitted
  enum class Phase : std::uint8_t { kRuns, kEnding, kFailed } phase_ = Phase::kRuns;
  std::thread thread_;
};

}  // namespace orrery
