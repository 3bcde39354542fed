#include "store/group_commit.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

#include "base/system/real_clock.hpp"
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
  CommitOptions options() { return options_for(*store); }
  /// Options for another store than the backend's.
  CommitOptions options_for(Store& of) {
    return {.store = of,
            .term = *of.claim(),
            .newest = of.extent()->newest,
            .clock = clock,
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
  RealClock clock;
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
  const std::string large(with.store->traits().batch_bytes, 'x');
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
  CommitOptions options = with.options_for(store);
  int asked = 0;
  options.make_room = [&] {
    disk.room += asked == 0 ? 10 : 0;
    return asked++ == 0 ? RoomMade::kYes : RoomMade::kNo;
  };
  GroupCommit commit(std::move(options));
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

/// A store that others follow, and that may give no answer.
class SilentStore final : public Store {
 public:
  SilentStore(MemoryDisk& disk, std::atomic<int>& silent,
              StorageFailure failure = StorageFailure::kUnavailable)
      : store_(disk), silent_(silent), failure_(failure) {}

  [[nodiscard]] StoreTraits traits() const override {
    return {.batch_bytes = 4,
            .beat_every = Duration::milliseconds(1),
            .speaks_for = Duration::seconds(1)};
  }
  [[nodiscard]] const std::string& name() const override { return store_.name(); }
  [[nodiscard]] StorageResult<StoreExtent> extent() override { return store_.extent(); }
  [[nodiscard]] StorageResult<std::vector<Batch>> read(std::uint64_t after,
                                                       std::size_t bytes_max) override {
    return store_.read(after, bytes_max);
  }
  [[nodiscard]] StorageResult<std::vector<std::uint64_t>> snapshots() override {
    return store_.snapshots();
  }
  [[nodiscard]] StorageResult<std::string> snapshot(std::uint64_t covers) override {
    return store_.snapshot(covers);
  }
  [[nodiscard]] StorageResult<StoreTexts> texts() override { return store_.texts(); }
  [[nodiscard]] StorageResult<std::vector<ArchivedJob>> archived(std::uint64_t before,
                                                                 std::size_t count) override {
    return store_.archived(before, count);
  }
  [[nodiscard]] StorageStatus check() override { return store_.check(); }
  [[nodiscard]] StorageResult<StoreTerm> claim() override { return store_.claim(); }
  [[nodiscard]] StorageStatus beat(StoreTerm /*term*/) override {
    ++beats;
    if (taken_over) return store_error(StorageFailure::kSuperseded, "somebody else writes");
    return answer({});
  }
  [[nodiscard]] StorageStatus append(StoreTerm term, const Batch& batch) override {
    if (silent_ > 0) return answer({});
    return store_.append(term, batch);
  }
  [[nodiscard]] StorageStatus put_snapshot(StoreTerm term, const Batch& covers) override {
    return store_.put_snapshot(term, covers);
  }
  [[nodiscard]] StorageStatus drop_covered(StoreTerm term, std::uint64_t covers) override {
    return store_.drop_covered(term, covers);
  }
  [[nodiscard]] StorageStatus shrink() override { return store_.shrink(); }
  [[nodiscard]] StorageStatus put_texts(StoreTerm term, const StoreTexts& texts) override {
    return store_.put_texts(term, texts);
  }
  [[nodiscard]] StorageStatus put_archived(StoreTerm term,
                                           const std::vector<ArchivedJob>& jobs) override {
    return store_.put_archived(term, jobs);
  }

  std::atomic<int> beats = 0;
  std::atomic<bool> taken_over = false;

 private:
  [[nodiscard]] StorageStatus answer(const StorageStatus& status) {
    if (silent_ == 0) return status;
    --silent_;
    return store_error(failure_, "no answer");
  }

  MemoryStore store_;
  std::atomic<int>& silent_;
  StorageFailure failure_;
};

TEST(GroupCommitThreads, AStoreThatGivesNoAnswerIsAskedAgain) {
  MemoryDisk disk;
  std::atomic<int> silent = 3;
  SilentStore store(disk, silent);
  Fixture with(BackendKind::kMemory);
  CommitOptions options = with.options_for(store);
  std::vector<bool> answers;
  std::vector<Instant> spoke;
  options.spoke = [&](Instant at) { spoke.push_back(at); };
  options.answers = [&](const StorageStatus& status) { answers.push_back(status.has_value()); };
  const Instant began = with.clock.now_monotonic();
  GroupCommit commit(std::move(options));
  const std::uint64_t number = commit.submit("one");
  with.inbox.run_until([&] { return with.is_durable(number); });
  EXPECT_TRUE(with.told.failed.empty());
  EXPECT_EQ(answers, (std::vector<bool>{false, true})) << "each change is told once";
  ASSERT_FALSE(spoke.empty());
  EXPECT_GT(spoke.back(), began);
  EXPECT_EQ(store.extent()->newest, 1u);
}

/// Shows 1 s more with each look.
class SteppingClock final : public Clock {
 public:
  [[nodiscard]] Instant now_wall() const override { return now_monotonic(); }
  [[nodiscard]] Instant now_monotonic() const override {
    return Instant() + Duration::seconds(++looks_);
  }

 private:
  mutable std::atomic<std::int64_t> looks_ = 0;
};

TEST(GroupCommitThreads, AWriteThatIsTriedAgainLetsTheWriterSpeakFromItsFirstTryOn) {
  MemoryDisk disk;
  std::atomic<int> silent = 3;
  SilentStore store(disk, silent);
  Fixture with(BackendKind::kMemory);
  const SteppingClock clock;
  CommitOptions once = with.options_for(store);
  std::vector<Instant> spoke;
  GroupCommit commit({.store = once.store,
                      .term = once.term,
                      .newest = once.newest,
                      .clock = clock,
                      .inbox = once.inbox,
                      .durable = once.durable,
                      .failed = once.failed,
                      .spoke = [&](Instant at) { spoke.push_back(at); }});
  (void)commit.submit("one");
  with.inbox.run_until([&] { return spoke.size() >= 3; });
  for (std::size_t i = 0; i < spoke.size(); ++i) {
    EXPECT_EQ(spoke[i], Instant() + Duration::seconds(static_cast<std::int64_t>(i) + 1));
  }
}

TEST(GroupCommitThreads, AStoreThatOthersFollowAndThatIsFullIsAskedAgain) {
  MemoryDisk disk;
  std::atomic<int> silent = 3;
  SilentStore store(disk, silent, StorageFailure::kFull);
  Fixture with(BackendKind::kMemory);
  CommitOptions options = with.options_for(store);
  std::vector<bool> answers;
  options.answers = [&](const StorageStatus& status) { answers.push_back(status.has_value()); };
  GroupCommit commit(std::move(options));
  const std::uint64_t number = commit.submit("one");
  with.inbox.run_until([&] { return with.is_durable(number); });
  EXPECT_TRUE(with.told.failed.empty());
  EXPECT_EQ(answers, (std::vector<bool>{false, true}));
}

TEST(GroupCommitThreads, AnIdleWriterShowsThatItLives) {
  MemoryDisk disk;
  std::atomic<int> silent = 0;
  SilentStore store(disk, silent);
  Fixture with(BackendKind::kMemory);
  std::size_t spoke = 0;
  CommitOptions options = with.options_for(store);
  options.spoke = [&](Instant) { ++spoke; };
  GroupCommit commit(std::move(options));
  with.inbox.run_until([&] { return spoke >= 3; });
  EXPECT_GE(store.beats, 3);
  store.taken_over = true;
  with.inbox.run_until([&] { return !with.told.failed.empty(); });
  EXPECT_EQ(with.told.failed.front().failure, StorageFailure::kSuperseded);
}

TEST(GroupCommitThreads, ItsEndDoesNotWaitForAStoreThatGivesNoAnswer) {
  MemoryDisk disk;
  std::atomic<int> silent = 1'000'000;
  SilentStore store(disk, silent);
  Fixture with(BackendKind::kMemory);
  {
    GroupCommit commit(with.options_for(store));
    (void)commit.submit("one");
  }
  EXPECT_EQ(store.extent()->newest, 0u);
}

/// A store whose snapshots take until the test lets them.
class SlowSnapshots final : public Store {
 public:
  explicit SlowSnapshots(MemoryDisk& disk) : store_(disk) {}

  [[nodiscard]] StoreTraits traits() const override { return {.snapshots_beside = true}; }
  [[nodiscard]] StorageStatus put_snapshot(StoreTerm term, const Batch& covers) override {
    begun.set_value();
    let.get_future().wait();
    return store_.put_snapshot(term, covers);
  }
  [[nodiscard]] StorageStatus append(StoreTerm term, const Batch& batch) override {
    return store_.append(term, batch);
  }
  [[nodiscard]] StorageResult<StoreTerm> claim() override { return store_.claim(); }
  [[nodiscard]] StorageResult<StoreExtent> extent() override { return store_.extent(); }
  [[nodiscard]] StorageResult<std::vector<std::uint64_t>> snapshots() override {
    return store_.snapshots();
  }
  [[nodiscard]] StorageStatus drop_covered(StoreTerm term, std::uint64_t covers) override {
    return store_.drop_covered(term, covers);
  }
  [[nodiscard]] StorageStatus shrink() override { return {}; }
  // What the test does not call:
  [[nodiscard]] const std::string& name() const override { return store_.name(); }
  [[nodiscard]] StorageStatus check() override { return {}; }
  [[nodiscard]] StorageResult<StoreTexts> texts() override { return store_.texts(); }
  [[nodiscard]] StorageResult<std::string> snapshot(std::uint64_t covers) override {
    return store_.snapshot(covers);
  }
  [[nodiscard]] StorageResult<std::vector<Batch>> read(std::uint64_t after,
                                                       std::size_t bytes_max) override {
    return store_.read(after, bytes_max);
  }
  [[nodiscard]] StorageStatus put_texts(StoreTerm term, const StoreTexts& texts) override {
    return store_.put_texts(term, texts);
  }
  [[nodiscard]] StorageResult<std::vector<ArchivedJob>> archived(std::uint64_t before,
                                                                 std::size_t count) override {
    return store_.archived(before, count);
  }
  [[nodiscard]] StorageStatus put_archived(StoreTerm term,
                                           const std::vector<ArchivedJob>& jobs) override {
    return store_.put_archived(term, jobs);
  }

  std::promise<void> begun;
  std::promise<void> let;

 private:
  MemoryStore store_;
};

TEST(GroupCommitThreads, ASlowSnapshotHoldsUpNoBatch) {
  MemoryDisk disk;
  SlowSnapshots store(disk);
  Fixture with(BackendKind::kMemory);
  GroupCommit commit(with.options_for(store));
  (void)commit.submit("one");
  commit.put_snapshot("after one");
  store.begun.get_future().wait();
  const std::uint64_t second = commit.submit("two");
  with.inbox.run_until([&] { return with.is_durable(second); });
  EXPECT_EQ(with.told.snapshots, 0u);
  commit.put_snapshot("while the first is being put");
  const std::uint64_t third = commit.submit("three");
  with.inbox.run_until([&] { return with.is_durable(third); });
  EXPECT_EQ(with.told.snapshots, 1u) << "the second one is left out";
  store.let.set_value();
  with.inbox.run_until([&] { return with.told.snapshots == 2; });
  EXPECT_TRUE(with.told.failed.empty());
  EXPECT_EQ(*store.snapshots(), (std::vector<std::uint64_t>{1}));
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
