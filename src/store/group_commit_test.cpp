#include "store/group_commit.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "store/backend_test.hpp"
#include "store/sqlite/disk_reserve.hpp"

namespace orrery {
namespace {

/// A loop that is only an inbox; the test runs it until a callback it waits for has come.
class TestInbox final : public Inbox {
 public:
  void post(Callback callback) override {
    const std::scoped_lock lock(mutex_);
    posted_.push_back(std::move(callback));
    came_.notify_one();
  }
  void run_until(const std::function<bool()>& condition) {
    while (!condition()) {
      std::vector<Callback> round;
      {
        std::unique_lock lock(mutex_);
        came_.wait(lock, [this] { return !posted_.empty(); });
        round.swap(posted_);
      }
      for (const Callback& callback : round) callback();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<Callback> posted_;
};

struct Told {
  std::vector<std::uint64_t> durable;
  std::vector<StorageError> failed;
  std::size_t snapshots = 0;
};

struct Fixture {
  explicit Fixture(BackendKind kind) : backend(make_backend(kind)), store(backend->open()) {}
  GroupCommitOptions options() {
    return {.store = *store,
            .term = *store->claim(),
            .newest = store->extent()->newest,
            .inbox = inbox,
            .durable = [this](std::uint64_t number) { told.durable.push_back(number); },
            .failed = [this](const StorageError& why) { told.failed.push_back(why); },
            .snapshot_put = [this](const StorageStatus&) { ++told.snapshots; },
            .make_room = {}};
  }
  [[nodiscard]] bool is_durable(std::uint64_t number) const {
    return !told.failed.empty() || (!told.durable.empty() && told.durable.back() >= number);
  }

  std::unique_ptr<TestBackend> backend;
  std::unique_ptr<Store> store;
  TestInbox inbox;
  Told told;
};

TEST(GroupCommitThreads, EveryPieceIsDurableInOrderBeforeAnybodyIsTold) {
  Fixture with(BackendKind::kSqlite);
  std::string expected;
  {
    GroupCommit commit(with.options());
    std::uint64_t last = 0;
    for (int i = 0; i < 300; ++i) {
      const std::string piece = std::to_string(i) + ' ';
      expected += piece;
      const std::uint64_t number = commit.submit(piece);
      EXPECT_TRUE(number == last || number == last + 1);
      last = number;
    }
    with.inbox.run_until([&] { return with.is_durable(last); });
    EXPECT_EQ(commit.waiting_bytes(), 0u);
  }
  ASSERT_TRUE(with.told.failed.empty());
  for (std::size_t i = 0; i < with.told.durable.size(); ++i) {
    EXPECT_EQ(with.told.durable[i], i + 1);
  }
  EXPECT_LT(with.told.durable.size(), 300u) << "what came during a commit shares the next one";
  std::string written;
  const auto batches = with.store->read(0, 1 << 20);
  ASSERT_TRUE(batches);
  for (const Batch& batch : *batches) written += batch.bytes;
  EXPECT_EQ(written, expected);
}

TEST(GroupCommitThreads, ItsEndWaitsForWhatWasSubmitted) {
  Fixture with(BackendKind::kMemory);
  const std::string large(GroupCommit::kBatchBytes, 'x');
  std::uint64_t last = 0;
  {
    GroupCommit commit(with.options());
    for (int i = 0; i < 5; ++i) last = commit.submit(large);
  }
  EXPECT_EQ(last, 5u) << "a full batch is closed";
  EXPECT_EQ(with.store->extent()->newest, 5u);
}

TEST(GroupCommitThreads, ASnapshotCoversWhatWasSubmittedBeforeIt) {
  Fixture with(BackendKind::kMemory);
  {
    GroupCommit commit(with.options());
    EXPECT_EQ(commit.submit("one"), 1u);
    commit.put_snapshot("after one");
    EXPECT_EQ(commit.submit("two"), 2u);
    commit.put_snapshot("after two");
    EXPECT_EQ(commit.submit("three"), 3u);
    with.inbox.run_until([&] { return with.is_durable(3); });
  }
  EXPECT_EQ(with.told.snapshots, 2u);
  EXPECT_EQ(*with.store->snapshots(), (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(with.store->extent()->oldest, 2u) << "what the older one covers is dropped";
}

TEST(GroupCommitThreads, AFailureIsFinal) {
  Fixture with(BackendKind::kMemory);
  GroupCommit commit(with.options());
  const std::uint64_t first = commit.submit("one");
  with.inbox.run_until([&] { return with.is_durable(first); });
  ASSERT_TRUE(with.store->claim()) << "somebody else takes over";
  commit.submit("late");
  with.inbox.run_until([&] { return !with.told.failed.empty(); });
  commit.submit("later still");
  EXPECT_NE(with.told.failed.front().message.find("may write no more"), std::string::npos);
}

TEST(GroupCommitThreads, WhereThereIsNoRoomSomeMayBeMadeOnce) {
  MemoryDisk disk;
  disk.room = 10;
  MemoryStore store(disk);
  Fixture with(BackendKind::kMemory);
  GroupCommitOptions options = with.options();
  int asked = 0;
  GroupCommit commit({.store = store,
                      .term = *store.claim(),
                      .newest = 0,
                      .inbox = with.inbox,
                      .durable = options.durable,
                      .failed = options.failed,
                      .snapshot_put = options.snapshot_put,
                      .make_room = [&] {
                        disk.room += asked == 0 ? 10 : 0;
                        return asked++ == 0 ? RoomMade::kYes : RoomMade::kNo;
                      }});
  const std::uint64_t first = commit.submit("12345678");
  with.inbox.run_until([&] { return with.is_durable(first); });
  commit.put_snapshot("a state of more bytes than there are");
  const std::uint64_t second = commit.submit("12345678");
  with.inbox.run_until([&] { return with.is_durable(second); });
  EXPECT_TRUE(with.told.failed.empty()) << "not even for the snapshot's sake";
  EXPECT_EQ(with.told.snapshots, 1u);
  commit.submit("12345678");
  with.inbox.run_until([&] { return !with.told.failed.empty(); });
  EXPECT_EQ(with.told.failed.front().failure, StorageFailure::kFull);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(store.extent()->newest, second);
}

TEST(DiskReserve, IsTakenGivenUpOnceAndTakenAgainWhenThereIsRoom) {
  const TestDirectory directory;
  const std::string ballast = directory.path("ballast");
  DiskReserve reserve(directory.path(""), 1 << 20);
  ASSERT_TRUE(reserve.held());
  EXPECT_EQ(std::filesystem::file_size(ballast), 1u << 20);
  EXPECT_TRUE(DiskReserve(directory.path(""), 1 << 20).held()) << "that of a process before";
  EXPECT_EQ(reserve.give_up(), RoomMade::kYes);
  EXPECT_FALSE(std::filesystem::exists(ballast));
  EXPECT_EQ(reserve.give_up(), RoomMade::kNo);
  EXPECT_EQ(reserve.look(), DiskRoom::kEnough);
  EXPECT_TRUE(reserve.held());
}

TEST(DiskReserve, WhereTheDiskHasNoRoomForItTakesNothingAndSaysSo) {
  const TestDirectory directory;
  DiskReserve reserve(directory.path(""), std::uint64_t{1} << 60);
  EXPECT_EQ(reserve.look(), DiskRoom::kLow);
  EXPECT_FALSE(reserve.held());
  EXPECT_FALSE(std::filesystem::exists(directory.path("ballast")));
}

}  // namespace
}  // namespace orrery
