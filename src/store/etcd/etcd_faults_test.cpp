// What a log in etcd survives: answers that are lost, members that die, a full etcd, a wrong one.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>

#include "base/numbers/rng.hpp"
#include "store/etcd/etcd_server_test.hpp"
#include "store/etcd/tcp_relay_test.hpp"

namespace orrery {
namespace {

class EtcdFaults : public testing::Test {
 protected:
  void SetUp() override {
    if (!etcd_installed()) GTEST_SKIP() << "SKIPPED: " << kEtcdProgram << " is not installed";
  }
  std::unique_ptr<EtcdStore> open(const EtcdLocation& location, const std::string& machine = "m") {
    auto store = EtcdStore::open(location, local_.path(machine), {.snapshot_bytes_per_second = 0});
    EXPECT_TRUE(store) << (store ? "" : store.error().text());
    return store ? *std::move(store) : nullptr;
  }

 private:
  TestDirectory local_;
};

EtcdLocation through(const TcpRelay& relay) {
  return {.members = {fmt::format("127.0.0.1:{}", relay.port())}, .cluster = "test"};
}

int port_of(const EtcdServer& server) {
  const std::string address = server.address(0);
  return std::stoi(address.substr(address.rfind(':') + 1));
}

TEST_F(EtcdFaults, AClaimAndABatchWhoseAnswersWereLostAreTheWritersOwn) {
  EtcdServer server;
  TcpRelay relay(port_of(server));
  const auto store = open(through(relay));
  const auto beside = open(server.location(), "beside");
  relay.set(TcpRelay::Answers::kSilent);
  const StorageResult<StoreTerm> claim = store->claim_after({}, "w");
  ASSERT_FALSE(claim);
  EXPECT_EQ(claim.error().failure, StorageFailure::kUnavailable) << claim.error().text();
  EXPECT_EQ(beside->look()->writer, "w") << "etcd has the claim";
  relay.set(TcpRelay::Answers::kPass);
  const auto term = again([&] { return store->claim_after({}, "w"); });
  ASSERT_TRUE(term) << term.error().text();
  EXPECT_EQ(*term, StoreTerm{1});
  relay.set(TcpRelay::Answers::kSilent);
  const StorageStatus lost = store->append(*term, {1, "one"});
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().failure, StorageFailure::kUnavailable) << lost.error().text();
  EXPECT_EQ(beside->extent()->newest, 1u) << "etcd has the batch";
  relay.set(TcpRelay::Answers::kPass);
  EXPECT_TRUE(again([&] { return store->append(*term, {1, "one"}); }));
  EXPECT_TRUE(store->append(*term, {2, "two"}));
  EXPECT_EQ(beside->read(0, 1 << 20)->size(), 2u);
}

TEST_F(EtcdFaults, ARepeatedClaimIsNotTakenForThatOfAnother) {
  EtcdServer server;
  TcpRelay relay(port_of(server));
  const auto store = open(through(relay));
  const auto other = open(server.location(), "other");
  relay.set(TcpRelay::Answers::kSilent);
  ASSERT_FALSE(store->claim_after({}, "w"));
  ASSERT_TRUE(other->claim_after(*other->look(), "w")) << "after the claim that was lost";
  relay.set(TcpRelay::Answers::kPass);
  const auto late = again([&] { return store->claim_after({}, "w"); });
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().failure, StorageFailure::kSuperseded) << late.error().text();
}

/// One random write of a history, and what it adds to what has to be there in the end.
struct RandomHistory {
  Rng draw;
  std::map<std::uint64_t, std::string> batches = {};
  StoreTexts texts = {};
  std::string snapshot = {};
  std::uint64_t covers = 0;

