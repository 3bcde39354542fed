// store/sqlite/sqlite_database.hpp - a connection to an SQLite database file, with failures as
// values.
//
// Made by store/sqlite/sqlite_store.cpp; closed by its destructor. One thread at a time.
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

/// One statement in execution. The database outlives it.
class SqliteStatement {
 public:
  SqliteStatement(SqliteDatabase& database, sqlite3_stmt* statement)
      : database_(&database), statement_(statement) {}

  /// Binds the values of its question marks, in order. The bytes outlive the statement.
  SqliteStatement& number(std::uint64_t value);
  SqliteStatement& bytes(std::string_view value);
  SqliteStatement& text(std::string_view value);

  /// Whether there is a row (more). Errors: of the database.
  [[nodiscard]] StorageResult<bool> step();
  /// The columns of the row, from 0.
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

  /// Precondition: the file exists. Errors: it is not a database, or cannot be opened.
  [[nodiscard]] static StorageResult<std::unique_ptr<SqliteDatabase>> open(const std::string& path,
                                                                           Access access);
  SqliteDatabase(std::string path, sqlite3* connection)
      : path_(std::move(path)), connection_(connection) {}

  [[nodiscard]] StorageResult<SqliteStatement> prepare(std::string_view sql);
  /// Executes one statement and ignores its rows.
  [[nodiscard]] StorageStatus execute(std::string_view sql);
  /// Executes a statement whose values are bound.
  [[nodiscard]] StorageStatus finish(SqliteStatement& statement);
  /// Runs `changes` in a transaction, durable on return; after an error nothing is changed.
  [[nodiscard]] StorageStatus transact(const std::function<StorageStatus()>& changes);
  void keep_log_when_closed(KeepLog keep);
  /// Copies the database, as it is at one moment, into a new file.
  [[nodiscard]] StorageStatus copy_to(SqliteDatabase& target);

  /// Returns the failure of the last call, made to do `what`.
  [[nodiscard]] tl::unexpected<StorageError> failure(std::string_view what);
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  struct Closer {
    void operator()(sqlite3* connection) const;
  };
  std::string path_;
  std::unique_ptr<sqlite3, Closer> connection_;
  std::string broken_;  ///< why no more is written; empty: writing is possible
};

}  // namespace orrery
