// What a store on a disk has to survive: crashes, a second writer, lack of space, damage.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <fstream>

#include "store/backend_test.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

std::string batch_text(std::uint64_t number) {
  return std::to_string(number) + std::string(number * 37 % 5000, 'x');
}

/// Runs in a child: writes without end, and reports durable batches through the pipe.
[[noreturn]] void write_until_killed(const std::string& directory, int acknowledged) {
  auto store = SqliteStore::open(directory);
  if (!store) ::_exit(3);
  const StorageResult<StoreTerm> term = (*store)->claim();
  const StorageResult<StoreExtent> extent = (*store)->extent();
  if (!term || !extent) ::_exit(4);
  for (std::uint64_t number = extent->newest + 1;; ++number) {
    if (!(*store)->append(*term, {number, batch_text(number)})) ::_exit(5);
    if (::write(acknowledged, &number, sizeof number) != sizeof number) ::_exit(6);
  }
}

/// Returns the newest batch that a writer had acknowledged when it was killed in its work.
std::uint64_t run_and_kill(const std::string& directory, int batches) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) write_until_killed(directory, pipe[1]);
  ::close(pipe[1]);
  std::uint64_t newest = 0;
  for (int i = 0; i < batches; ++i) {
    EXPECT_EQ(::read(pipe[0], &newest, sizeof newest), ssize_t{sizeof newest});
  }
  ::kill(child, SIGKILL);
  while (::read(pipe[0], &newest, sizeof newest) == ssize_t{sizeof newest}) continue;
  ::close(pipe[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself with " << WEXITSTATUS(status);
  return newest;
}

TEST(SqliteStore, OfAKilledWriterEveryAcknowledgedBatchIsThereAndWhole) {
  const SqliteBackend backend;
  for (int round = 1; round <= 5; ++round) {
    const std::uint64_t acknowledged = run_and_kill(backend.directory(), 7 * round);
    const auto store = SqliteStore::open_to_read(backend.directory());
    ASSERT_TRUE(store) << store.error().text();
    const std::uint64_t newest = (*store)->extent()->newest;
    EXPECT_GE(newest, acknowledged);
    EXPECT_LE(newest, acknowledged + 1) << "at most the one that it was about to acknowledge";
    const auto batches = (*store)->read(0, std::size_t{1} << 30);
    ASSERT_TRUE(batches);
    ASSERT_EQ(batches->size(), newest);
    for (const Batch& batch : *batches) EXPECT_EQ(batch.bytes, batch_text(batch.number));
    EXPECT_TRUE((*store)->check());
  }
}

TEST(SqliteStore, ASecondWriterIsRefusedAndToldWhoTheFirstIs) {
  SqliteBackend backend;
  const std::unique_ptr<Store> first = backend.open();
  const auto second = SqliteStore::open(backend.directory());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().failure, StorageFailure::kExists);
  EXPECT_NE(second.error().message.find("process " + std::to_string(::getpid())), std::string::npos)
      << second.error().text();
}

/// Appends batches of 1,000 bytes, up to that number.
void fill(Store& store, std::uint64_t batches) {
  const StoreTerm term = *store.claim();
  for (std::uint64_t number = 1; number <= batches; ++number) {
    ASSERT_TRUE(store.append(term, {number, std::string(1000, static_cast<char>('a' + number))}));
  }
}

TEST(SqliteStore, IsReadAndBackedUpWhileAnotherWritesIt) {
  SqliteBackend backend;
  const std::unique_ptr<Store> store = backend.open();
  fill(*store, 20);
  const std::string copy = backend.path("copy.db");
  ASSERT_TRUE(SqliteStore::backup(backend.directory(), copy));
  const auto reader = SqliteStore::open_to_read(backend.directory());
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_EQ((*reader)->extent()->newest, 20u);
  ASSERT_TRUE(store->append(*store->claim(), {21, "later"}));
  EXPECT_EQ((*reader)->extent()->newest, 21u);
  const auto backup = SqliteStore::open_to_read(copy);
  ASSERT_TRUE(backup) << backup.error().text();
  EXPECT_EQ((*backup)->extent()->newest, 20u);
  EXPECT_TRUE((*backup)->check());
  EXPECT_FALSE(fs::exists(copy + "-wal"));
  EXPECT_EQ(fs::status(copy).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  const StorageStatus again = SqliteStore::backup(backend.directory(), copy);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().failure, StorageFailure::kExists);
}

/// Limits the size of files while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    static_cast<void>(std::signal(SIGXFSZ, handler_));
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(SqliteStore, WithoutRoomSaysSoLosesNothingAndGoesOnWhenThereIsRoom) {
  SqliteBackend backend;
  std::unique_ptr<Store> store = backend.open();
  fill(*store, 3);
  const StoreTerm term = *store->claim();
  std::uint64_t number = 3;
  {
    const FileSizeLimit limit(200'000);
    StorageStatus status;
    while (status) status = store->append(term, {++number, std::string(10'000, 'y')});
    EXPECT_EQ(status.error().failure, StorageFailure::kFull) << status.error().text();
    EXPECT_NE(status.error().message.find("no room"), std::string::npos) << status.error().text();
    EXPECT_EQ(store->extent()->newest, number - 1);
  }
  ASSERT_GT(number, 5u);
  EXPECT_TRUE(store->append(term, {number, "there is room again"}));
  store.reset();
  EXPECT_EQ(backend.open()->extent()->newest, number);
}

TEST(SqliteStore, WhatIsNoStoreIsNotTakenForOne) {
  const SqliteBackend backend;
  const auto none = SqliteStore::open_to_read(backend.path("nowhere"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().failure, StorageFailure::kNotFound);
  std::ofstream(backend.path("text")) << std::string(5000, 'x');
  EXPECT_FALSE(SqliteStore::open_to_read(backend.path("text")));
  std::ofstream(backend.path("empty")) << "";
  const auto empty = SqliteStore::open_to_read(backend.path("empty"));
  ASSERT_FALSE(empty);
  EXPECT_NE(empty.error().message.find("no store of Orrery"), std::string::npos)
      << empty.error().text();
}

TEST(SqliteStore, GivesRoomBackWhenAsked) {
  SqliteBackend backend;
  auto store = SqliteStore::open(backend.directory());
  ASSERT_TRUE(store);
  fill(**store, 200);
  const StoreTerm term = *(*store)->claim();
  ASSERT_TRUE((*store)->put_snapshot(term, {199, "state"}));
  ASSERT_TRUE((*store)->drop_covered(term, 199));
  ASSERT_TRUE((*store)->shrink());
  EXPECT_LT(fs::file_size(backend.directory() + "/store.db"), 50'000u);
  EXPECT_EQ((*store)->extent()->oldest, 200u);
}

}  // namespace
}  // namespace orrery
