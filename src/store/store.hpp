// store/store.hpp - the durable log: numbered batches of bytes, snapshots that replace the first of
// them, and a few texts.
//
// store/history.hpp defines the meaning of the bytes. A backend implements a store
// (store/sqlite/sqlite_store.hpp, store/memory/memory_store.hpp); all keep one contract
// (store/store_contract_test.cpp), which requires no more than one transaction of a file or of a
// quorum can guarantee. One thread at a time.
// Invariant: batches are numbered from 1 without gaps, and dropped ones are covered by a snapshot.
// Cost: that of the backend; an append is as slow as a durable write.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/env.hpp"

namespace orrery {

/// A writer's term. Each claim begins the next term, and ends the previous one.
enum class StoreTerm : std::uint64_t { kNone = 0 };

/// The unit of writing. Its size is not limited here, so that related bytes stay together. A
/// backend with small transactions writes it in parts; it is valid once the last part is there.
struct Batch {
  std::uint64_t number = 0;
  std::string bytes;
  std::uint64_t next_job = 0;  ///< the log up to this batch gives out the job numbers below it
};

/// The batches that a store has.
struct StoreExtent {
  std::uint64_t oldest = 1;  ///< oldest batch that still exists; newest + 1: none
  std::uint64_t newest = 0;  ///< newest batch that was ever appended; 0: none

  friend bool operator==(const StoreExtent&, const StoreExtent&) = default;
};

/// A job that has left the log's state, in the form in which it was put. The archive may be local
/// to a machine even where the log is not: it is made of the log.
struct ArchivedJob {
  std::uint64_t id = 0;
  std::string bytes;

  friend bool operator==(const ArchivedJob&, const ArchivedJob&) = default;
};

/// Texts by name, kept beside the log (store/setup_texts.hpp).
using StoreTexts = std::map<std::string, std::string>;

/// Reads a store, even while another process writes: each call sees whole batches, in the order
/// written. Errors of all calls: of the machine; kOther if the backend finds its own files damaged.
class StoreReader {
 public:
  virtual ~StoreReader() = default;

