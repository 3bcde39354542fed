#include "store/sqlite/sqlite_store.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/system/real_storage.hpp"

namespace orrery {
namespace {

// Written in the database's head, so that no other database is taken for a store: "ORRY", and the
// form of the tables.
constexpr std::uint64_t kApplication = 0x4f525259;
constexpr std::uint64_t kForm = 1;

constexpr std::string_view kArchive(
    "CREATE TABLE IF NOT EXISTS archive (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL)");
// Records that a mark was put beside the database (store/sqlite/high_water.hpp): without the mark's
// file the store is incomplete.
constexpr std::string_view kMarked(
    "CREATE TABLE IF NOT EXISTS marked (one INTEGER PRIMARY KEY CHECK (one = 1))");
constexpr std::array kTables{
    std::string_view("CREATE TABLE writer (one INTEGER PRIMARY KEY CHECK (one = 1),"
                     " term INTEGER NOT NULL)"),
    std::string_view("CREATE TABLE batches (number INTEGER PRIMARY KEY, bytes BLOB NOT NULL)"),
    std::string_view("CREATE TABLE snapshots (covers INTEGER PRIMARY KEY, bytes BLOB NOT NULL)"),
    std::string_view("CREATE TABLE texts (name TEXT PRIMARY KEY, text TEXT NOT NULL)"),
    kArchive,
    kMarked,
    std::string_view("INSERT INTO writer VALUES (1, 0)"),
    std::string_view("PRAGMA application_id=1330795097"),
    std::string_view("PRAGMA user_version=1")};
static_assert(kApplication == 1330795097 && kForm == 1);

std::string system_message(int cause) { return std::generic_category().message(cause); }

/// Locks a directory until the descriptor is closed; a process that dies loses the lock.
StorageResult<FileDescriptor> lock_directory(const std::string& directory) {
  constexpr mode_t kOwnerOnly = 0600;
  const std::string path = directory + "/lock";
  FileDescriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kOwnerOnly));
  if (!lock.valid()) {
    return store_error(StorageFailure::kOther,
                       fmt::format("{}: cannot open: {}", path, system_message(errno)));
  }
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    std::array<char, 32> holder{};
    const ssize_t size = ::pread(lock.get(), holder.data(), holder.size(), 0);
    const std::string who(holder.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    return store_error(StorageFailure::kExists,
                       fmt::format("{}: process {} writes this store; there may be one at a time",
                                   directory, who.empty() ? "of another user" : who));
  }
  // The id is only for the message above; the lock holds without it.
  const std::string self = std::to_string(::getpid());
  if (::ftruncate(lock.get(), 0) == 0) {
    static_cast<void>(::pwrite(lock.get(), self.data(), self.size(), 0));
  }
  return lock;
}

StorageResult<std::uint64_t> pragma(SqliteDatabase& database, std::string_view name) {
  StorageResult<SqliteStatement> statement = database.prepare(fmt::format("PRAGMA {}", name));
  if (!statement) return forward_failure(statement);
  StorageResult<bool> row = statement->step();
  if (!row) return forward_failure(row);
  return *row ? statement->number_at(0) : 0;
}

/// Error: the database is not a store, or has another form.
StorageStatus check_kind(SqliteDatabase& database) {
  StorageResult<std::uint64_t> application = pragma(database, "application_id");
  if (!application) return forward_failure(application);
  StorageResult<std::uint64_t> form = pragma(database, "user_version");
  if (!form) return forward_failure(form);
  if (*application == kApplication && *form == kForm) return {};
  return store_error(
      StorageFailure::kOther,
      *application == kApplication
          ? fmt::format("{}: a store of form {}, expected {}", database.path(), *form, kForm)
          : fmt::format("{}: a database, but no store of Orrery", database.path()));
}