  std::string bytes() {
    const std::size_t size =
        draw.below(4) == 0 ? kBlobHeadBytes + draw.below(1 << 20) : draw.below(5'000);
    return std::string(size, static_cast<char>('a' + draw.below(26)));
  }
  std::function<StorageStatus(EtcdStore&, StoreTerm)> next() {
    const std::uint64_t kind = draw.below(4);
    const std::uint64_t newest = batches.empty() ? 0 : batches.rbegin()->first;
    if (kind == 2) {
      texts["a"] = bytes();
      texts["b"] = bytes();
      return [all = texts](EtcdStore& store, StoreTerm term) { return store.put_texts(term, all); };
    }
    if (kind == 3 && newest > 0) {
      covers = newest;
      snapshot = bytes();
      return [put = Batch{covers, snapshot}](EtcdStore& store, StoreTerm term) {
        return store.put_snapshot(term, put);
      };
    }
    batches[newest + 1] = bytes();
    return [put = Batch{newest + 1, batches[newest + 1]}](EtcdStore& store, StoreTerm term) {
      return store.append(term, put);
    };
  }
};

TEST_F(EtcdFaults, RandomLossesOfAnswersLeaveOneResultOfEachCall) {
  constexpr std::uint64_t kSeed = 20261128;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  EtcdServer server;
  // Two ways to one member: a call whose answer is lost is repeated on the other.
  TcpRelay one(port_of(server));
  TcpRelay two(port_of(server));
  EtcdLocation ways = through(one);
  ways.members.push_back(through(two).members.front());
  const auto store = open(ways);
  const StoreTerm term = *store->claim();
  RandomHistory history{Rng(kSeed)};
  for (int i = 0; i < 30; ++i) {
    const auto call = history.next();
    for (TcpRelay* relay : {&one, &two}) {
      if (history.draw.below(2) == 0) relay->cut_after(history.draw.below(1'500));
    }
    StorageStatus status = call(*store, term);
    for (TcpRelay* relay : {&one, &two}) relay->set(TcpRelay::Answers::kPass);
    if (!status) status = again([&] { return call(*store, term); });
    ASSERT_TRUE(status) << i << ": " << status.error().text();
  }
  EXPECT_GT(one.lost() + two.lost(), 0u);
  for (const auto& [number, bytes] : history.batches) {
    const auto read = again([&] { return store->read(number - 1, 1); });
    ASSERT_TRUE(read && !read->empty());
    EXPECT_TRUE(read->front().bytes == bytes) << number;
  }
  EXPECT_TRUE(*store->texts() == history.texts);
  EXPECT_TRUE(*store->snapshot(history.covers) == history.snapshot);
  EXPECT_EQ(store->extent()->newest, history.batches.rbegin()->first);
  EXPECT_TRUE(store->check());
}

TEST_F(EtcdFaults, ABatchOfAnotherWriterUnderTheSameTermIsABug) {
  EtcdServer server;
  const auto store = open(server.location());
  const StoreTerm term = *store->claim();
  const EtcdKeys keys(server.location().prefix());
  const std::string head = keys.batch(1).head;
  const auto client = EtcdClient::make(server.location());
  ASSERT_TRUE(
      (*client)->txn(EtcdTxn()
                         .put(head, make_blob_head(head, "foreign", {.id = 1}).SerializeAsString())
                         .request()));
  const StorageStatus status = store->append(term, {1, "one"});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().failure, StorageFailure::kOther);
  EXPECT_NE(status.error().message.find("batch 1 is there already"), std::string::npos)
      << status.error().text();
}

TEST_F(EtcdFaults, AWriterNoticesThatEtcdWasRestoredFromABackup) {
  EtcdServer server;
  const auto store = open(server.location());
  const StoreTerm term = *store->claim();
  ASSERT_TRUE(store->beat(term)) << "a log without batches";
  ASSERT_TRUE(store->append(term, {1, "in the backup"}));
  ASSERT_TRUE(store->append(term, {2, "not in the backup"}));
  // A backup has the claim and the first batch.
  const auto client = EtcdClient::make(server.location());
  const EtcdKeys keys(server.location().prefix());
  EtcdTxn restored;
  restored.erase({keys.batch(2).head});
  ASSERT_TRUE((*client)->txn(restored.request()));
  for (const StorageStatus& status : {store->beat(term), store->append(term, {3, "a hole"}),
                                      store->put_texts(term, {{"name", "text"}})}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().failure, StorageFailure::kOther);
    EXPECT_NE(status.error().message.find("was restored from a backup: the key /orrery/test/log/"),
              std::string::npos)
        << status.error().message;
  }
  EXPECT_EQ(store->extent()->newest, 1u);
}

TEST_F(EtcdFaults, AWriterGoesOnAfterTheBatchesThatItsSnapshotCovers) {
  EtcdServer server;
  const auto store = open(server.location());
  StoreTerm term = *store->claim();
  ASSERT_TRUE(store->append(term, {1, "one"}));
  ASSERT_TRUE(store->put_snapshot(term, {1, "state"}));
  ASSERT_TRUE(store->drop_covered(term, 1));
  EXPECT_TRUE(store->beat(term));
  term = *store->claim();
  EXPECT_TRUE(store->beat(term));
  EXPECT_TRUE(store->append(term, {2, "two"}));
  EXPECT_TRUE(store->beat(term));
}

TEST_F(EtcdFaults, WithoutAnyMemberACallEndsAndTheWriterGoesOnLater) {
  EtcdServer server;
  const auto store = open(server.location());
  const StoreTerm term = *store->claim();
  ASSERT_TRUE(store->append(term, {1, "one"}));
  server.member(0).end();
  const StorageStatus status = store->append(term, {2, "two"});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().failure, StorageFailure::kUnavailable) << status.error().text();
  EXPECT_NE(status.error().message.find(server.address(0)), std::string::npos);
  server.member(0).start();
  const StorageStatus later = again([&] { return store->append(term, {2, "two"}); });
  EXPECT_TRUE(later) << later.error().text();
  EXPECT_EQ(store->read(0, 100)->size(), 2u);
}

