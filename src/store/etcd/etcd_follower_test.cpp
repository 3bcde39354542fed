#include "store/etcd/etcd_follower.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>

#include "store/etcd/etcd_server_test.hpp"
#include "store/etcd/tcp_relay_test.hpp"

namespace orrery {
namespace {

/// Counts what is posted to a loop.
class CountingInbox final : public Inbox {
 public:
  explicit CountingInbox(Inbox& to) : to_(to) {}
  void post(Callback callback) override {
    to_.post(std::move(callback));
    ++posted_;
  }
  [[nodiscard]] int posted() const { return posted_; }

 private:
  Inbox& to_;
  std::atomic<int> posted_ = 0;
};

/// What a follower has called back with.
struct Heard {
  std::uint64_t newest = 0;
  std::string bytes = {};  ///< of the newest batch
  WriterSeen seen = {};
  int calls = 0;  ///< of `seen`
  int texts = 0;
  std::uint64_t ahead = 0;                     ///< batch that was announced
  std::optional<std::uint64_t> ahead_at = {};  ///< newest batch that had come before
  std::vector<StorageError> failures = {};
};

class EtcdFollowerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!etcd_installed()) GTEST_SKIP() << "SKIPPED: " << kEtcdProgram << " is not installed";
  }
  void begin(int members = 1) {
    server_ = std::make_unique<EtcdServer>(members);
    writer_ = *EtcdStore::open(server_->location(), local_.path("writer"),
                               {.snapshot_bytes_per_second = 0});
    term_ = *again([&] { return writer_->claim(); });
  }
  void append(std::uint64_t number, const std::string& bytes) {
    const StorageStatus status = again([&] { return writer_->append(term_, {number, bytes}); });
    ASSERT_TRUE(status) << status.error().text();
  }
  void follow(std::uint64_t after = 0) { follow(server_->location(), after); }
  void follow(const EtcdLocation& location, std::uint64_t after = 0) {
    heard_.newest = after;
    follower_ = std::make_unique<EtcdFollower>(
        location,
        FollowOptions{
            .after = after,
            .inbox = inbox_,
            .seen = [this](const WriterSeen& seen) { take(seen); },
            .batch = [this](const Batch& batch) { take(batch); },
            .texts_put = [this] { ++heard_.texts; },
            .failed = [this](const StorageError& error) { heard_.failures.push_back(error); },
            .ahead =
                [this](std::uint64_t batch) {
                  heard_.ahead = batch;
                  heard_.ahead_at = heard_.newest;
                }});
  }
  /// Runs the loop until the condition holds. Returns false after `patience`.
  [[nodiscard]] bool wait(const std::function<bool()>& condition,
                          Duration patience = Duration::minutes(1)) {
    bool late = false;
    const TimerId timer = env_->env().timers.call_after(patience, [&late] { late = true; });
    env_->run_until([&] { return late || condition(); });
    env_->env().timers.cancel(timer);
    return !late;
  }
  [[nodiscard]] bool wait_for_batch(std::uint64_t number,
                                    Duration patience = Duration::minutes(1)) {
    return wait([this, number] { return heard_.newest >= number && heard_.seen.newest >= number; },
                patience);
  }

  RealEnv& env() { return *env_; }
  [[nodiscard]] int posted() const { return inbox_.posted(); }
  EtcdServer& server() { return *server_; }
  EtcdStore& writer() { return *writer_; }
  [[nodiscard]] StoreTerm term() const { return term_; }
  [[nodiscard]] const WriterSeen& seen() const { return heard_.seen; }
  [[nodiscard]] std::uint64_t newest() const { return heard_.newest; }
  [[nodiscard]] const std::string& bytes() const { return heard_.bytes; }
  [[nodiscard]] int texts() const { return heard_.texts; }
  [[nodiscard]] std::uint64_t ahead() const { return heard_.ahead; }
  [[nodiscard]] std::optional<std::uint64_t> ahead_at() const { return heard_.ahead_at; }
  [[nodiscard]] int calls() const { return heard_.calls; }
  [[nodiscard]] const std::vector<StorageError>& failures() const { return heard_.failures; }
  void end_follower() { follower_.reset(); }
  [[nodiscard]] std::string local(const std::string& machine) const { return local_.path(machine); }

 private:
  void take(const Batch& batch) {
    EXPECT_EQ(batch.number, heard_.newest + 1);
    heard_.newest = batch.number;
    heard_.bytes = batch.bytes;
  }
  void take(const WriterSeen& seen) {
    EXPECT_EQ(seen.newest, heard_.newest) << "it comes after the batches that it includes";
    EXPECT_GE(seen.claim_mark, heard_.seen.claim_mark);
    EXPECT_GE(seen.beat_mark, heard_.seen.beat_mark);
    heard_.seen = seen;
    ++heard_.calls;
  }

  std::unique_ptr<RealEnv> env_ = *RealEnv::create();
  CountingInbox inbox_{env_->loop()};
  TestDirectory local_;
  std::unique_ptr<EtcdServer> server_;
  std::unique_ptr<EtcdStore> writer_;
  StoreTerm term_ = StoreTerm::kNone;
  Heard heard_;
  std::unique_ptr<EtcdFollower> follower_;
};