  /// The store's location, for messages.
  [[nodiscard]] virtual const std::string& name() const = 0;
  [[nodiscard]] virtual StorageResult<StoreExtent> extent() = 0;
  /// Returns batches after `after`, ascending: at least one if there is one, then more up to about
  /// `bytes_max`. A missing number in between was lost: the caller must check for it.
  [[nodiscard]] virtual StorageResult<std::vector<Batch>> read(std::uint64_t after,
                                                               std::size_t bytes_max) = 0;
  /// Returns the batches up to which there is a snapshot, newest first.
  [[nodiscard]] virtual StorageResult<std::vector<std::uint64_t>> snapshots() = 0;
  /// Error kNotFound: there is no such snapshot.
  [[nodiscard]] virtual StorageResult<std::string> snapshot(std::uint64_t covers) = 0;
  [[nodiscard]] virtual StorageResult<StoreTexts> texts() = 0;
  /// Returns archived jobs with an id below `before`, descending, at most `count`. O(count).
  [[nodiscard]] virtual StorageResult<std::vector<ArchivedJob>> archived(std::uint64_t before,
                                                                         std::size_t count) = 0;
  /// Checks the backend's own structures, beyond what the calls above would find. As slow as
  /// reading everything.
  [[nodiscard]] virtual StorageStatus check() = 0;
};

/// What a writer must know of its store.
struct StoreTraits {
  std::size_t batch_bytes = std::size_t{1} << 20;  ///< size at which a batch is closed
  /// Time after its last write after which the writer shows that it lives (Store::beat()); max: no
  /// other process follows the store.
  Duration beat_every = Duration::max();
  /// A writer may speak for the log for this long after it began a write that succeeded: until then
  /// no other process claims the store. Max: no other process can.
  Duration speaks_for = Duration::max();
  /// put_snapshot() takes long, and a second thread may call it beside the other calls.
  bool snapshots_beside = false;
};

/// Writes a store. The writer has claimed a term; once another writer has, every call fails with
/// kSuperseded and changes nothing. What a call wrote is durable on return, and after a crash
/// either all of it or nothing is there. Error kFull: there was no space, the store is unchanged,
/// and the call may be repeated. Error kUnavailable: the store gave no answer and may have written;
/// the same call may be repeated, and then has the result of one call. After any other failure of
/// the machine no later call succeeds.
class Store : public StoreReader {
 public:
  [[nodiscard]] virtual StoreTraits traits() const { return {}; }
  /// Returns the job number below which this machine knows numbers to be given out, also by a part
  /// of the log that was lost since; 0: it knows none.
  [[nodiscard]] virtual std::uint64_t marked_next_job() const { return 0; }
  /// Returns the bytes of texts, batches and snapshots that a log whose size is limited has, as far
  /// as its writer knows; 0: it is not limited. Any thread.
  [[nodiscard]] virtual std::uint64_t held_bytes() const { return 0; }
  /// Shows followers, if the store has any, that the writer of this term lives.
  [[nodiscard]] virtual StorageStatus beat(StoreTerm /*term*/) { return {}; }
  [[nodiscard]] virtual StorageResult<StoreTerm> claim() = 0;
  /// Succeeds only if the batch's number is that of the newest batch plus 1.
  [[nodiscard]] virtual StorageStatus append(StoreTerm term, const Batch& batch) = 0;
  /// Puts a snapshot of the state after the existing batch `covers`. Replaces one of that number.
  [[nodiscard]] virtual StorageStatus put_snapshot(StoreTerm term, const Batch& covers) = 0;
  /// Drops the batches up to `covers` and all snapshots before that one, which must exist.
  [[nodiscard]] virtual StorageStatus drop_covered(StoreTerm term, std::uint64_t covers) = 0;
  /// Gives the space of dropped batches back to the machine; otherwise later batches reuse it.
  [[nodiscard]] virtual StorageStatus shrink() = 0;
  /// Adds texts, or replaces those of the same name.
  [[nodiscard]] virtual StorageStatus put_texts(StoreTerm term, const StoreTexts& texts) = 0;
  /// Adds jobs to the archive, or replaces those of the same id.
  [[nodiscard]] virtual StorageStatus put_archived(StoreTerm term,
                                                   const std::vector<ArchivedJob>& jobs) = 0;
};

struct CompactedLog {
  std::uint64_t covers = 0;  ///< newest batch that the snapshot covers
  std::uint64_t snapshot_bytes = 0;
  std::uint64_t dropped = 0;  ///< batches
};

/// Puts a snapshot and drops everything that it covers. The batches before it no longer exist then,
/// so its bytes must be known to be good.
[[nodiscard]] StorageResult<CompactedLog> compact_to(Store& store, StoreTerm term,
                                                     const Batch& covers);

/// Drops everything that an existing snapshot covers, for compact_to().
[[nodiscard]] StorageResult<CompactedLog> drop_to(Store& store, StoreTerm term,
                                                  const Batch& covers);

/// Drops what the second newest snapshot covers; nothing, where there is one snapshot at most. Two
/// are kept: if the newest is damaged, the previous one and the batches after it still exist.
[[nodiscard]] StorageStatus drop_before_previous(Store& store, StoreTerm term);

// --- For backends -------------------------------------------------------------------------------

[[nodiscard]] tl::unexpected<StorageError> store_error(StorageFailure failure, std::string message);

/// Passes the error of a result on as that of another type.
template <class T>
[[nodiscard]] tl::unexpected<StorageError> forward_failure(StorageResult<T>& result) {
  return tl::unexpected<StorageError>(std::move(result.error()));
}

struct TermPair {
  StoreTerm held;   ///< newest claimed term
  StoreTerm given;  ///< term of the writer
};
/// Error: another writer has claimed the store since, or no writer has claimed it.
[[nodiscard]] StorageStatus check_term(const std::string& name, const TermPair& terms);

struct BatchPair {
  std::uint64_t newest = 0;
  std::uint64_t given = 0;
};
/// Error: a gap, or a batch that exists already.
[[nodiscard]] StorageStatus check_next(const std::string& name, const BatchPair& numbers);
/// Error: no batch of that number was ever appended.
[[nodiscard]] StorageStatus check_covered(const std::string& name, const BatchPair& numbers);
[[nodiscard]] tl::unexpected<StorageError> no_snapshot(const std::string& name,
                                                       std::uint64_t covers);

}  // namespace orrery
