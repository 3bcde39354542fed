// store/history.hpp - the meaning of a store's batches and snapshots: the history of a control
// core, written in order, and read back into a core.
//
// A log is a journal (control/log/journal.hpp) cut twice. A *batch* holds whole records. A
// *segment* is a run of batches whose first one begins with the head of a journal: each start of a
// writer opens one, and so does each snapshot. A head names the history hash before it, so the
// chain of checksums spans all segments; a snapshot names the hash after its last batch, so the
// chain spans dropped segments, too. Plain values; readers are for one thread. Cost: that of
// reading, decoding and applying what the newest snapshot does not cover.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/core/core.hpp"
#include "control/log/journal.hpp"
#include "store/store.hpp"

namespace orrery {

// --- Writing ------------------------------------------------------------------------------------

struct HistoryWriterOptions {
  std::string writer;        ///< name and version of the program
  std::string setup;         ///< digest of the facts (store/setup_texts.hpp)
  std::uint64_t before = 0;  ///< history hash of the store's content
};

/// Turns events into bytes for LogCommits::submit. To put a snapshot: submit take(), put
/// snapshot(), then call begin_segment().
class HistoryWriter {
 public:
  /// Opens a segment.
  explicit HistoryWriter(HistoryWriterOptions options);

  void append(Instant at, std::span<const Event> events);
  /// Returns what was added since the last call; empty: nothing. Bytes that are returned together
  /// become durable together: the events of one input are not separated.
  [[nodiscard]] std::string take();
  /// Returns the bytes of a snapshot. Precondition: take() has returned all events of `state`.
  [[nodiscard]] std::string snapshot(const State& state) const;
  void begin_segment();

  [[nodiscard]] std::uint64_t history_hash() const { return journal_->history_hash(); }

 private:
  struct Sink final : JournalSink {
    void write(std::string_view added) override { bytes += added; }
    std::string bytes;
  };

  HistoryWriterOptions options_;
  std::unique_ptr<Sink> sink_;  ///< at a stable address
  std::unique_ptr<Journal> journal_;
};

/// The bytes of a snapshot of `state` (control/state/snapshot.hpp) after a history with that hash.
[[nodiscard]] std::string seal_snapshot(std::uint64_t history_hash, std::string_view state);

struct OpenedSnapshot {
  std::uint64_t history_hash = 0;
  std::string_view state;  ///< within the bytes that were opened
};
/// Errors (kEnvironment): the bytes are damaged, or not a snapshot.
[[nodiscard]] Result<OpenedSnapshot> open_snapshot(std::string_view bytes);

// --- Reading ------------------------------------------------------------------------------------

/// A place in a log. A segment has the number of its first batch; 0: none yet.
struct HistoryPlace {
  std::uint64_t segment = 0;
  std::uint64_t batch = 0;
  std::uint64_t offset = 0;  ///< in the batch, in bytes
};

/// An Error that also holds the place, for programs. Its text names the place, too.
struct HistoryDamage : Error {
  HistoryPlace place;
};
template <class T>
using HistoryResult = tl::expected<T, HistoryDamage>;

template <class T>
[[nodiscard]] tl::unexpected<Error> forward_error(HistoryResult<T>& result) {
  return tl::unexpected<Error>(std::move(result.error()));
}

/// The place where reading begins.
struct HistoryStart {
  std::uint64_t after = 0;         ///< batch before it
  std::uint64_t history_hash = 0;  ///< history hash up to there
};

using EventVisitor = std::function<void(const TimedEvent&)>;

class HistoryReader {
 public:
  /// Reads up to the batch that is the newest now. Store and plans outlive the reader. `plans`: see
  /// JournalReadOptions. Errors: of the store. If the store has the texts of a setup, segments that
  /// were written with other facts are damage.
  [[nodiscard]] static HistoryResult<HistoryReader> open(StoreReader& store,
                                                         const HistoryStart& start,
                                                         const PlanSource* plans);

  /// Calls `visit` with each event of the next batch; false: there is no further batch. Errors: the
  /// first damage; events visited before it are good, and nothing after it is read.
  [[nodiscard]] HistoryResult<bool> next_batch(const EventVisitor& visit);
  /// Like next_batch(), for a batch that came after open() and that the caller has: the one after
  /// batch().
  [[nodiscard]] HistoryResult<void> take(const Batch& next, const EventVisitor& visit);

  struct Counts {
    std::uint64_t batches = 0;
    std::uint64_t segments = 0;
    std::uint64_t events = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }
  /// The newest batch read so far.
  [[nodiscard]] std::uint64_t batch() const { return place_.batch; }
  /// The history hash up to the end of batch().
  [[nodiscard]] std::uint64_t history_hash() const { return hash_; }

