// store/etcd/etcd_writer.hpp - claims a log in etcd and writes it: every transaction compares the
// claim.
//
// Made by store/etcd/etcd_store.cpp over a client that outlives it. Calls block on etcd. One thread
// at a time, except that put_snapshot() may run on a second one beside the other calls.
// The protocol:
//   1. The fence is the revision at which the key `term` was written by this writer's claim. Every
//      write compares it, so nothing is written after another claim.
//   2. A batch's head is put only where there is none. A head that is there with this claim's nonce
//      is the writer's own: the answer to an earlier try was lost.
//   3. The head of a snapshot or text is put only where it is as it was last seen, so a try that
//      etcd carries out late cannot bring old bytes back.
//   4. An etcd that becomes full can write and then say that it is full, so the head is read then.
//   5. Parts come before their head. Parts without a head are removed after the next claim.
//   6. A claim compares the key `format`, so the claim of a closed log fails.
//   7. Every transaction that puts something puts a batch or the beat, which claims compare: a
//      follower that has not heard of the write claims nothing. One that only drops puts nothing,
//      so that an etcd without space takes it.
// Cost: one round trip for what fits into 1 MiB; one more for each part of 512 KiB.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/real_env.hpp"
#include "store/etcd/etcd_blob.hpp"
#include "store/etcd/etcd_state.hpp"

namespace orrery {

enum class ClaimRule : std::uint8_t { kTakeOver, kUnlessWritten };

struct EtcdClaimRequest {
  WriterSeen seen;
  std::string writer;
  ClaimRule rule = ClaimRule::kTakeOver;
  std::uint64_t passed = 0;  ///< a term that the claimed one exceeds, besides that of `seen`
  Duration speaks_for;       ///< StoreTraits::speaks_for of the writer
};

class EtcdWriter {
 public:
  /// `snapshot_bytes_per_second` limits the writing of snapshots, which would delay batches.
  EtcdWriter(EtcdClient& client, std::uint64_t snapshot_bytes_per_second)
      : client_(client),
        keys_(client.location().prefix()),
        snapshot_bytes_per_second_(snapshot_bytes_per_second) {}

  /// Error kSuperseded: the store is not as `seen` says, or is closed; nothing was claimed.
  [[nodiscard]] StorageResult<StoreTerm> claim(const EtcdClaimRequest& request);
  [[nodiscard]] StorageStatus beat(StoreTerm term);
  [[nodiscard]] StorageStatus append(StoreTerm term, const Batch& batch);
  [[nodiscard]] StorageStatus put_snapshot(StoreTerm term, const Batch& covers);
  /// Puts a snapshot into a log without batches; later batches follow it.
  [[nodiscard]] StorageStatus begin_at(StoreTerm term, const Batch& covers);
  [[nodiscard]] StorageStatus drop_covered(StoreTerm term, std::uint64_t covers);
  [[nodiscard]] StorageStatus put_texts(StoreTerm term, const StoreTexts& texts);
  /// Closes the log, which goes on in a copy at `moved_to`: no controller opens or claims it.
  [[nodiscard]] StorageStatus close(StoreTerm term, const std::string& moved_to);
  /// Error kSuperseded: this writer does not hold that term, as far as it knows.
  [[nodiscard]] StorageStatus check(StoreTerm term) const;
  /// Newest batch that this writer knows.
  [[nodiscard]] std::uint64_t newest() const;

 private:
  struct Fence {
    StoreTerm term = StoreTerm::kNone;
    std::int64_t mark = 0;
    std::uint64_t nonce = 0;
    std::uint64_t newest = 0;
    /// Head of the newest batch, or of the snapshot that has replaced it; empty: not known. Where
    /// it is missing, etcd was restored from a backup.
    std::string last = {};
  };
  /// Bytes that are being put, and the revision at which their head was last written.
  struct Blob {
    BlobPlace place;
    std::string_view bytes;
    BlobFields fields;
    std::int64_t head_mark = 0;
  };
  struct Pace {
    std::uint64_t bytes_per_second = 0;  ///< 0: as fast as possible
  };

  [[nodiscard]] StorageResult<Fence> fence_of(StoreTerm term) const;
  [[nodiscard]] StoreTerm take(const EtcdClaimRequest& request, const EtcdClaim& claim,
                               std::int64_t mark);
  void collect_garbage();
  /// Notes the head of the newest batch after a claim.
  void note_last(const Fence& fence, const EtcdState& state);
  [[nodiscard]] EtcdTxn fenced(const Fence& fence) const;
  /// Errors: kSuperseded: the fence does not hold; kOther: what was written before is missing.
  /// Where another comparison failed, the answer is that of the failure branch, which begins with
  /// the key `term` and that of the last write.
  [[nodiscard]] StorageResult<etcd::TxnResponse> commit(const Fence& fence, const EtcdTxn& txn);
  [[nodiscard]] StorageStatus put_parts(const Fence& fence, const Blob& blob, Pace pace);
  [[nodiscard]] StorageStatus put_covering(const Fence& fence, const Batch& covers);
  [[nodiscard]] StorageStatus put_heads(const Fence& fence, std::vector<Blob>& blobs);
  [[nodiscard]] StorageStatus find_marks(std::vector<Blob>& blobs);
  /// Whether all heads that were found are those of `blobs`; otherwise notes their revisions.
  [[nodiscard]] bool found_own(const etcd::TxnResponse& answer, std::vector<Blob>& blobs) const;
  /// Whether a transaction for which etcd had no space has put the heads all the same.
  [[nodiscard]] bool full_after_putting(const StorageError& error, const EtcdTxn& txn,
                                        std::vector<Blob>& blobs);

  EtcdClient& client_;
  EtcdKeys keys_;
  std::uint64_t snapshot_bytes_per_second_;
  RealEntropy entropy_;
  mutable std::mutex mutex_;
  Fence held_;  ///< guarded by mutex_
  /// A claim whose answer is not known: the same claim is recognised by its nonce.
  struct OpenClaim {
    EtcdClaimRequest request;
    std::uint64_t nonce = 0;
  };
  std::optional<OpenClaim> open_claim_;
  std::uint64_t beats_ = 0;
  std::int64_t kept_from_ = 0;  ///< revision of etcd at the newest compaction by beat()
};

}  // namespace orrery
