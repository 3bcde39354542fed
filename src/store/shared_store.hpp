// store/shared_store.hpp - a store that several processes open: one writes, the others follow, and
// one of those takes over when the writer has been silent for long enough.
//
// The writer needs no lease. A claim names what the follower has seen last, and succeeds only if
// nothing was written since; from then on every write of the earlier writer fails. So a follower
// that lags behind claims nothing, and one that claims has every batch. The time rule is the
// followers' and the writer's (StoreTraits::speaks_for, SharedLog::claims_after); the store keeps
// its content right without it. Implemented over etcd (store/etcd/etcd_store.hpp), in memory for
// tests, and in virtual time (twin/replicas/virtual_store.hpp).
// Invariant: every append, beat and put of texts changes what a claim is compared with.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "store/store.hpp"

namespace orrery {

/// What a follower has seen of the writer. The marks are the backend's own; a greater one is later.
struct WriterSeen {
  std::uint64_t term = 0;        ///< newest claimed term; 0: the store was never claimed
  std::string writer;            ///< text that the writer gave when it claimed
  std::uint64_t claim_mark = 0;  ///< of the claim
  std::uint64_t beat_mark = 0;   ///< of the newest beat
  std::uint64_t newest = 0;      ///< newest batch
  Duration speaks_for;           ///< StoreTraits::speaks_for of that writer; 0: it does not say

  friend bool operator==(const WriterSeen&, const WriterSeen&) = default;
};

/// Follows a store on a thread of its own, and posts what it sees to a loop. The end of the object
/// ends the thread; nothing is posted afterwards that calls back.
class StoreFollower {
 public:
  virtual ~StoreFollower() = default;
};

struct FollowOptions {
  std::uint64_t after = 0;  ///< newest batch that the follower has
  Inbox& inbox;
  /// The writer has claimed, beaten or written. Called on the loop, as the others are; after the
  /// batches that it includes. The first call comes with what the store has at the beginning.
  std::function<void(const WriterSeen&)> seen;
  /// The next batch: without gaps, and whole.
  std::function<void(const Batch&)> batch;
  /// Texts were put; texts() has them.
  std::function<void()> texts_put;
  /// The store gives no answer (kUnavailable, once until it answers again), or cannot be followed
  /// from here any more, for example because the batches after `after` were dropped: then the
  /// thread has ended, and recovery begins anew from the newest snapshot.
  std::function<void(const StorageError&)> failed;
  /// The store has batches up to this one, which come now. May be empty: nothing depends on it.
  std::function<void(std::uint64_t)> ahead = {};
};

class SharedStore : public Store {
 public:
  /// Claims the store for `writer` if nothing was written since `seen`. Error kSuperseded:
  /// something was.
  [[nodiscard]] virtual StorageResult<StoreTerm> claim_after(const WriterSeen& seen,
                                                             const std::string& writer) = 0;
  [[nodiscard]] virtual StorageResult<WriterSeen> look() = 0;
  /// Remembers on this machine, now or within a second, that a follower has seen so much of the
  /// log, so that an older log is refused later. The log gives out the job numbers below
  /// `next_job`.
  [[nodiscard]] virtual StorageStatus note_seen(const WriterSeen& seen, std::uint64_t next_job) = 0;
  /// Adds jobs to the archive of this machine, for a follower.
  [[nodiscard]] virtual StorageStatus keep_archived(const std::vector<ArchivedJob>& jobs) = 0;
  [[nodiscard]] virtual std::unique_ptr<StoreFollower> follow(FollowOptions options) = 0;
};

}  // namespace orrery