StorageStatus make_durable_mode(SqliteDatabase& database) {
  StorageResult<SqliteStatement> mode = database.prepare("PRAGMA journal_mode=WAL");
  if (!mode) return forward_failure(mode);
  StorageResult<bool> row = mode->step();
  if (!row) return forward_failure(row);
  if (!*row || mode->bytes_at(0) != "wal") {
    return store_error(StorageFailure::kOther,
                       fmt::format("{}: this file system allows no write-ahead log, which needs "
                                   "shared memory between processes",
                                   database.path()));
  }
  for (const std::string_view setting :
       {"PRAGMA synchronous=FULL", "PRAGMA wal_autocheckpoint=4000",
        "PRAGMA journal_size_limit=67108864", "PRAGMA cell_size_check=ON"}) {
    if (StorageStatus status = database.execute(setting); !status) return status;
  }
  return {};
}

StorageStatus make_tables(SqliteDatabase& database) {
  // This must come before the first table to have an effect: dropped pages can be given back.
  if (StorageStatus status = database.execute("PRAGMA auto_vacuum=INCREMENTAL"); !status) {
    return status;
  }
  return database.transact([&]() -> StorageStatus {
    for (const std::string_view statement : kTables) {
      if (StorageStatus status = database.execute(statement); !status) return status;
    }
    return {};
  });
}

/// Creates the file for its owner alone; SQLite would let others read it. The file is closed before
/// SQLite opens it: closing it later would release the locks that SQLite has on it in this process.
StorageStatus make_file(RealStorage& storage, const std::string& path, OpenMode mode) {
  StorageResult<std::unique_ptr<File>> file = storage.open(path, mode);
  if (!file) return forward_failure(file);
  return {};
}

std::string database_path(const std::string& path) {
  std::error_code none;
  return std::filesystem::is_directory(path, none) ? path + "/store.db" : path;
}

StorageResult<std::unique_ptr<SqliteDatabase>> open_file(const std::string& path) {
  const std::string file = database_path(path);
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) {
    return store_error(
        StorageFailure::kNotFound,
        fmt::format("{}: no store here; expected a directory with store.db, or a backup", path));
  }
  return SqliteDatabase::open(file, SqliteDatabase::Access::kRead);
}

StorageResult<std::unique_ptr<SqliteDatabase>> open_readable(const std::string& path) {
  auto database = open_file(path);
  if (!database) return forward_failure(database);
  if (StorageStatus status = check_kind(**database); !status) return forward_failure(status);
  return database;
}

/// Returns a failure of the database's files, with the operator's next commands.
template <class T>
tl::unexpected<StorageError> with_repair(StorageResult<T>& result, const std::string& directory) {
  if (result.error().failure == StorageFailure::kOther) {
    result.error().message += repair_commands(directory);
  }
  return forward_failure(result);
}

/// Copies into the file of a backup that was begun.
StorageStatus copy_into(SqliteDatabase& source, const std::string& path) {
  auto target = SqliteDatabase::open(path, SqliteDatabase::Access::kWrite);
  if (!target) return forward_failure(target);
  if (StorageStatus status = source.copy_to(**target); !status) return status;
  // A backup must be readable where nothing can be written beside it.
  return (*target)->execute("PRAGMA journal_mode=DELETE");
}

}  // namespace

StorageResult<std::unique_ptr<SqliteStore>> SqliteStore::open(const std::string& directory) {
  RealStorage storage;
  if (StorageStatus made = storage.make_directories(directory); !made) {
    return forward_failure(made);
  }
  StorageResult<FileDescriptor> lock = lock_directory(directory);
  if (!lock) return forward_failure(lock);
  if (StorageStatus unmoved = check_not_moved(directory); !unmoved) return forward_failure(unmoved);
  StorageResult<StoreFiles> files = look_at_files(directory);
  if (!files) return forward_failure(files);
  const std::string path = directory + "/store.db";
  if (StorageStatus made = make_file(storage, path, OpenMode::kAppend); !made) {
    return forward_failure(made);
  }
  auto database = SqliteDatabase::open(path, SqliteDatabase::Access::kWrite);
  if (!database) return forward_failure(database);
  auto store = std::make_unique<SqliteStore>(*std::move(database), *std::move(lock));
  if (StorageStatus begun = store->begin(directory, *files); !begun) return forward_failure(begun);
  return store;
}

