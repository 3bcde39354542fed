// executor/log/live_log.hpp - the log of a running controller: what is decided becomes bytes, the
// bytes become batches that another thread commits, and snapshots replace old batches.
//
// Owned by the controller, on its loop; store and state outlive it. Inputs that have events are
// numbered from 1. A record of the run, if one was requested, is written beside the log; if it
// cannot be written only the recording ends.
// A log that others follow may be taken over by one of them; the writer may speak for it only for a
// while after each write (StoreTraits::speaks_for).
// Invariant: a batch holds whole inputs, all up to one of them; `durable` names them in order.
// Cost: encoding an event; a snapshot costs that of the state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "base/log.hpp"
#include "executor/controller_settings.hpp"
#include "executor/log/live_record.hpp"
#include "executor/log/waiting_batches.hpp"
#include "store/commit/log_commits.hpp"
#include "store/history.hpp"

namespace orrery {

class LiveLog {
 public:
  /// The claim of the store that the log is written to.
  struct Claim {
    Store& store;
    StoreTerm term = StoreTerm::kNone;
    Instant at;                     ///< when the claim began, by the monotonic clock
    MakeCommits make_commits = {};  ///< makes what commits; empty: a GroupCommit
  };
  struct Options {
    Claim claim;
    const State& state;                  ///< the state after everything that was appended
    const ControllerSettings& settings;  ///< outlives the log; its changes take effect
    TimeHistogram& commit_times;
    const RecoveredHistory& history;  ///< what was read from the store
    std::unique_ptr<HistoryWriter> writer;
    std::unique_ptr<LiveRecord> record;  ///< none: no recording
    /// All inputs up to this one are durable. Called on the loop, as the next two are.
    std::function<void(std::uint64_t)> durable;
    /// may_speak() is true again, after it was false.
    std::function<void()> may_speak;
    /// The log cannot be written.
    std::function<void(const Error&)> failed;
    /// put_archived() is done, or failed for lack of space.
    std::function<void(const StorageStatus&)> archive_put;
    /// See CommitOptions.
    std::function<RoomMade()> make_room;
  };
  LiveLog(const Env& env, const Log& log, Options options);
  LiveLog(const LiveLog&) = delete;
  LiveLog& operator=(const LiveLog&) = delete;

  /// Records an input that is about to be handled.
  void note(const Input& input);
  /// Appends the events of an input and returns its number. They are committed after the next
  /// commit().
  std::uint64_t append(Instant at, std::span<const Event> events);
  /// Commits what was appended, unless it is held.
  void commit();
  /// What is appended from now on becomes durable together, after release().
  void hold() { held_ = Held::kYes; }
  void release();

  /// Whether no other process can have taken over the log.
  [[nodiscard]] bool may_speak() const;
  /// Returns why the log is not written now, for those who ask; empty: it is.
  [[nodiscard]] std::string silence() const;

  /// The term in which the log is written.
  [[nodiscard]] StoreTerm term() const { return speaking_.term; }
  /// The newest durable batch.
  [[nodiscard]] std::uint64_t newest() const {
    return std::max(speaking_.begun_at, waiting_.newest_durable());
  }

  /// Puts texts beside the log, durable before anything that is appended later.
  void put_texts(const StoreTexts& texts);
  /// Puts texts that the log does not depend on, and waits until they are durable. Errors: see
  /// LogCommits::put_texts_now().
  [[nodiscard]] StorageStatus put_texts_now(const StoreTexts& texts) const {
    return commits_->put_texts_now(texts);
  }
  /// Puts jobs into the archive; one call at a time.
  void put_archived(std::vector<ArchivedJob> jobs);
  /// Puts a snapshot if enough was appended since the last one.
  void snapshot_if_due();

  using Compacted = std::function<void(Result<CompactedLog>)>;
  /// Replaces the log up to now by a snapshot of the present state, after a check that the snapshot
  /// restores to the same state; `answered` is called when that is durable. `begun` is the setup
  /// that the log was begun with. Errors: no space on the disk. Cost: some seconds of the loop for
  /// 100,000 jobs.
  void compact(const ControlSetup& begun, Compacted answered);

  /// The bytes that were submitted for commit and are not durable yet; those held back do not
  /// count.
  [[nodiscard]] std::size_t waiting_bytes() const { return commits_->waiting_bytes(); }

 private:
  void spoke(Instant began);
  void note_answers(const StorageStatus& status);
  void flush();
  void look_at_record(const Status& status);

  Env env_;
  Log log_;
  const State& state_;
  const ControllerSettings& settings_;
  std::unique_ptr<HistoryWriter> writer_;
  std::unique_ptr<LiveRecord> record_;  ///< none: no recording
  WaitingBatches waiting_;
  std::uint64_t inputs_ = 0;
  enum class Held : std::uint8_t { kNo, kYes } held_ = Held::kNo;
  std::uint64_t since_snapshot_;  ///< bytes
  /// When it may speak for the log.
  struct Speaking {
    Duration lasts;  ///< max: for ever
    Instant since;   ///< when the newest write that succeeded began
    std::function<void()> again;
    std::string why_not;  ///< what the store says; empty: it takes writes
    StoreTerm term = StoreTerm::kNone;
    std::uint64_t begun_at = 0;  ///< newest batch at the beginning of the term
  } speaking_;
  std::unique_ptr<LogCommits> commits_;
};

}  // namespace orrery
