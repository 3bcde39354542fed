// store/etcd/etcd_store.hpp - a log in etcd, which several machines share; the archive of jobs and
// a mark lie in a directory of this machine.
//
//   etcd://MEMBERS/CLUSTER   batches, snapshots, texts, claims (store/etcd/etcd_keys.hpp)
//   LOCAL/archive            the archive, as a store of SQLite; made of the log, so each machine
//                            has its own
//   LOCAL/high_water         the newest state that this machine has written or claimed
//                            (store/etcd/local_mark.hpp): a log that lacks it was restored from a
//                            backup. It lags by up to a second, so such a loss of less is not seen.
//
// Made by the loop's owner for one process. One thread at a time, except that put_snapshot() may
// run on a second thread beside the other calls: it takes long, because it keeps a pace.
// Cost: store/etcd/etcd_writer.hpp. Dropped batches are compacted in etcd, whose file keeps its
// size and is used again; to make the file smaller is an operator's work (`etcdctl defrag`).
#pragma once

#include <memory>
#include <string>

#include "store/etcd/etcd_reader.hpp"
#include "store/etcd/etcd_writer.hpp"
#include "store/etcd/local_mark.hpp"
#include "store/etcd_size/log_survey.hpp"
#include "store/shared_store.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace orrery {

struct EtcdStoreSettings {
  std::uint64_t snapshot_bytes_per_second = std::uint64_t{16} << 20;  ///< 0: not limited
  Duration speaks_for = Duration::milliseconds(1200);                 ///< see StoreTraits
};

class EtcdStore final : public SharedStore {
 public:
  /// Opens the log to follow or to write, and the directory `local` of this process. Errors:
  /// kUnavailable: etcd gives no answer; another process has `local`; a newer layout; the log is
  /// closed (it was copied), or lacks what the mark of this machine names.
  [[nodiscard]] static StorageResult<std::unique_ptr<EtcdStore>> open(
      const EtcdLocation& location, const std::string& local, EtcdStoreSettings settings = {});
  /// Opens the log to read, without an archive. Error kNotFound: there is no log.
  [[nodiscard]] static StorageResult<std::unique_ptr<StoreReader>> open_to_read(
      const EtcdLocation& location);

  EtcdStore(std::unique_ptr<EtcdClient> client, EtcdStoreSettings settings);

  [[nodiscard]] const std::string& name() const override { return client_->name(); }
  [[nodiscard]] StorageResult<StoreExtent> extent() override { return reader_.extent(); }
  [[nodiscard]] StorageResult<std::vector<Batch>> read(std::uint64_t after,
                                                       std::size_t bytes_max) override;
  [[nodiscard]] StorageResult<std::vector<std::uint64_t>> snapshots() override;
  [[nodiscard]] StorageResult<std::string> snapshot(std::uint64_t covers) override;
  [[nodiscard]] StorageResult<StoreTexts> texts() override { return reader_.texts(); }
  [[nodiscard]] StorageResult<std::vector<ArchivedJob>> archived(std::uint64_t before,
                                                                 std::size_t count) override;
  [[nodiscard]] StorageStatus check() override;

  [[nodiscard]] StoreTraits traits() const override;
  [[nodiscard]] std::uint64_t marked_next_job() const override;
  /// Complete once the survey that began with the claim has ended.
  [[nodiscard]] std::uint64_t held_bytes() const override { return sizes_.bytes(); }
  [[nodiscard]] StorageStatus beat(StoreTerm term) override;
  /// Takes over from any writer.
  [[nodiscard]] StorageResult<StoreTerm> claim() override { return claim_above(StoreTerm::kNone); }
  /// Like claim(), with a term above `passed`, which another log of the same cluster has reached.
  [[nodiscard]] StorageResult<StoreTerm> claim_above(StoreTerm passed);
  [[nodiscard]] StorageStatus append(StoreTerm term, const Batch& batch) override;
  [[nodiscard]] StorageStatus put_snapshot(StoreTerm term, const Batch& covers) override;
  /// Puts a snapshot into a log without batches; later batches follow it.
  [[nodiscard]] StorageStatus begin_at(StoreTerm term, const Batch& covers);
  [[nodiscard]] StorageStatus drop_covered(StoreTerm term, std::uint64_t covers) override;
  [[nodiscard]] StorageStatus shrink() override;
  [[nodiscard]] StorageStatus put_texts(StoreTerm term, const StoreTexts& texts) override;
  [[nodiscard]] StorageStatus put_archived(StoreTerm term,
                                           const std::vector<ArchivedJob>& jobs) override;

  [[nodiscard]] StorageResult<StoreTerm> claim_after(const WriterSeen& seen,
                                                     const std::string& writer) override;
  [[nodiscard]] StorageResult<WriterSeen> look() override;
  [[nodiscard]] StorageStatus note_seen(const WriterSeen& seen, std::uint64_t next_job) override {
    return mark_->note({.batch = seen.newest, .term = seen.term, .next_job = next_job},
                       LocalMark::Raise::kWhenDue);
  }
  [[nodiscard]] StorageStatus keep_archived(const std::vector<ArchivedJob>& jobs) override {
    return archive_->put_archived(archive_term_, jobs);
  }
  [[nodiscard]] std::unique_ptr<StoreFollower> follow(FollowOptions options) override;

 private:
  /// Raises the mark after a claim.
  [[nodiscard]] StorageResult<StoreTerm> claimed(StoreTerm term);

  std::unique_ptr<EtcdClient> client_;
  EtcdReader reader_;
  EtcdWriter writer_;
  Duration speaks_for_;
  std::unique_ptr<SqliteStore> archive_;
  StoreTerm archive_term_ = StoreTerm::kNone;
  std::unique_ptr<LocalMark> mark_;
  LogSizes sizes_;
  std::unique_ptr<LogSurvey> survey_;  ///< none: this store has not claimed
};

}  // namespace orrery
