// store/store.hpp - the durable log: batches of bytes in order, snapshots that stand for the first
// of them, and a few texts.
//
// What the bytes mean is for store/history.hpp. A backend makes one (store/sqlite_store.hpp,
// store/memory_store.hpp); all keep one contract (store/store_contract_test.cpp), which is no more
// than what one transaction can promise, be it of a file or of a quorum. One thread at a time.
// Invariant: batches are numbered from 1 without gaps, and those that are not there any more are
// covered by a snapshot. Cost: that of the backend; an append is as slow as a durable write.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/env.hpp"

namespace orrery {

/// A writer's turn. Each claim begins the next one, and ends the one before.
enum class StoreTerm : std::uint64_t { kNone = 0 };

/// What is written in one step. Its size is not bounded here: what belongs together stays together.
/// A backend whose transactions are small writes it in parts of which the last makes it count.
struct Batch {
  std::uint64_t number = 0;
  std::string bytes;
  std::uint64_t next_job = 0;  ///< job numbers below it are given out by the log up to here
};

/// Batches that a store has.
struct StoreExtent {
  std::uint64_t oldest = 1;  ///< that is still there; newest + 1: none is
  std::uint64_t newest = 0;  ///< that was ever appended; 0: none was

  friend bool operator==(const StoreExtent&, const StoreExtent&) = default;
};

/// A job that has left the log's state, as whoever put it wrote it.
struct ArchivedJob {
  std::uint64_t id = 0;
  std::string bytes;

  friend bool operator==(const ArchivedJob&, const ArchivedJob&) = default;
};

/// Texts by name, kept beside the log (store/setup_texts.hpp).
using StoreTexts = std::map<std::string, std::string>;

/// Reading, also while another process writes: each call sees whole batches, in the order written.
/// Errors (all calls): of the machine, kOther where the backend finds its own files damaged.
class StoreReader {
 public:
  virtual ~StoreReader() = default;

  /// Where it is, for messages.
  [[nodiscard]] virtual const std::string& name() const = 0;
  [[nodiscard]] virtual StorageResult<StoreExtent> extent() = 0;
  /// Batches after `after`, ascending: at least one if there is one, then more up to about
  /// `bytes_max`. A number that is missing in between was lost: the reader notices.
  [[nodiscard]] virtual StorageResult<std::vector<Batch>> read(std::uint64_t after,
                                                               std::size_t bytes_max) = 0;
  /// The batches up to which there is a snapshot, newest first.
  [[nodiscard]] virtual StorageResult<std::vector<std::uint64_t>> snapshots() = 0;
  /// Error kNotFound: there is none.
  [[nodiscard]] virtual StorageResult<std::string> snapshot(std::uint64_t covers) = 0;
  [[nodiscard]] virtual StorageResult<StoreTexts> texts() = 0;
  /// Of the archive those with an id below `before`, descending, at most `count`. O(count).
  [[nodiscard]] virtual StorageResult<std::vector<ArchivedJob>> archived(std::uint64_t before,
                                                                         std::size_t count) = 0;
  /// What the backend can tell of its own structures, beyond what the calls above would find. As
  /// slow as reading everything.
  [[nodiscard]] virtual StorageStatus check() = 0;
};

/// Writing. Whoever writes has claimed a term; once another one has, every call fails and nothing
/// is changed. What a call wrote is durable when it returns, and all of it or nothing is there
/// after a crash. Error kFull: there was no room, the store is as before, and the call may be
/// repeated. After any other failure of the machine no later call succeeds.
class Store : public StoreReader {
 public:
  [[nodiscard]] virtual StorageResult<StoreTerm> claim() = 0;
  /// Precondition of success: its number is that of the newest batch plus 1.
  [[nodiscard]] virtual StorageStatus append(StoreTerm term, const Batch& batch) = 0;
  /// Of the state after batch `covers`, which is there. Replaces one of the same number.
  [[nodiscard]] virtual StorageStatus put_snapshot(StoreTerm term, const Batch& covers) = 0;
  /// Drops the batches up to `covers` and all snapshots before that one, which must be there.
  [[nodiscard]] virtual StorageStatus drop_covered(StoreTerm term, std::uint64_t covers) = 0;
  /// Gives the room of what was dropped back to the machine; else later batches use it again.
  [[nodiscard]] virtual StorageStatus shrink() = 0;
  /// Adds texts, or replaces those of the same name.
  [[nodiscard]] virtual StorageStatus put_texts(StoreTerm term, const StoreTexts& texts) = 0;
  /// Adds jobs to the archive, or replaces those of the same id.
  [[nodiscard]] virtual StorageStatus put_archived(StoreTerm term,
                                                   const std::vector<ArchivedJob>& jobs) = 0;
};

struct CompactedLog {
  std::uint64_t covers = 0;  ///< the newest batch that the snapshot stands for
  std::uint64_t snapshot_bytes = 0;
  std::uint64_t dropped = 0;  ///< batches
};

/// Puts a snapshot and drops all that it covers. The batches before it are not there any more, so
/// its bytes have to be known to be good.
[[nodiscard]] StorageResult<CompactedLog> compact_to(Store& store, StoreTerm term,
                                                     const Batch& covers);

/// Puts a snapshot and drops what the snapshot before it covers. Two are kept: should the newest be
/// damaged, the one before and the batches after it are there.
[[nodiscard]] StorageStatus put_snapshot_and_drop(Store& store, StoreTerm term,
                                                  const Batch& covers);

// --- For backends -------------------------------------------------------------------------------

[[nodiscard]] tl::unexpected<StorageError> store_error(StorageFailure failure, std::string message);

/// Passes the error of one result on as that of another.
template <class T>
[[nodiscard]] tl::unexpected<StorageError> forward_failure(StorageResult<T>& result) {
  return tl::unexpected<StorageError>(std::move(result.error()));
}

struct TermPair {
  StoreTerm held;   ///< the newest that was claimed
  StoreTerm given;  ///< by whom wants to write
};
/// Error: another writer has claimed the store since, or none did.
[[nodiscard]] StorageStatus check_term(const std::string& name, const TermPair& terms);

struct BatchPair {
  std::uint64_t newest = 0;
  std::uint64_t given = 0;
};
/// Error: a gap, or a batch that is there already.
[[nodiscard]] StorageStatus check_next(const std::string& name, const BatchPair& numbers);
/// Error: no batch of that number was ever appended.
[[nodiscard]] StorageStatus check_covered(const std::string& name, const BatchPair& numbers);
[[nodiscard]] tl::unexpected<StorageError> no_snapshot(const std::string& name,
                                                       std::uint64_t covers);

}  // namespace orrery
