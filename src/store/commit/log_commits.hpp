// store/commit/log_commits.hpp - what the writer of a log gives to be committed, and what it is
// told.
//
// Implemented with a thread (store/group_commit.hpp), and in virtual time by the twin
// (twin/replicas/virtual_commits.hpp). Owned by the log of a controller, on its loop; the store
// outlives it. Invariant: `durable` is called with each number in order, after the store has that
// batch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.hpp"

namespace orrery {

enum class RoomMade : std::uint8_t { kNo, kYes };

struct CommitOptions {
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
  /// Called where commits are made when a batch finds no space (store/sqlite/disk_reserve.hpp);
  /// the batch is tried once more if some was freed.
  std::function<RoomMade()> make_room;
};

class LogCommits {
 public:
  using Compacted = std::function<void(const StorageResult<CompactedLog>&)>;

  LogCommits() = default;
  LogCommits(const LogCommits&) = delete;
  LogCommits& operator=(const LogCommits&) = delete;
  virtual ~LogCommits() = default;

  /// Adds bytes, which stay together, to the open batch; the log up to them gives out the job
  /// numbers below `next_job`. Returns the batch's number, which `durable` reports when it is
  /// durable. Cost: a copy.
  virtual std::uint64_t submit(std::string_view bytes, std::uint64_t next_job) = 0;
  /// Puts texts beside the log, durable before anything submitted later.
  virtual void put_texts(StoreTexts texts) = 0;
  /// Like put_texts(), and waits until they are durable. Error kUnavailable: the store gave no
  /// answer for some seconds; it may have the texts later.
  [[nodiscard]] virtual StorageStatus put_texts_now(StoreTexts texts) = 0;
  /// Puts jobs into the archive; one call at a time, because archive_put does not identify calls.
  virtual void put_archived(std::vector<ArchivedJob> jobs) = 0;
  /// Puts a snapshot of the state after everything that was submitted. The log goes on with a new
  /// segment even if the snapshot fails. Two snapshots are kept, and what the older one covers is
  /// dropped.
  virtual void put_snapshot(std::string bytes) = 0;
  /// Puts a snapshot and drops everything it covers, so it must be known to be good. `done` is
  /// called on the loop, unless the log fails.
  virtual void compact(std::string bytes, Compacted done) = 0;
  /// The bytes submitted and not yet committed; the receiver of commands limits them.
  [[nodiscard]] virtual std::size_t waiting_bytes() const = 0;
};

using MakeCommits = std::function<std::unique_ptr<LogCommits>(CommitOptions)>;

}  // namespace orrery