 private:
  HistoryReader(StoreReader& store, const HistoryStart& start, const PlanSource* plans)
      : store_(&store), plans_(plans), hash_(start.history_hash) {
    place_.batch = start.after;
  }
  /// Returns the batch after the newest one read; none: there is none.
  [[nodiscard]] HistoryResult<const Batch*> fetch();
  [[nodiscard]] HistoryResult<void> enter(const Batch& batch);
  [[nodiscard]] tl::unexpected<HistoryDamage> damage(const HistoryPlace& place,
                                                     const std::string& what) const;

  StoreReader* store_;
  const PlanSource* plans_;
  std::uint64_t hash_;
  std::uint64_t newest_ = 0;
  std::string facts_;   ///< digest of the setup texts; empty: there are none
  HistoryPlace place_;  ///< place of the newest batch read
  std::vector<Batch> portion_;
  std::size_t next_ = 0;  ///< index in portion_
  std::optional<JournalReader<TimedEvent>> journal_;
  Counts counts_;
};

/// Receives a history that is read.
class HistoryTarget {
 public:
  virtual ~HistoryTarget() = default;
  /// Forgets everything: the history begins again.
  virtual void begin() = 0;
  [[nodiscard]] virtual Status restore(std::string_view snapshot) = 0;
  /// Error: the event cannot be applied with these facts.
  [[nodiscard]] virtual Status apply(const TimedEvent& event) = 0;
};

/// Makes the state that a history leads to. The setup outlives it.
class StateTarget final : public HistoryTarget {
 public:
  explicit StateTarget(const ControlSetup& setup) : setup_(setup) {}
  void begin() override;
  [[nodiscard]] Status restore(std::string_view snapshot) override;
  [[nodiscard]] Status apply(const TimedEvent& event) override;
  /// Precondition: a history was read.
  [[nodiscard]] const State& state() const { return *state_; }

 private:
  const ControlSetup& setup_;
  std::unique_ptr<State> state_;
};

struct RecoveredHistory {
  std::optional<std::uint64_t> snapshot;  ///< batch of the snapshot used; none: there was none
  std::vector<std::string> passed_over;   ///< why newer snapshots were not used
  HistoryReader::Counts read;             ///< what was read after it
  std::uint64_t newest = 0;               ///< newest batch
  std::uint64_t history_hash = 0;
};

/// Restores the newest good snapshot, then every batch after it. Errors: any damage of the log; a
/// damaged snapshot whose batches exist nowhere else.
[[nodiscard]] HistoryResult<RecoveredHistory> recover_history(StoreReader& store,
                                                              const PlanSource* plans,
                                                              HistoryTarget& target);

struct RecoveredCore {
  std::unique_ptr<Core> core;  ///< resumed
  RecoveredHistory history;
};

/// `setup` outlives the core.
[[nodiscard]] HistoryResult<RecoveredCore> recover_core(StoreReader& store,
                                                        const ControlSetup& setup);

class CoreTarget;

/// A core that follows a history which another process writes: like that of recover_core(), but not
/// resumed, and with every batch that it was given since. Cost of a batch: decoding and applying
/// it.
class FollowedCore {
 public:
  /// Called with the state before each event that is applied.
  using BeforeEvent = std::function<void(const State& state, const TimedEvent& event)>;

  /// `store` and `setup` outlive the object.
  [[nodiscard]] static HistoryResult<std::unique_ptr<FollowedCore>> recover(
      StoreReader& store, const ControlSetup& setup, BeforeEvent before = {});
  /// For recover().
  FollowedCore(const ControlSetup& setup, BeforeEvent before);
  FollowedCore(const FollowedCore&) = delete;
  FollowedCore& operator=(const FollowedCore&) = delete;
  ~FollowedCore();

  /// Applies the batch after newest(). After an error, which names the damage, the core is
  /// unusable.
  [[nodiscard]] HistoryResult<void> take(const Batch& next);
  [[nodiscard]] std::uint64_t newest() const { return reader_->batch(); }
  /// The history hash up to the end of that batch.
  [[nodiscard]] std::uint64_t history_hash() const { return reader_->history_hash(); }
  [[nodiscard]] const State& state() const;
  /// Resumes the core and gives it away.
  [[nodiscard]] RecoveredCore lead();

 private:
  std::unique_ptr<CoreTarget> target_;
  PlanSource plans_;
  std::optional<HistoryReader> reader_;
  RecoveredHistory recovered_;  ///< what recover() has read
};

struct VerifiedHistory {
  StoreExtent extent;
  HistoryReader::Counts read;
  std::vector<std::uint64_t> snapshots;  ///< newest first
  std::uint64_t history_hash = 0;
};

/// Reads everything that exists: each record, each snapshot (complete and of this history), the
/// structures of the backend. Errors: the first damage.
[[nodiscard]] HistoryResult<VerifiedHistory> verify_history(StoreReader& store);

/// Returns where the oldest existing batch begins. Errors: neither the first batch nor a good
/// snapshot of what came before the oldest one exists.
[[nodiscard]] HistoryResult<HistoryStart> oldest_start(StoreReader& store);

}  // namespace orrery
