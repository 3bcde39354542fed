// store/sqlite_database.hpp - one connection to a database file of SQLite, its failures as values.
//
// Made by store/sqlite_store.cpp; closed at its end. One thread at a time.
// Invariant: no transaction is open between two calls of transact().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/env.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace orrery {

class SqliteDatabase;

/// One statement being carried out. The database outlives it.
class SqliteStatement {
 public:
  SqliteStatement(SqliteDatabase& database, sqlite3_stmt* statement)
      : database_(&database), statement_(statement) {}

  /// Values for its question marks, in their order. The bytes outlive the statement.
  SqliteStatement& number(std::uint64_t value);
  SqliteStatement& bytes(std::string_view value);
  SqliteStatement& text(std::string_view value);

  /// Whether there is a row (more). Errors: of the database.
  [[nodiscard]] StorageResult<bool> step();
  /// Columns of the row, from 0.
  [[nodiscard]] std::uint64_t number_at(int column) const;
  [[nodiscard]] bool null_at(int column) const;
  [[nodiscard]] std::string bytes_at(int column) const;

 private:
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const;
  };
  SqliteDatabase* database_;
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
  int bound_ = 0;
};

/// Whether closing the last connection leaves the write-ahead log as it is.
enum class KeepLog : std::uint8_t { kNo, kYes };

class SqliteDatabase {
 public:
  enum class Access : std::uint8_t { kRead, kWrite };

  /// The file exists. Errors: it is no database, or cannot be opened.
  [[nodiscard]] static StorageResult<std::unique_ptr<SqliteDatabase>> open(const std::string& path,
                                                                           Access access);
  SqliteDatabase(std::string path, sqlite3* connection)
      : path_(std::move(path)), connection_(connection) {}

  [[nodiscard]] StorageResult<SqliteStatement> prepare(std::string_view sql);
  /// One statement whose rows do not matter.
  [[nodiscard]] StorageStatus execute(std::string_view sql);
  /// Carries out a statement that has its values.
  [[nodiscard]] StorageStatus finish(SqliteStatement& statement);
  /// All that `changes` does, durable when it returns; after an error nothing of it.
  [[nodiscard]] StorageStatus transact(const std::function<StorageStatus()>& changes);
  void keep_log_when_closed(KeepLog keep);
  /// Copies the database into a file that did not exist, as it is at one moment.
  [[nodiscard]] StorageStatus copy_to(SqliteDatabase& target);

  /// The failure of the call before, of doing `what`.
  [[nodiscard]] tl::unexpected<StorageError> failure(std::string_view what);
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  struct Closer {
    void operator()(sqlite3* connection) const;
  };
  std::string path_;
  std::unique_ptr<sqlite3, Closer> connection_;
  std::string broken_;  ///< why nothing is written any more; empty while it is
};

}  // namespace orrery