StorageStatus SqliteStore::begin(const std::string& directory, const StoreFiles& files) {
  SqliteDatabase& database = *database_;
  // A store that is refused below stays unchanged, with its write-ahead log.
  database.keep_log_when_closed(KeepLog::kYes);
  StorageResult<DatabaseReach> reach = this->reach();
  if (!reach) return with_repair(reach, directory);
  if (StorageStatus reaches = check_reach(directory, files, *reach); !reaches) return reaches;
  if (StorageStatus whole = check_length(); !whole) return with_repair(whole, directory);
  database.keep_log_when_closed(KeepLog::kNo);
  // The mark comes before the table that records that there is one.
  if (!files.mark) {
    const HighWater mark{.batch = reach->newest, .term = reach->term};
    if (StorageStatus put = HighWaterFile::put(directory, mark); !put) return put;
  }
  // The database is empty until all its tables are made, in one transaction.
  if (reach->empty) {
    if (StorageStatus made = make_tables(database); !made) return made;
    if (StorageStatus status = check_kind(database); !status) return status;
  }
  if (StorageStatus status = make_durable_mode(database); !status) return status;
  // A store of an earlier version may lack these tables.
  for (const std::string_view table : {kArchive, kMarked}) {
    if (StorageStatus made = database.execute(table); !made) return made;
  }
  StorageResult<HighWaterFile> mark = HighWaterFile::open(directory);
  if (!mark) return forward_failure(mark);
  mark_.emplace(*std::move(mark));
  return {};
}

/// Error: the database file ends before pages that the write-ahead log does not contain either.
StorageStatus SqliteStore::check_length() {
  StorageResult<std::uint64_t> pages = pragma(*database_, "page_count");
  if (!pages) return forward_failure(pages);
  StorageResult<std::uint64_t> page_bytes = pragma(*database_, "page_size");
  if (!page_bytes) return forward_failure(page_bytes);
  std::error_code failed;
  const std::uint64_t size = std::filesystem::file_size(name(), failed);
  if (failed || size >= *pages * *page_bytes) return {};
  // This is usual after a crash, when the log has the rest; only then every page is checked.
  StorageResult<SqliteStatement> statement = database_->prepare("PRAGMA quick_check(1)");
  if (!statement) return forward_failure(statement);
  StorageResult<bool> row = statement->step();
  if (!row) return forward_failure(row);
  if (*row && statement->bytes_at(0) == "ok") return {};
  return store_error(StorageFailure::kOther,
                     fmt::format("{}: byte {}: the file is cut off here, expected {} pages of {} "
                                 "bytes",
                                 name(), size, *pages, *page_bytes));
}

StorageResult<DatabaseReach> SqliteStore::reach() {
  StorageResult<std::uint64_t> version = pragma(*database_, "schema_version");
  if (!version) return forward_failure(version);
  if (*version == 0) return DatabaseReach{.empty = true};
  if (StorageStatus status = check_kind(*database_); !status) return forward_failure(status);
  StorageResult<StoreExtent> there = extent();
  if (!there) return forward_failure(there);
  StorageResult<StoreTerm> term = this->term();
  if (!term) return forward_failure(term);
  StorageResult<std::optional<std::uint64_t>> marked =
      ask("SELECT count(*) FROM sqlite_schema WHERE name = 'marked'", 0);
  if (!marked) return forward_failure(marked);
  return DatabaseReach{.marked = marked->value_or(0) > 0,
                       .newest = there->newest,
                       .term = static_cast<std::uint64_t>(*term)};
}

StorageResult<std::unique_ptr<StoreReader>> SqliteStore::open_to_read(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_directory(path, none)) return open_as_it_is(path);
  // The files come before the database, which a writer may be extending.
  StorageResult<StoreFiles> files = look_at_files(path);
  if (!files) return forward_failure(files);
  auto database = open_file(path);
  if (!database) return forward_failure(database);
  auto store = std::make_unique<SqliteStore>(*std::move(database), FileDescriptor());
  StorageResult<DatabaseReach> reach = store->reach();
  if (!reach) return with_repair(reach, path);
  // The mark beside a closed store may be that of its copy.
  StorageStatus good;
  if (check_not_moved(path)) good = check_reach(path, *files, *reach);
  if (good) {
    StorageStatus whole = store->check_length();
    if (!whole) return with_repair(whole, path);
  }
  if (good && reach->empty) good = check_kind(*store->database_);
  if (!good) return forward_failure(good);
  return store;
}

