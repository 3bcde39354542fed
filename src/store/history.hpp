// store/history.hpp - what the batches and snapshots of a store mean: the history of a control
// core, written in order, and read back into one.
//
// A log is a journal (control/journal.hpp) cut twice. A *batch* holds whole records. A *segment* is
// a run of batches whose first one begins with the head of a journal: each start of a writer opens
// one, and so does each snapshot. A head names the history hash before it, so the chain of
// checksums runs through all segments; a snapshot names the hash after its last batch, so it runs
// through those that were dropped, too. Values and readers of one thread. Cost: that of reading,
// decoding and applying what the newest snapshot does not cover.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/core.hpp"
#include "control/journal.hpp"
#include "store/store.hpp"

namespace orrery {

// --- Writing ------------------------------------------------------------------------------------

struct HistoryWriterOptions {
  std::string writer;        ///< name and version of the program
  std::string setup;         ///< digest of the facts (store/setup_texts.hpp)
  std::uint64_t before = 0;  ///< history hash of what the store has
};

/// Events as bytes for GroupCommit::submit. To put a snapshot: submit take(), put snapshot(), then
/// begin_segment().
class HistoryWriter {
 public:
  /// Opens a segment.
  explicit HistoryWriter(HistoryWriterOptions options);

  void append(Instant at, std::span<const Event> events);
  /// What was added since the last call; empty: nothing was. What is taken at once is durable at
  /// once or not at all: the events of one input are not parted.
  [[nodiscard]] std::string take();
  /// The bytes of a snapshot. Precondition: all that `state` went through was taken.
  [[nodiscard]] std::string snapshot(const State& state) const;
  void begin_segment();

  [[nodiscard]] std::uint64_t history_hash() const { return journal_->history_hash(); }

 private:
  struct Sink final : JournalSink {
    void write(std::string_view added) override { bytes += added; }
    std::string bytes;
  };

  HistoryWriterOptions options_;
  std::unique_ptr<Sink> sink_;  ///< at an address that stays
  std::unique_ptr<Journal> journal_;
};

/// The bytes of a snapshot of `state` (control/snapshot.hpp) after a history with that hash.
[[nodiscard]] std::string seal_snapshot(std::uint64_t history_hash, std::string_view state);

struct OpenedSnapshot {
  std::uint64_t history_hash = 0;
  std::string_view state;  ///< within the bytes that were opened
};
/// Errors (kEnvironment): they are damaged, or no snapshot.
[[nodiscard]] Result<OpenedSnapshot> open_snapshot(std::string_view bytes);

// --- Reading ------------------------------------------------------------------------------------

/// Where in a log something is. A segment has the number of its first batch; 0: none yet.
struct HistoryPlace {
  std::uint64_t segment = 0;
  std::uint64_t batch = 0;
  std::uint64_t offset = 0;  ///< in the batch, in bytes
};

/// An Error that also says, for a program, where. Its text says it, too.
struct HistoryDamage : Error {
  HistoryPlace place;
};
template <class T>
using HistoryResult = tl::expected<T, HistoryDamage>;

template <class T>
[[nodiscard]] tl::unexpected<Error> forward_error(HistoryResult<T>& result) {
  return tl::unexpected<Error>(std::move(result.error()));
}

/// Where reading begins.
struct HistoryStart {
  std::uint64_t after = 0;         ///< the batch before
  std::uint64_t history_hash = 0;  ///< of all up to there
};

using EventVisitor = std::function<void(const TimedEvent&)>;

class HistoryReader {
 public:
  /// Up to the batch that is the newest now. What is borrowed outlives it. `plans`: see
  /// JournalReadOptions. Errors: of the store. Where the store has the texts of a setup, segments
  /// that rest on other facts are damage.
  [[nodiscard]] static HistoryResult<HistoryReader> open(StoreReader& store,
                                                         const HistoryStart& start,
                                                         const PlanSource* plans);

  /// Hands each event of the next batch to `visit`; false: there is no further batch. Errors: the
  /// first damage; what was visited before it is good, and nothing after it is read.
  [[nodiscard]] HistoryResult<bool> next_batch(const EventVisitor& visit);

  struct Counts {
    std::uint64_t batches = 0;
    std::uint64_t segments = 0;
    std::uint64_t events = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }
  /// The newest batch that was read.
  [[nodiscard]] std::uint64_t batch() const { return place_.batch; }
  /// Up to its end.
  [[nodiscard]] std::uint64_t history_hash() const { return hash_; }

 private:
  HistoryReader(StoreReader& store, const HistoryStart& start, const PlanSource* plans)
      : store_(&store), plans_(plans), hash_(start.history_hash) {
    place_.batch = start.after;
  }
  /// The batch after the newest one read; none: there is none.
  [[nodiscard]] HistoryResult<const Batch*> fetch();
  [[nodiscard]] HistoryResult<bool> enter(const Batch& batch);
  [[nodiscard]] tl::unexpected<HistoryDamage> damage(const HistoryPlace& place,
                                                     const std::string& what) const;

  StoreReader* store_;
  const PlanSource* plans_;
  std::uint64_t hash_;
  std::uint64_t newest_ = 0;
  std::string facts_;   ///< digest of the setup texts; empty: there are none
  HistoryPlace place_;  ///< of the newest batch read
  std::vector<Batch> portion_;
  std::size_t next_ = 0;  ///< in it
  std::optional<JournalReader<TimedEvent>> journal_;
  Counts counts_;
};

/// What a history is read into.
class HistoryTarget {
 public:
  virtual ~HistoryTarget() = default;
  /// Forgets everything: the history begins anew.
  virtual void begin() = 0;
  [[nodiscard]] virtual Status restore(std::string_view snapshot) = 0;
  virtual void apply(const TimedEvent& event) = 0;
};

struct RecoveredHistory {
  std::optional<std::uint64_t> snapshot;  ///< batch up to which one was used; none: there was none
  std::vector<std::string> passed_over;   ///< why newer ones were not
  HistoryReader::Counts read;             ///< after it
  std::uint64_t newest = 0;               ///< batch
  std::uint64_t history_hash = 0;
};

/// The newest snapshot that is good, then every batch after it. Errors: any damage of the log; the
/// batches that only a damaged snapshot covers.
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

struct VerifiedHistory {
  StoreExtent extent;
  HistoryReader::Counts read;
  std::vector<std::uint64_t> snapshots;  ///< newest first
  std::uint64_t history_hash = 0;
};

/// Reads everything that is there: each record, that each snapshot is whole and of this history,
/// the structures of the backend. Errors: the first damage.
[[nodiscard]] HistoryResult<VerifiedHistory> verify_history(StoreReader& store);

/// Where the oldest batch that is there begins. Errors: neither the first batch nor a good snapshot
/// of what came before it is there.
[[nodiscard]] HistoryResult<HistoryStart> oldest_start(StoreReader& store);

}  // namespace orrery
