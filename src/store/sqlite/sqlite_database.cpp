#include "store/sqlite/sqlite_database.hpp"

#include <sqlite3.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/assert.hpp"
#include "store/store.hpp"

namespace orrery {
namespace {

constexpr std::uint64_t kPageBytes = 4096;  ///< SQLite's default, which every store has
/// How long to wait for another process that holds the file briefly: a reader that repairs what a
/// crash left.
constexpr int kBusyMilliseconds = 5'000;

bool is_no_room(int cause) { return cause == ENOSPC || cause == EDQUOT || cause == EFBIG; }

/// Whether a write failed for lack of space. SQLite itself reports only a full disk, not a quota or
/// a limit on file size: its files are asked for the last error of the system.
bool is_full(sqlite3* connection) {
  const int code = sqlite3_extended_errcode(connection);
  if ((code & 0xff) == SQLITE_FULL) return true;
  if (code != SQLITE_IOERR_WRITE && code != SQLITE_IOERR_SHMSIZE) return false;
  int cause = 0;
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_LAST_ERRNO, &cause);
  if (is_no_room(cause)) return true;
  sqlite3_file* log = nullptr;
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (log == nullptr || log->pMethods == nullptr) return false;
  log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &cause);
  return is_no_room(cause);
}

int keep_first_value(void* out, int columns, char** values, char** /*names*/) {
  auto& text = *static_cast<std::string*>(out);
  if (text.empty() && columns > 0 && values[0] != nullptr) text = values[0];
  return 0;
}

/// Returns the first value that a statement selects; empty if it fails.
std::string first_value(sqlite3* connection, const char* sql) {
  std::string text;
  sqlite3_exec(connection, sql, keep_first_value, &text, nullptr);
  return text;
}

/// Returns the size that the head of a database file states; 0 if it has no head.
std::uint64_t stated_size(const std::string& path) {
  constexpr std::size_t kPagesAt = 28;  // position of a number of 4 bytes, highest first
  std::array<char, 32> head{};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(head.data(), head.size())) return 0;
  std::uint64_t pages = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    pages = pages << 8 | static_cast<std::uint8_t>(head.at(kPagesAt + i));
  }
  return pages * kPageBytes;
}

/// Returns where a database file is damaged, as far as SQLite can find it.
std::string place_of_damage(sqlite3* connection, const std::string& path) {
  std::error_code failed;
  const std::uint64_t size = std::filesystem::file_size(path, failed);
  if (!failed && (size % kPageBytes != 0 || size < stated_size(path)))
    return fmt::format("byte {}: it is cut off here", size);
  const std::string said = first_value(connection, "PRAGMA quick_check(1)");
  for (const std::string_view before : {"page ", "Page "}) {
    const std::size_t at = said.find(before);
    std::uint64_t page = 0;
    if (at == std::string::npos) continue;
    std::from_chars(said.data() + at + before.size(), said.data() + said.size(), page);
    if (page > 0) return fmt::format("byte {}: page {}: {}", (page - 1) * kPageBytes, page, said);
  }
  return fmt::format("byte 0: {}", said.empty() ? "its head" : said);
}

}  // namespace

void SqliteStatement::Finalizer::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

void SqliteDatabase::Closer::operator()(sqlite3* connection) const { sqlite3_close(connection); }

SqliteStatement& SqliteStatement::number(std::uint64_t value) {
  sqlite3_bind_int64(statement_.get(), ++bound_, static_cast<sqlite3_int64>(value));
  return *this;
}

SqliteStatement& SqliteStatement::bytes(std::string_view value) {
  // An empty view may have a null address, which would bind NULL.
  const char* at = value.empty() ? "" : value.data();
  sqlite3_bind_blob64(statement_.get(), ++bound_, at, value.size(), SQLITE_STATIC);
  return *this;
}