StorageResult<std::unique_ptr<StoreReader>> SqliteStore::open_as_it_is(const std::string& path) {
  auto database = open_readable(path);
  if (!database) return forward_failure(database);
  return std::make_unique<SqliteStore>(*std::move(database), FileDescriptor());
}

StorageStatus SqliteStore::backup(const std::string& from, const std::string& to) {
  auto source = open_readable(from);
  if (!source) return forward_failure(source);
  std::error_code none;
  if (std::filesystem::exists(to, none)) {
    return store_error(StorageFailure::kExists,
                       fmt::format("{}: is there already; a backup replaces no file", to));
  }
  RealStorage storage;
  const std::string temporary = to + ".tmp";
  std::filesystem::remove(temporary, none);
  if (StorageStatus made = make_file(storage, temporary, OpenMode::kCreate); !made) return made;
  StorageStatus copied = copy_into(**source, temporary);
  if (copied) copied = storage.rename({.from = temporary, .to = to});
  if (!copied) std::filesystem::remove(temporary, none);
  return copied;
}

StorageResult<std::optional<std::uint64_t>> SqliteStore::ask(std::string_view sql,
                                                             std::uint64_t value) {
  StorageResult<SqliteStatement> statement = database_->prepare(sql);
  if (!statement) return forward_failure(statement);
  if (sql.find('?') != std::string_view::npos) statement->number(value);
  StorageResult<bool> row = statement->step();
  if (!row) return forward_failure(row);
  if (!*row || statement->null_at(0)) return std::nullopt;
  return statement->number_at(0);
}

StorageResult<StoreExtent> SqliteStore::extent() {
  StorageResult<SqliteStatement> statement = database_->prepare(
      "SELECT (SELECT min(number) FROM batches), (SELECT max(number) FROM batches),"
      " (SELECT max(covers) FROM snapshots)");
  if (!statement) return forward_failure(statement);
  StorageResult<bool> row = statement->step();
  if (!row) return forward_failure(row);
  const std::uint64_t newest = std::max(statement->number_at(1), statement->number_at(2));
  const bool none = statement->null_at(0);
  return StoreExtent{.oldest = none ? newest + 1 : statement->number_at(0), .newest = newest};
}

StorageResult<std::vector<Batch>> SqliteStore::read(std::uint64_t after, std::size_t bytes_max) {
  StorageResult<SqliteStatement> statement =
      database_->prepare("SELECT number, bytes FROM batches WHERE number > ? ORDER BY number");
  if (!statement) return forward_failure(statement);
  statement->number(after);
  std::vector<Batch> found;
  std::size_t bytes = 0;
  while (bytes < bytes_max) {
    StorageResult<bool> row = statement->step();
    if (!row && !found.empty()) break;  // a read that continues here gets the error
    if (!row) return forward_failure(row);
    if (!*row) break;
    found.push_back({statement->number_at(0), statement->bytes_at(1)});
    bytes += found.back().bytes.size();
  }
  return found;
}

StorageResult<std::vector<std::uint64_t>> SqliteStore::snapshots() {
  StorageResult<SqliteStatement> statement =
      database_->prepare("SELECT covers FROM snapshots ORDER BY covers DESC");
  if (!statement) return forward_failure(statement);
  std::vector<std::uint64_t> found;
  while (true) {
    StorageResult<bool> row = statement->step();
    if (!row) return forward_failure(row);
    if (!*row) return found;
    found.push_back(statement->number_at(0));
  }
}

