// store/sqlite_store.hpp - a store in a directory, as a database of SQLite: the default.
//
//   DIR/store.db    the database, with store.db-wal and store.db-shm while somebody has it open
//   DIR/lock        held by the one process that writes; says which
//   DIR/high_water  how far it was acknowledged (store/high_water.hpp)
//
// Every commit is synced (journal_mode=WAL, synchronous=FULL). Others read at any time without
// waiting. A backup is the database alone, one file. Files are their owner's alone.
// One thread at a time. Cost of an append: one write and one sync of the write-ahead log; each few
// MiB the log is copied into the database.
#pragma once

#include <memory>
#include <optional>

#include "base/file_descriptor.hpp"
#include "store/sqlite_database.hpp"
#include "store/store.hpp"
#include "store/store_reach.hpp"

namespace orrery {

class SqliteStore final : public Store {
 public:
  /// To write; makes the directory and the database where there are none. Errors: another process
  /// writes there (said at once, nobody waits); no store of ours; the database or its write-ahead
  /// log lacks what was acknowledged, with the place, and then nothing was changed.
  [[nodiscard]] static StorageResult<std::unique_ptr<SqliteStore>> open(
      const std::string& directory);
  /// A directory or a backup. Error kNotFound: there is no store. Errors of a directory as those of
  /// open().
  [[nodiscard]] static StorageResult<std::unique_ptr<StoreReader>> open_to_read(
      const std::string& path);
  /// The same without a look at the mark and the write-ahead log: what is good of a damaged store.
  [[nodiscard]] static StorageResult<std::unique_ptr<StoreReader>> open_as_it_is(
      const std::string& path);
  /// Copies the store at `from`, as it is at one moment, also while it is written, into the file
  /// `to`, which must not exist. Durable when it returns.
  [[nodiscard]] static StorageStatus backup(const std::string& from, const std::string& to);

  SqliteStore(std::unique_ptr<SqliteDatabase> database, FileDescriptor lock)
      : lock_(std::move(lock)), database_(std::move(database)) {}

  [[nodiscard]] const std::string& name() const override { return database_->path(); }
  [[nodiscard]] StorageResult<StoreExtent> extent() override;
  [[nodiscard]] StorageResult<std::vector<Batch>> read(std::uint64_t after,
                                                       std::size_t bytes_max) override;
  [[nodiscard]] StorageResult<std::vector<std::uint64_t>> snapshots() override;
  [[nodiscard]] StorageResult<std::string> snapshot(std::uint64_t covers) override;
  [[nodiscard]] StorageResult<StoreTexts> texts() override;
  [[nodiscard]] StorageResult<std::vector<ArchivedJob>> archived(std::uint64_t before,
                                                                 std::size_t count) override;
  [[nodiscard]] StorageStatus check() override;

  [[nodiscard]] StorageResult<StoreTerm> claim() override;
  [[nodiscard]] StorageStatus append(StoreTerm term, const Batch& batch) override;
  [[nodiscard]] StorageStatus put_snapshot(StoreTerm term, const Batch& covers) override;
  [[nodiscard]] StorageStatus drop_covered(StoreTerm term, std::uint64_t covers) override;
  [[nodiscard]] StorageStatus shrink() override;
  [[nodiscard]] StorageStatus put_texts(StoreTerm term, const StoreTexts& texts) override;
  [[nodiscard]] StorageStatus put_archived(StoreTerm term,
                                           const std::vector<ArchivedJob>& jobs) override;

  /// Held until it is closed, by the one process that may change a store. Errors: another one has
  /// it, with its number.
  [[nodiscard]] static StorageResult<FileDescriptor> lock(const std::string& directory);
  /// Raises the term, and of the mark term, next job number and newest batch (its own), so that
  /// nothing after this is given out as it was before. Precondition: opened to write.
  [[nodiscard]] StorageStatus adopt(const HighWater& reached);
  /// Puts a snapshot into a store without batches, which go on after it.
  [[nodiscard]] StorageStatus begin_at(StoreTerm term, const Batch& covers);
  /// Precondition: opened to write.
  [[nodiscard]] const HighWater& mark() const { return mark_->mark(); }

 private:
  /// Makes or checks the tables and the mark of a directory that is opened to write.
  [[nodiscard]] StorageStatus begin(const std::string& directory, const StoreFiles& files);
  [[nodiscard]] StorageResult<DatabaseReach> reach();
  [[nodiscard]] StorageStatus check_length();
  [[nodiscard]] StorageResult<StoreTerm> term();
  [[nodiscard]] StorageStatus check_turn(StoreTerm given);
  /// A whole number that a statement finds; nothing where it is NULL or there is no row.
  [[nodiscard]] StorageResult<std::optional<std::uint64_t>> ask(std::string_view sql,
                                                                std::uint64_t value);
  /// A statement with a number and bytes.
  [[nodiscard]] StorageStatus put(std::string_view sql, const Batch& batch);

  FileDescriptor lock_;  ///< none: opened to read
  std::unique_ptr<SqliteDatabase> database_;
  std::optional<HighWaterFile> mark_;  ///< none: opened to read
};

}  // namespace orrery