SqliteStatement& SqliteStatement::text(std::string_view value) {
  const char* at = value.empty() ? "" : value.data();
  sqlite3_bind_text64(statement_.get(), ++bound_, at, value.size(), SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

StorageResult<bool> SqliteStatement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_->failure("carry out a statement");
}

std::uint64_t SqliteStatement::number_at(int column) const {
  return static_cast<std::uint64_t>(sqlite3_column_int64(statement_.get(), column));
}

bool SqliteStatement::null_at(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::string SqliteStatement::bytes_at(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

StorageResult<std::unique_ptr<SqliteDatabase>> SqliteDatabase::open(const std::string& path,
                                                                    Access access) {
  sqlite3* connection = nullptr;
  const int flags = access == Access::kRead ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  const int code = sqlite3_open_v2(path.c_str(), &connection, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  auto database = std::make_unique<SqliteDatabase>(path, connection);
  if (code != SQLITE_OK) return database->failure("open");
  sqlite3_busy_timeout(connection, kBusyMilliseconds);
  if (StorageStatus status = database->execute("PRAGMA trusted_schema=OFF"); !status) {
    return forward_failure(status);
  }
  return database;
}

StorageResult<SqliteStatement> SqliteDatabase::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(connection_.get(), sql.data(), static_cast<int>(sql.size()),
                                      &statement, nullptr);
  if (code != SQLITE_OK) return failure("read");
  return SqliteStatement(*this, statement);
}

StorageStatus SqliteDatabase::execute(std::string_view sql) {
  StorageResult<SqliteStatement> statement = prepare(sql);
  if (!statement) return forward_failure(statement);
  return finish(*statement);
}

StorageStatus SqliteDatabase::finish(SqliteStatement& statement) {
  while (true) {
    StorageResult<bool> more = statement.step();
    if (!more) return forward_failure(more);
    if (!*more) return {};
  }
}

StorageStatus SqliteDatabase::transact(const std::function<StorageStatus()>& changes) {
  if (!broken_.empty()) {
    return store_error(StorageFailure::kOther,
                       fmt::format("{}: given up after an earlier failure: {}", path_, broken_));
  }
  StorageStatus status = execute("BEGIN IMMEDIATE");
  if (status) status = changes();
  if (status) status = execute("COMMIT");
  if (status) return {};
  // Some failures end the transaction by themselves.
  if (sqlite3_get_autocommit(connection_.get()) == 0) {
    const StorageStatus undone = execute("ROLLBACK");
    if (!undone) broken_ = undone.error().message;
  }
  return status;
}

void SqliteDatabase::keep_log_when_closed(KeepLog keep) {
  sqlite3_db_config(connection_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE,
                    keep == KeepLog::kYes ? 1 : 0, nullptr);
}

StorageStatus SqliteDatabase::copy_to(SqliteDatabase& target) {
  sqlite3_backup* copy =
      sqlite3_backup_init(target.connection_.get(), "main", connection_.get(), "main");
  if (copy == nullptr) return target.failure("copy");
  // A single step reads everything in one transaction, which no writer waits for.
  const int code = sqlite3_backup_step(copy, -1);
  const int ended = sqlite3_backup_finish(copy);
  if (code == SQLITE_DONE && ended == SQLITE_OK) return {};
  return target.failure("copy");
}

tl::unexpected<StorageError> SqliteDatabase::failure(std::string_view what) {
  const int code = sqlite3_errcode(connection_.get()) & 0xff;
  const bool full = is_full(connection_.get());
  std::string message =
      full ? fmt::format("{}: cannot {}: no room on the disk, or within a limit on file size",
                         path_, what)
           : fmt::format("{}: cannot {}: {}", path_, what, sqlite3_errmsg(connection_.get()));
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
    message += fmt::format(" ({})", place_of_damage(connection_.get(), path_));
  }
  // After a failed write the system's cache may have dropped data: see File::sync.
  if (code == SQLITE_IOERR && !full) broken_ = message;
  return store_error(full ? StorageFailure::kFull : StorageFailure::kOther, message);
}

}  // namespace orrery
