// store/commit/commit_queue.hpp - what waits to be committed, in order: what is submitted during a
// commit is collected in the next batch.
//
// Owned by an implementation of LogCommits, which locks it where it has threads.
// Invariant: submitted batches are numbered without gaps. Cost: O(1) a call, and copies.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "store/commit/log_commits.hpp"

namespace orrery {

/// One write of a log.
struct CommitWork {
  enum class Kind : std::uint8_t { kBatch, kTexts, kArchive, kSnapshot, kCompaction, kBeat };

  Kind kind = Kind::kBatch;
  Batch batch = {};
  StoreTexts texts = {};
  std::vector<ArchivedJob> jobs = {};
  LogCommits::Compacted compacted = {};
  std::shared_ptr<std::promise<StorageStatus>> put = {};  ///< for put_texts_now()
  std::optional<StorageStatus> beside = {};               ///< a second thread has put the snapshot
  CompactedLog log = {};                                  ///< result of a finished compaction

  /// Whether a claim that lacks this write fails. The archive is not part of the log, and a
  /// snapshot may be written with nothing to drop.
  [[nodiscard]] bool shows_writer() const {
    return kind == Kind::kBatch || kind == Kind::kBeat || kind == Kind::kTexts;
  }
  [[nodiscard]] bool is_snapshot() const {
    return kind == Kind::kSnapshot || kind == Kind::kCompaction;
  }
};

class CommitQueue {
 public:
  /// Batches are closed at `batch_bytes`; the store has those up to `newest`.
  CommitQueue(std::size_t batch_bytes, std::uint64_t newest)
      : batch_bytes_(batch_bytes), newest_(newest) {}

  /// See LogCommits::submit().
  std::uint64_t submit(std::string_view bytes, std::uint64_t next_job);
  void put_texts(StoreTexts texts, std::shared_ptr<std::promise<StorageStatus>> put = {});
  void put_archived(std::vector<ArchivedJob> jobs);
  /// A snapshot of what was submitted, for a kSnapshot or kCompaction.
  void put_snapshot(CommitWork::Kind kind, std::string bytes, LogCommits::Compacted done = {});
  /// A beat, unless there is something to write.
  void put_beat();
  /// Gives work back whose snapshot was put beside.
  void put_back(CommitWork work) { works_.push_back(std::move(work)); }

  [[nodiscard]] bool empty() const { return works_.empty(); }
  /// Removes the oldest work. Precondition: there is one.
  [[nodiscard]] CommitWork take();
  /// The work that was taken is done, or has failed for ever.
  void finish(const CommitWork& work) { waiting_bytes_ -= work.batch.bytes.size(); }
  [[nodiscard]] std::size_t waiting_bytes() const { return waiting_bytes_; }

 private:
  std::size_t batch_bytes_;
  std::deque<CommitWork> works_;
  std::size_t waiting_bytes_ = 0;
  std::uint64_t newest_;  ///< newest submitted batch
};

}  // namespace orrery
