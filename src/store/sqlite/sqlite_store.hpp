// store/sqlite/sqlite_store.hpp - a store in a directory, as a database of SQLite: the default.
//
//   DIR/store.db    the database, with store.db-wal and store.db-shm while it is open
//   DIR/lock        held by the one process that writes, and contains its id
//   DIR/high_water  the newest acknowledged state (store/sqlite/high_water.hpp)
//   DIR/moved       only if the store is closed: where its log went (store/sqlite/store_reach.hpp)
//
// Every commit is synced (journal_mode=WAL, synchronous=FULL). Other processes read at any time
// without waiting. A backup is the database alone, one file. Only their owner may access the files.
// One thread at a time. Cost of an append: one write and one sync of the write-ahead log; after
// every few MiB the log is copied into the database.
#pragma once

#include <memory>
#include <optional>

#include "base/system/file_descriptor.hpp"
#include "store/sqlite/sqlite_database.hpp"
#include "store/sqlite/store_reach.hpp"
#include "store/store.hpp"

namespace orrery {

class SqliteStore final : public Store {
 public:
  /// Opens a store to write; creates the directory and the database if they are missing. Errors:
  /// another process writes there (without waiting); not a store of Orrery; the store is closed;
  /// the database or its write-ahead log lacks acknowledged batches, with the place, and then
  /// nothing was changed.
  [[nodiscard]] static StorageResult<std::unique_ptr<SqliteStore>> open(
      const std::string& directory);
  /// Opens a directory or a backup to read, also a closed store. Error kNotFound: there is no
  /// store. A directory has the errors of open(), too.
  [[nodiscard]] static StorageResult<std::unique_ptr<StoreReader>> open_to_read(
      const std::string& path);
  /// Opens a store to read without checking the mark and the write-ahead log: for the good parts of
  /// a damaged store.
  [[nodiscard]] static StorageResult<std::unique_ptr<StoreReader>> open_as_it_is(
      const std::string& path);
  /// Copies the store at `from`, as it is at one moment, even while it is written, into the new
  /// file `to`. Durable on return.
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

  /// Locks a store for the one process that may change it, until the descriptor is closed. Errors:
  /// another process has it, with its id.
  [[nodiscard]] static StorageResult<FileDescriptor> lock(const std::string& directory);
  /// Raises the term, and in the mark term, next job number and newest batch (the store's own), so
  /// that no number is given out twice. Precondition: opened to write.
  [[nodiscard]] StorageStatus adopt(const HighWater& reached);
  /// Puts a snapshot into a store without batches; later batches follow it.
  [[nodiscard]] StorageStatus begin_at(StoreTerm term, const Batch& covers);
  /// Precondition: opened to write.
  [[nodiscard]] std::uint64_t marked_next_job() const override { return mark_->mark().next_job; }

 private:
  /// Creates or checks the tables and the mark of a directory that is opened to write.
  [[nodiscard]] StorageStatus begin(const std::string& directory, const StoreFiles& files);
  [[nodiscard]] StorageResult<DatabaseReach> reach();
  [[nodiscard]] StorageStatus check_length();
  [[nodiscard]] StorageResult<StoreTerm> term();
  [[nodiscard]] StorageStatus check_turn(StoreTerm given);
  /// Returns the whole number that a statement selects; none if it is NULL or there is no row.
  [[nodiscard]] StorageResult<std::optional<std::uint64_t>> ask(std::string_view sql,
                                                                std::uint64_t value);
  /// Executes a statement with a number and bytes.
  [[nodiscard]] StorageStatus put(std::string_view sql, const Batch& batch);

  FileDescriptor lock_;  ///< none: opened to read
  std::unique_ptr<SqliteDatabase> database_;
  std::optional<HighWaterFile> mark_;  ///< none: opened to read
};

}  // namespace orrery