TEST_F(EtcdFollowerTest, BatchesThatWereMissedAreAnnouncedBeforeTheyCome) {
  begin();
  for (std::uint64_t number = 1; number <= 5; ++number) append(number, "batch");
  follow(2);
  ASSERT_TRUE(wait_for_batch(5));
  EXPECT_EQ(ahead(), 5u);
  EXPECT_EQ(ahead_at(), 2u);
}

TEST_F(EtcdFollowerTest, FirstReportsWhatIsThereAndThenWhatComes) {
  begin();
  append(1, "one");
  append(2, "two");
  follow();
  ASSERT_TRUE(wait_for_batch(2));
  EXPECT_EQ(seen(), *writer().look());
  EXPECT_EQ(calls(), 1);
  EXPECT_EQ(texts(), 0);
  ASSERT_TRUE(writer().beat(term()));
  ASSERT_TRUE(wait([this] { return seen().beat_mark > 0; }));
  EXPECT_EQ(seen(), *writer().look());
  append(3, "three");
  ASSERT_TRUE(wait_for_batch(3));
  EXPECT_EQ(bytes(), "three");
  ASSERT_TRUE(writer().put_texts(term(), {{"a", "text"}}));
  EXPECT_TRUE(wait([this] { return texts() > 0; }));
  const auto other = *EtcdStore::open(server().location(), local("other"));
  ASSERT_TRUE(wait([&] { return seen() == *other->look(); }));
  const StorageResult<StoreTerm> term = other->claim_after(seen(), "other, for the test");
  ASSERT_TRUE(term) << term.error().text() << ": what was seen is enough to claim";
  ASSERT_TRUE(wait([this] { return seen().term == 2; }));
  EXPECT_EQ(seen(), *other->look());
  EXPECT_EQ(seen().writer, "other, for the test");
  EXPECT_TRUE(failures().empty());
}

TEST_F(EtcdFollowerTest, OfAnEmptyStoreReportsThatNothingWasSeen) {
  begin();
  follow(server().location("empty"));
  ASSERT_TRUE(wait([this] { return calls() == 1; }));
  EXPECT_EQ(seen(), WriterSeen());
}

TEST_F(EtcdFollowerTest, ABatchInPartsComesWhole) {
  begin();
  follow();
  const std::string large(std::size_t{3} << 20, 'x');
  append(1, large);
  append(2, "two");
  append(3, large + "3");
  ASSERT_TRUE(wait_for_batch(3));
  EXPECT_TRUE(bytes() == large + "3");
}

TEST_F(EtcdFollowerTest, ContinuesAfterTheBatchesThatItHas) {
  begin();
  for (std::uint64_t number = 1; number <= 5; ++number) append(number, "b");
  ASSERT_TRUE(writer().put_snapshot(term(), {3, "state"}));
  ASSERT_TRUE(writer().drop_covered(term(), 3));
  follow(3);
  ASSERT_TRUE(wait_for_batch(5));
  EXPECT_TRUE(failures().empty());
}

TEST_F(EtcdFollowerTest, EndsWhereTheNextBatchesWereDropped) {
  begin();
  for (std::uint64_t number = 1; number <= 5; ++number) append(number, "b");
  ASSERT_TRUE(writer().put_snapshot(term(), {3, "state"}));
  ASSERT_TRUE(writer().drop_covered(term(), 3));
  follow(2);
  ASSERT_TRUE(wait([this] { return !failures().empty(); }));
  EXPECT_EQ(failures()[0].failure, StorageFailure::kOther);
  EXPECT_NE(failures()[0].message.find("the batches after 2 were dropped, the oldest is 4"),
            std::string::npos)
      << failures()[0].message;
  EXPECT_EQ(newest(), 2u);
}

TEST_F(EtcdFollowerTest, EndsAtADamagedBatchAndNamesItsKey) {
  begin();
  append(1, "one");
  follow();
  ASSERT_TRUE(wait_for_batch(1));
  const auto client = EtcdClient::make(server().location());
  const std::string head = EtcdKeys(server().location().prefix()).batch(2).head;
  ASSERT_TRUE((*client)->txn(EtcdTxn().put(head, "garbage").request()));
  ASSERT_TRUE(wait([this] { return !failures().empty(); }));
  EXPECT_EQ(failures()[0].failure, StorageFailure::kOther);
  EXPECT_NE(failures()[0].message.find(head + " is damaged"), std::string::npos)
      << failures()[0].message;
}