StorageResult<std::string> SqliteStore::snapshot(std::uint64_t covers) {
  StorageResult<SqliteStatement> statement =
      database_->prepare("SELECT bytes FROM snapshots WHERE covers = ?");
  if (!statement) return forward_failure(statement);
  StorageResult<bool> row = statement->number(covers).step();
  if (!row) return forward_failure(row);
  if (!*row) return no_snapshot(name(), covers);
  return statement->bytes_at(0);
}

StorageResult<StoreTexts> SqliteStore::texts() {
  StorageResult<SqliteStatement> statement = database_->prepare("SELECT name, text FROM texts");
  if (!statement) return forward_failure(statement);
  StoreTexts found;
  while (true) {
    StorageResult<bool> row = statement->step();
    if (!row) return forward_failure(row);
    if (!*row) return found;
    found[statement->bytes_at(0)] = statement->bytes_at(1);
  }
}

StorageStatus SqliteStore::check() {
  StorageResult<SqliteStatement> statement = database_->prepare("PRAGMA integrity_check(1)");
  if (!statement) return forward_failure(statement);
  StorageResult<bool> row = statement->step();
  if (!row) return forward_failure(row);
  const std::string said = *row ? statement->bytes_at(0) : "nothing";
  if (said == "ok") return {};
  return store_error(StorageFailure::kOther,
                     fmt::format("{}: the database is damaged: {}", name(), said));
}

StorageResult<StoreTerm> SqliteStore::term() {
  StorageResult<std::optional<std::uint64_t>> term = ask("SELECT term FROM writer", 0);
  if (!term) return forward_failure(term);
  return static_cast<StoreTerm>(term->value_or(0));
}

StorageStatus SqliteStore::check_turn(StoreTerm given) {
  StorageResult<StoreTerm> held = term();
  if (!held) return forward_failure(held);
  return check_term(name(), {*held, given});
}

StorageResult<StoreTerm> SqliteStore::claim() {
  StorageStatus raised =
      database_->transact([&] { return database_->execute("UPDATE writer SET term = term + 1"); });
  if (!raised) return forward_failure(raised);
  StorageResult<StoreTerm> claimed = term();
  if (!claimed) return forward_failure(claimed);
  StorageStatus marked = mark_->raise({.term = static_cast<std::uint64_t>(*claimed)});
  if (!marked) return forward_failure(marked);
  return claimed;
}

StorageResult<FileDescriptor> SqliteStore::lock(const std::string& directory) {
  return lock_directory(directory);
}

StorageStatus SqliteStore::adopt(const HighWater& reached) {
  StorageStatus raised = database_->transact([&]() -> StorageStatus {
    StorageResult<SqliteStatement> statement =
        database_->prepare("UPDATE writer SET term = max(term, ?)");
    if (!statement) return forward_failure(statement);
    statement->number(reached.term);
    return database_->finish(*statement);
  });
  if (!raised) return raised;
  StorageResult<DatabaseReach> there = reach();
  if (!there) return forward_failure(there);
  return mark_->raise({.batch = there->newest, .term = there->term, .next_job = reached.next_job});
}

StorageStatus SqliteStore::begin_at(StoreTerm term, const Batch& covers) {
  StorageStatus begun = database_->transact([&]() -> StorageStatus {
    if (StorageStatus status = check_turn(term); !status) return status;
    StorageResult<StoreExtent> there = extent();
    if (!there) return forward_failure(there);
    StorageStatus empty = check_next(name(), {there->newest, 1});
    return empty ? put("INSERT INTO snapshots VALUES (?, ?)", covers) : empty;
  });
  if (!begun) return begun;
  return mark_->raise({.batch = covers.number});
}

StorageStatus SqliteStore::put(std::string_view sql, const Batch& batch) {
  StorageResult<SqliteStatement> statement = database_->prepare(sql);
  if (!statement) return forward_failure(statement);
  statement->number(batch.number).bytes(batch.bytes);
  return database_->finish(*statement);
}