// The cluster number of etcd stays the same, so only the revision shows it.
TEST_F(EtcdFaults, AWriterIsNotSilentForEverWhenEtcdIsRestoredUnderIt) {
  namespace fs = std::filesystem;
  EtcdServer server;
  const auto store = open(server.location());
  const StoreTerm term = *store->claim();
  ASSERT_TRUE(store->append(term, {1, "one"}));
  const std::string data = server.data(0);
  server.member(0).end();
  fs::copy(data, data + ".backup", fs::copy_options::recursive);
  server.member(0).start();
  for (std::uint64_t batch = 2; batch <= 9; ++batch) {
    ASSERT_TRUE(again([&] { return store->append(term, {batch, "more"}); }));
  }
  server.member(0).end();
  fs::remove_all(data);
  fs::rename(data + ".backup", data);
  server.member(0).start();
  const StorageStatus status = again([&] { return store->append(term, {10, "ten"}); });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().failure, StorageFailure::kOther) << status.error().text();
  EXPECT_NE(status.error().message.find("was restored from a backup. Stop all controllers"),
            std::string::npos)
      << status.error().text();
}

TEST_F(EtcdFaults, AStoppedMemberIsPassedOver) {
  EtcdServer server(3);
  const auto store = open(server.location());
  const StoreTerm term = *again([&] { return store->claim(); });
  std::uint64_t number = 0;
  for (int stopped = 0; stopped < 3; ++stopped) {
    server.member(stopped).signal(SIGSTOP);
    for (int i = 0; i < 10; ++i) {
      ++number;
      const StorageStatus status =
          again([&] { return store->append(term, {number, std::to_string(number)}); });
      ASSERT_TRUE(status) << status.error().text();
    }
    server.member(stopped).signal(SIGCONT);
  }
  EXPECT_TRUE(again([&] { return store->check(); }));
  EXPECT_EQ(again([&] { return store->extent(); })->newest, number);
}

TEST_F(EtcdFaults, AFullEtcdRefusesAndKeepsWhatItHas) {
  EtcdServer server(1, {"--quota-backend-bytes=16777216"});
  const auto store = open(server.location());
  const StoreTerm term = *store->claim();
  const std::string large(std::size_t{1} << 20, 'x');
  StorageStatus status;
  std::uint64_t number = 0;
  while (status && number < 64) {
    ++number;
    status = again([&] { return store->append(term, {number, large}); });
  }
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().failure, StorageFailure::kFull) << status.error().text();
  EXPECT_EQ(store->append(term, {number, large}).error().failure, StorageFailure::kFull);
  EXPECT_EQ(store->extent()->newest, number - 1) << "the store is unchanged";
  // etcd refuses small writes, too, from the moment on at which it has raised its alarm.
  StorageStatus beat;
  for (int tries = 0; tries < 1'000 && beat; ++tries) beat = store->beat(term);
  ASSERT_FALSE(beat);
  EXPECT_EQ(beat.error().failure, StorageFailure::kFull) << beat.error().text();
  EXPECT_TRUE(store->check());
}

TEST_F(EtcdFaults, MembersOfTwoEtcdClustersAreNoticed) {
  EtcdServer one;
  EtcdServer other;
  EtcdLocation both = one.location();
  both.members.push_back(other.address(0));
  const auto store = open(both);
  const StoreTerm term = *store->claim();
  one.member(0).end();
  const StorageStatus status = again([&] { return store->append(term, {1, "one"}); });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().failure, StorageFailure::kOther);
  EXPECT_NE(status.error().message.find("another etcd cluster"), std::string::npos)
      << status.error().text();
}

TEST_F(EtcdFaults, AFileForTlsThatIsMissingIsNamed) {
  const auto store = EtcdStore::open(
      {.members = {"127.0.0.1:1"}, .cluster = "test", .authority_file = "no/such/ca.pem"}, "x");
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().message.find("no/such/ca.pem"), std::string::npos);
}

}  // namespace
}  // namespace orrery