TEST_F(EtcdFollowerTest, EndsWhereTheLogIsClosed) {
  begin();
  append(1, "one");
  follow();
  ASSERT_TRUE(wait_for_batch(1));
  const auto client = *EtcdClient::make(server().location());
  EtcdWriter writer(*client, 0);
  const WriterSeen seen = EtcdReader(*client).state()->seen;
  ASSERT_TRUE(writer.close(*writer.claim({.seen = seen, .writer = ""}), "/new/store"));
  ASSERT_TRUE(wait([this] { return !failures().empty(); }));
  EXPECT_NE(failures()[0].message.find("moved the log to /new/store"), std::string::npos)
      << failures()[0].message;
}

TEST_F(EtcdFollowerTest, AfterItsEndNothingCallsBack) {
  begin();
  append(1, "one");
  follow();
  ASSERT_TRUE(wait_for_batch(1));
  const int before = posted();
  append(2, "two");
  append(3, "three");
  while (posted() < before + 2) ::poll(nullptr, 0, 1);
  end_follower();  // while the loop has not run what was posted
  bool over = false;
  env().env().post([&over] { over = true; });
  ASSERT_TRUE(wait([&over] { return over; }));
  EXPECT_EQ(newest(), 1u);
}

TEST_F(EtcdFollowerTest, EndsWhereABatchIsMissing) {
  begin();
  append(1, "one");
  follow();
  ASSERT_TRUE(wait_for_batch(1));
  const auto client = EtcdClient::make(server().location());
  const std::string head = EtcdKeys(server().location().prefix()).batch(3).head;
  const std::string value = make_blob_head(head, "three", {}).SerializeAsString();
  ASSERT_TRUE((*client)->txn(EtcdTxn().put(head, value).request()));
  ASSERT_TRUE(wait([this] { return !failures().empty(); }));
  EXPECT_EQ(failures()[0].failure, StorageFailure::kOther) << failures()[0].message;
  EXPECT_NE(failures()[0].message.find("after 1 were dropped, the oldest is 3"), std::string::npos)
      << failures()[0].message;
  EXPECT_EQ(newest(), 1u);
}

TEST_F(EtcdFollowerTest, ReportsOnceThatEtcdIsSilentAndGoesOnAfterwards) {
  begin();
  append(1, "one");
  follow();
  ASSERT_TRUE(wait_for_batch(1));
  server().member(0).end();
  ASSERT_TRUE(wait([this] { return !failures().empty(); }));
  EXPECT_EQ(failures()[0].failure, StorageFailure::kUnavailable);
  server().member(0).start();
  append(2, "two");
  ASSERT_TRUE(wait_for_batch(2));
  EXPECT_EQ(failures().size(), 1u);
}

TEST_F(EtcdFollowerTest, AWatchThatFellSilentIsReplaced) {
  begin();
  const std::string address = server().address(0);
  TcpRelay relay(std::stoi(address.substr(address.rfind(':') + 1)));
  // Two ways to one member: the watch begins on the first.
  follow({.members = {fmt::format("127.0.0.1:{}", relay.port()), address}, .cluster = "test"});
  append(1, "one");
  ASSERT_TRUE(wait_for_batch(1));
  relay.set(TcpRelay::Answers::kSilent);
  append(2, "two");
  // gRPC itself gives a silent connection up after 20 s; the follower is not to wait for that.
  ASSERT_TRUE(wait_for_batch(2, Duration::seconds(15)));
  append(3, "three");
  ASSERT_TRUE(wait_for_batch(3));
  EXPECT_TRUE(failures().empty());
}

TEST_F(EtcdFollowerTest, SeesEveryBatchInOrderWhileMembersAreKilled) {
  begin(3);
  follow();
  constexpr std::uint64_t kBatches = 1'000;
  constexpr std::uint64_t kBetween = 150;
  int killed = -1;
  for (std::uint64_t number = 1; number <= kBatches; ++number) {
    append(number, std::to_string(number));
    ASSERT_FALSE(HasFatalFailure());
    // Each member is killed in its turn, so the leader is at least once.
    if (number % kBetween == 0) {
      if (killed >= 0) server().member(killed).start();
      if (killed >= 0) ASSERT_TRUE(server().answers(killed));
      killed = (killed + 1) % 3;
      server().member(killed).end();
    }
  }
  ASSERT_TRUE(wait_for_batch(kBatches));
  EXPECT_EQ(bytes(), std::to_string(kBatches));
  EXPECT_EQ(again([&] { return writer().extent(); })->newest, kBatches);
}

}  // namespace
}  // namespace orrery