StorageStatus SqliteStore::append(StoreTerm term, const Batch& batch) {
  StorageStatus written = database_->transact([&]() -> StorageStatus {
    if (StorageStatus status = check_turn(term); !status) return status;
    StorageResult<StoreExtent> there = extent();
    if (!there) return forward_failure(there);
    StorageStatus next = check_next(name(), {there->newest, batch.number});
    return next ? put("INSERT INTO batches VALUES (?, ?)", batch) : next;
  });
  if (!written) return written;
  return mark_->raise({.batch = batch.number, .next_job = batch.next_job});
}

StorageStatus SqliteStore::put_snapshot(StoreTerm term, const Batch& covers) {
  return database_->transact([&]() -> StorageStatus {
    if (StorageStatus status = check_turn(term); !status) return status;
    StorageResult<StoreExtent> there = extent();
    if (!there) return forward_failure(there);
    StorageStatus known = check_covered(name(), {there->newest, covers.number});
    return known ? put("INSERT OR REPLACE INTO snapshots VALUES (?, ?)", covers) : known;
  });
}

StorageStatus SqliteStore::drop_covered(StoreTerm term, std::uint64_t covers) {
  StorageStatus dropped = database_->transact([&]() -> StorageStatus {
    if (StorageStatus status = check_turn(term); !status) return status;
    StorageResult<std::optional<std::uint64_t>> there =
        ask("SELECT covers FROM snapshots WHERE covers = ?", covers);
    if (!there) return forward_failure(there);
    if (!*there) return no_snapshot(name(), covers);
    for (const std::string_view sql :
         {"DELETE FROM snapshots WHERE covers < ?", "DELETE FROM batches WHERE number <= ?"}) {
      StorageResult<SqliteStatement> statement = database_->prepare(sql);
      if (!statement) return forward_failure(statement);
      statement->number(covers);
      if (StorageStatus done = database_->finish(*statement); !done) return done;
    }
    return {};
  });
  if (!dropped) return dropped;
  // Each time a part of the space goes back to the file system; on a full disk it stays, and later
  // batches use it again.
  StorageStatus given = database_->execute("PRAGMA incremental_vacuum(2048)");
  const bool can_wait = !given && given.error().failure == StorageFailure::kFull;
  return can_wait ? StorageStatus() : given;
}

StorageStatus SqliteStore::put_texts(StoreTerm term, const StoreTexts& texts) {
  return database_->transact([&]() -> StorageStatus {
    if (StorageStatus status = check_turn(term); !status) return status;
    for (const auto& [name, text] : texts) {
      StorageResult<SqliteStatement> statement =
          database_->prepare("INSERT OR REPLACE INTO texts VALUES (?, ?)");
      if (!statement) return forward_failure(statement);
      statement->text(name).text(text);
      if (StorageStatus done = database_->finish(*statement); !done) return done;
    }
    return {};
  });
}

StorageResult<std::vector<ArchivedJob>> SqliteStore::archived(std::uint64_t before,
                                                              std::size_t count) {
  StorageResult<SqliteStatement> statement =
      database_->prepare("SELECT id, bytes FROM archive WHERE id < ? ORDER BY id DESC LIMIT ?");
  if (!statement) return forward_failure(statement);
  statement->number(before).number(count);
  std::vector<ArchivedJob> found;
  found.reserve(count);
  while (true) {
    StorageResult<bool> row = statement->step();
    if (!row) return forward_failure(row);
    if (!*row) return found;
    found.push_back({statement->number_at(0), statement->bytes_at(1)});
  }
}

StorageStatus SqliteStore::put_archived(StoreTerm term, const std::vector<ArchivedJob>& jobs) {
  return database_->transact([&]() -> StorageStatus {
    if (StorageStatus status = check_turn(term); !status) return status;
    for (const ArchivedJob& job : jobs) {
      StorageStatus done = put("INSERT OR REPLACE INTO archive VALUES (?, ?)", {job.id, job.bytes});
      if (!done) return done;
    }
    return {};
  });
}

StorageStatus SqliteStore::shrink() {
  if (StorageStatus given = database_->execute("PRAGMA incremental_vacuum"); !given) return given;
  return database_->execute("PRAGMA wal_checkpoint(TRUNCATE)");
}

}  // namespace orrery
