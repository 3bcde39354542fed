// What a log in etcd guarantees beyond the contract of all stores (store/store_contract_test.cpp).
#include "store/etcd/etcd_store.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "store/etcd/etcd_server_test.hpp"
#include "store/etcd/store_url.hpp"

namespace orrery {
namespace {

class EtcdStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!etcd_installed()) GTEST_SKIP() << "SKIPPED: " << kEtcdProgram << " is not installed";
    server_ = std::make_unique<EtcdServer>();
    client_ = *EtcdClient::make(server_->location());
  }
  /// Opens the log as the machine of this name.
  std::unique_ptr<EtcdStore> open(const std::string& machine = "one") {
    auto store = EtcdStore::open(server_->location(), local_.path(machine),
                                 {.snapshot_bytes_per_second = 0});
    EXPECT_TRUE(store) << (store ? "" : store.error().text());
    return store ? *std::move(store) : nullptr;
  }
  [[nodiscard]] std::string refusal(const std::string& machine = "one") {
    const auto store = EtcdStore::open(server_->location(), local_.path(machine));
    return store ? "" : store.error().message;
  }
  [[nodiscard]] std::string value(const std::string& key) {
    return client_->range(range_request({key}))->kvs(0).value();
  }
  void put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(client_->txn(EtcdTxn().put(key, value).request()));
  }
  void erase(const EtcdKeyRange& keys) {
    ASSERT_TRUE(client_->txn(EtcdTxn().erase(keys).request()));
  }
  [[nodiscard]] int count(const std::string& prefix) {
    return client_->range(range_request(keys_under(keys_.prefix() + prefix)))->kvs_size();
  }
  [[nodiscard]] const EtcdKeys& keys() const { return keys_; }
  [[nodiscard]] EtcdServer& server() { return *server_; }
  [[nodiscard]] std::string local(const std::string& machine) const { return local_.path(machine); }

 private:
  std::unique_ptr<EtcdServer> server_;
  std::unique_ptr<EtcdClient> client_;
  TestDirectory local_;
  EtcdKeys keys_{"/orrery/test/"};
};

/// Expects a failure of this kind whose message has these words.
template <class T>
void expect_failure(const StorageResult<T>& result, StorageFailure failure,
                    const std::string& words) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().failure, failure) << result.error().message;
  EXPECT_NE(result.error().message.find(words), std::string::npos) << result.error().message;
}

/// Waits until a survey has ended with this result, at most for a minute.
void expect_bytes(const EtcdStore& store, std::uint64_t bytes) {
  const Instant late = RealClock().now_monotonic() + Duration::minutes(1);
  while (store.held_bytes() != bytes && RealClock().now_monotonic() < late) {
    std::this_thread::yield();
  }
  EXPECT_EQ(store.held_bytes(), bytes);
}

TEST_F(EtcdStoreTest, TheBytesOfTheLogAreThoseThatTheWriterWroteAndFound) {
  constexpr std::size_t kLarge = 3 << 20;  // it stands in parts
  const auto first = open("first");
  EXPECT_EQ(first->held_bytes(), 0u) << "nothing was claimed";
  const StoreTerm term = *first->claim();
  ASSERT_TRUE(first->put_texts(term, {{"policy", std::string(100, 'p')}}));
  for (std::uint64_t number = 1; number <= 40; ++number) {
    ASSERT_TRUE(first->append(term, {number, std::string(1'000, 'b')}));
  }
  ASSERT_TRUE(first->put_snapshot(term, {40, std::string(kLarge, 's')}));
  EXPECT_EQ(first->held_bytes(), 100u + 40'000u + kLarge);
  const auto second = open("second");
  const StoreTerm next = *second->claim();
  expect_bytes(*second, 100u + 40'000u + kLarge);
  ASSERT_TRUE(second->append(next, {41, std::string(500, 'b')}));
  ASSERT_TRUE(second->drop_covered(next, 40));
  EXPECT_EQ(second->held_bytes(), 100u + 500u + kLarge);
}

TEST_F(EtcdStoreTest, OfTwoClaimsAfterTheSameSightOneWins) {
  const auto writer = open("writer");
  ASSERT_TRUE(writer->append(*writer->claim(), {1, "one"}));
  const auto a = open("a");
  const auto b = open("b");
  const WriterSeen seen = *a->look();
  EXPECT_EQ(seen.newest, 1u);
  EXPECT_EQ(*b->look(), seen);
  const StorageResult<StoreTerm> term = b->claim_after(seen, "b, for the test");
  ASSERT_TRUE(term) << term.error().text();
  EXPECT_EQ(*term, StoreTerm{2});
  expect_failure(a->claim_after(seen, "a"), StorageFailure::kSuperseded, "a writer has written");
  EXPECT_EQ(a->look()->writer, "b, for the test");
  EXPECT_TRUE(b->append(*term, {2, "two"}));
}

TEST_F(EtcdStoreTest, AClaimFailsAfterABeatABatchATextAndASnapshot) {
  const auto writer = open("writer");
  const StoreTerm term = *writer->claim();
  const auto standby = open("standby");
  const auto fails_after = [&](const char* what, const StorageStatus& written,
                               const WriterSeen& seen) {
    EXPECT_TRUE(written) << what << ": " << written.error().text();
    EXPECT_EQ(standby->claim_after(seen, "s").error().failure, StorageFailure::kSuperseded) << what;
  };
  WriterSeen seen = *standby->look();
  fails_after("beat", writer->beat(term), seen);
  seen = *standby->look();
  fails_after("batch", writer->append(term, {1, "one"}), seen);
  seen = *standby->look();
  const std::string large(3 * kBlobPartBytes, 's');
  fails_after("snapshot", writer->put_snapshot(term, {1, large}), seen);
  seen = *standby->look();
  fails_after("small snapshot", writer->put_snapshot(term, {1, "small"}), seen);
  seen = *standby->look();
  fails_after("text", writer->put_texts(term, {{"policy", "fifo"}}), seen);
  EXPECT_TRUE(standby->claim_after(*standby->look(), "s"));
}

TEST_F(EtcdStoreTest, AClaimSaysHowLongItsWriterSpeaks) {
  const auto writer =
      EtcdStore::open(server().location(), local("writer"), {.speaks_for = Duration::seconds(5)});
  ASSERT_TRUE(writer) << writer.error().text();
  EXPECT_EQ((*writer)->traits().speaks_for, Duration::seconds(5));
  ASSERT_TRUE((*writer)->claim());
  EXPECT_EQ(open("standby")->look()->speaks_for, Duration::seconds(5));
  put(keys().term(), R"({"term": 1, "writer": "", "nonce": "0000000000000001"})");
  EXPECT_EQ((*writer)->look()->speaks_for, Duration()) << "an older release does not say it";
}

TEST_F(EtcdStoreTest, AWriterThatAnotherMachineSupersededChangesNothing) {
  const auto old = open("old");
  const StoreTerm term = *old->claim();
  ASSERT_TRUE(old->append(term, {1, "one"}));
  ASSERT_TRUE(old->put_snapshot(term, {1, "state"}));
  const auto writer = open("new");
  const StoreTerm newer = *writer->claim_after(*writer->look(), "new");
  const std::string words = "the writer of term 1 may write no more: term 2 was claimed";
  expect_failure(old->append(term, {2, "late"}), StorageFailure::kSuperseded, words);
  expect_failure(old->append(term, {2, std::string(kBlobHeadBytes + 1, 'l')}),
                 StorageFailure::kSuperseded, words);
  expect_failure(old->beat(term), StorageFailure::kSuperseded, words);
  expect_failure(old->put_snapshot(term, {1, "late"}), StorageFailure::kSuperseded, words);
  expect_failure(old->put_texts(term, {{"a", "late"}}), StorageFailure::kSuperseded, words);
  expect_failure(old->drop_covered(term, 1), StorageFailure::kSuperseded, words);
  ASSERT_TRUE(writer->append(newer, {2, "two"}));
  EXPECT_EQ(writer->read(0, 100)->size(), 2u);
  EXPECT_EQ(*writer->snapshot(1), "state");
  EXPECT_TRUE(writer->texts()->empty());
  EXPECT_EQ(count("part/"), 0);
  // A term that is written beside Orrery ends the writer, too.
  put(keys().term(), EtcdClaim{2, "", 0}.json());
  expect_failure(writer->beat(newer), StorageFailure::kSuperseded, "by another program");
}

TEST_F(EtcdStoreTest, LargeTextsAreReplacedWhole) {
  const auto store = open();
  const StoreTerm term = *store->claim();
  StoreTexts texts{{"fleet.yaml", std::string(std::size_t{8} << 20, 'f')},
                   {"policy.yaml", std::string(kBlobHeadBytes, 'p')},
                   {"tenants/a", "small"}};
  ASSERT_TRUE(store->put_texts(term, texts));
  // The heads of one call have room for policy.yaml, and then for nothing else.
  EXPECT_EQ(count("part/text/"), 16 + 1);
  EXPECT_TRUE(*open("two")->texts() == texts);
  texts["fleet.yaml"] = std::string((std::size_t{1} << 20) + 7, 'g');
  ASSERT_TRUE(store->put_texts(term, {{"fleet.yaml", texts["fleet.yaml"]}}));
  EXPECT_TRUE(*store->texts() == texts);
  EXPECT_EQ(count("part/text/"), 3 + 1);
  texts["fleet.yaml"] = "f";
  texts["policy.yaml"] = "";
  ASSERT_TRUE(store->put_texts(term, texts));
  EXPECT_TRUE(*store->texts() == texts);
  EXPECT_EQ(count("part/"), 0);
}

TEST_F(EtcdStoreTest, LargeSnapshotsAreReplacedAndDropped) {
  const auto store = open();
  const StoreTerm term = *store->claim();
  const std::string large(std::size_t{20} << 20, 's');
  for (const std::uint64_t number : {1u, 2u, 3u}) ASSERT_TRUE(store->append(term, {number, "b"}));
  ASSERT_TRUE(store->put_snapshot(term, {1, large}));
  ASSERT_TRUE(store->put_snapshot(term, {2, "old"}));
  ASSERT_TRUE(store->put_snapshot(term, {2, large + "2"}));
  EXPECT_TRUE(*store->snapshot(1) == large);
  EXPECT_TRUE(*store->snapshot(2) == large + "2");
  EXPECT_TRUE(store->check());
  ASSERT_TRUE(store->drop_covered(term, 2));
  EXPECT_EQ(count("part/snap/"), 41);
  EXPECT_TRUE(*store->snapshot(2) == large + "2");
  EXPECT_TRUE(store->drop_covered(term, 2)) << "a repeated call has the result of one";
  EXPECT_EQ(*store->extent(), (StoreExtent{.oldest = 3, .newest = 3}));
  EXPECT_TRUE(store->shrink());
}

TEST_F(EtcdStoreTest, ASnapshotOnASecondThreadLeavesRoomForBatches) {
  const auto store = *EtcdStore::open(server().location(), local("paced"),
                                      {.snapshot_bytes_per_second = std::uint64_t{16} << 20});
  const StoreTerm term = *store->claim();
  ASSERT_TRUE(store->append(term, {1, "one"}));
  const std::string large(std::size_t{4} << 20, 's');
  std::atomic<bool> done = false;
  StorageStatus put;
  std::jthread beside([&] {
    put = store->put_snapshot(term, {1, large});
    done = true;
  });
  std::uint64_t number = 1;
  while (!done) {
    ASSERT_TRUE(store->append(term, {++number, "b"}));
    ASSERT_TRUE(store->beat(term));
  }
  beside.join();
  ASSERT_TRUE(put) << put.error().text();
  EXPECT_GT(number, 8u) << "a batch for each part at least";
  EXPECT_TRUE(*store->snapshot(1) == large);
  EXPECT_EQ(store->extent()->newest, number);
}

TEST_F(EtcdStoreTest, AClaimRemovesPartsThatNoHeadNames) {
  {
    const auto store = open();
    const StoreTerm term = *store->claim();
    ASSERT_TRUE(store->append(term, {1, std::string(std::size_t{2} << 20, 'b')}));
    ASSERT_TRUE(store->put_snapshot(term, {1, std::string(std::size_t{2} << 20, 's')}));
  }
  put(keys().batch(2).part(7, 0), "left");
  put(keys().snapshot(0).part(7, 0), "left");
  put(keys().snapshot(2).part(7, 0), "left");
  const auto store = open();
  ASSERT_TRUE(store->claim());
  EXPECT_EQ(count("part/log/"), 4);
  EXPECT_EQ(count("part/snap/"), 4);
  EXPECT_TRUE(store->check());
}

TEST_F(EtcdStoreTest, ManyBatchesAreReadAndDroppedInOrder) {
  const auto store = open();
  const StoreTerm term = *store->claim();
  constexpr std::uint64_t kBatches = 2'100;  // more than one transaction drops
  for (std::uint64_t number = 1; number <= kBatches; ++number) {
    ASSERT_TRUE(store->append(term, {number, std::to_string(number), number + 1}));
  }
  std::uint64_t after = 0;
  while (after < kBatches) {
    const auto some = store->read(after, std::size_t{1} << 20);
    ASSERT_TRUE(some && !some->empty());
    for (const Batch& each : *some) {
      ASSERT_EQ(each.number, ++after);
      ASSERT_EQ(each.bytes, std::to_string(after));
      ASSERT_EQ(each.next_job, after + 1);
    }
  }
  ASSERT_TRUE(store->put_snapshot(term, {kBatches - 1, "state"}));
  ASSERT_TRUE(store->drop_covered(term, kBatches - 1));
  EXPECT_EQ(count("log/"), 1);
  EXPECT_EQ(store->read(0, 1)->front().number, kBatches) << "a caller sees what is missing";
}

TEST_F(EtcdStoreTest, ALogThatLacksWhatThisMachineWroteIsRefused) {
  {
    const auto store = open();
    const StoreTerm term = *store->claim();
    for (const std::uint64_t number : {1u, 2u, 3u}) {
      ASSERT_TRUE(store->append(term, {number, "b", 40 + number}));
    }
  }
  EXPECT_EQ(open()->marked_next_job(), 43u);
  erase({keys().batch(3).head});
  EXPECT_NE(refusal().find("was restored from a backup, or is another store: its newest batch is 2 "
                           "of term 1, and this machine has seen batch 3"),
            std::string::npos)
      << refusal();
  EXPECT_TRUE(open("another")) << "a machine that has seen nothing has nothing to compare";
  erase(keys_under(keys().prefix()));
  EXPECT_NE(refusal().find("there is no log here, and this machine has seen batch 3 and term 1"),
            std::string::npos)
      << refusal();
  EXPECT_NE(refusal().find("`etcdctl snapshot restore`"), std::string::npos) << refusal();
}

TEST_F(EtcdStoreTest, AClosedLogIsReadButOpenedAndClaimedByNobody) {
  const auto former = open();
  const StoreTerm before = *former->claim();
  ASSERT_TRUE(former->append(before, {1, "one"}));
  const auto standby = open("standby");
  const auto client = *EtcdClient::make(server().location());
  EtcdReader reader(*client);
  EtcdWriter writer(*client, 0);
  const StoreTerm term = *writer.claim({.seen = reader.state()->seen, .writer = ""});
  ASSERT_TRUE(writer.close(term, "etcd://host:1/new"));
  ASSERT_TRUE(writer.close(term, "etcd://host:1/new")) << "the answer to the first may be lost";
  expect_failure(former->append(before, {2, "two"}), StorageFailure::kSuperseded, "");
  expect_failure(standby->claim(), StorageFailure::kOther, "is closed");
  expect_failure(standby->claim_after(*standby->look(), "w"), StorageFailure::kSuperseded, "");
  EXPECT_NE(refusal("new machine").find("start the controllers with --store 'etcd://host:1/new'"),
            std::string::npos)
      << refusal("new machine");
  EXPECT_EQ((*EtcdStore::open_to_read(server().location()))->extent()->newest, 1u);
  put(keys().format(), "1");
  EXPECT_TRUE(standby->claim()) << "the remedy that the refusal names";
}

TEST_F(EtcdStoreTest, AClaimAlsoChecksWhatThisMachineWrote) {
  const auto store = open();
  ASSERT_TRUE(store->append(*store->claim(), {1, "one"}));
  const WriterSeen seen = *store->look();
  erase({keys().batch(1).head});
  expect_failure(store->claim(), StorageFailure::kOther, "was restored from a backup");
  WriterSeen before = seen;
  before.newest = 0;
  expect_failure(store->claim_after(before, "w"), StorageFailure::kOther,
                 "was restored from a backup");
}

TEST_F(EtcdStoreTest, ANewerLayoutIsRefused) {
  ASSERT_TRUE(open()->claim());
  EXPECT_EQ(value(keys().format()), "1");
  put(keys().format(), "2");
  EXPECT_NE(refusal().find("the log has the layout \"2\", this program reads layout 1"),
            std::string::npos)
      << refusal();
  EXPECT_FALSE(EtcdStore::open_to_read(server().location()));
}

TEST_F(EtcdStoreTest, DamageNamesTheKey) {
  const auto store = open();
  const StoreTerm term = *store->claim();
  ASSERT_TRUE(store->append(term, {1, "one"}));
  ASSERT_TRUE(store->append(term, {2, std::string(std::size_t{2} << 20, 'b')}));
  ASSERT_TRUE(store->put_texts(term, {{"a", "text"}}));
  const std::string head = keys().batch(1).head;
  const std::string good = value(head);
  const auto says = [&](const std::string& words) {
    expect_failure(store->check(), StorageFailure::kOther, words);
  };
  put(head, "\xff\xff");
  says("/orrery/test/log/0000000000000001 is damaged: its 2 bytes are no head of Orrery");
  std::string flipped = good;
  flipped.back() ^= 1;
  put(head, flipped);
  says("log/0000000000000001 is damaged: the XXH3 of its 3 bytes is");
  put(head, value(keys().text("a").head));
  says("log/0000000000000001 is damaged: the XXH3 of its 4 bytes is");
  put(head, good);
  EXPECT_TRUE(store->check());
  const EtcdKeyRange parts = keys_under(keys().batch(2).parts);
  const std::string part = [&] {
    const auto client = EtcdClient::make(server().location());
    return (*client)->range(range_request(parts))->kvs(1).key();
  }();
  put(part, "short");
  says(part + " is damaged: has 5 bytes, expected 524288");
  erase({part});
  says(part + " is damaged: is missing, expected 524288 bytes");
  put(keys().term(), "{}");
  says("/orrery/test/term is damaged: expected a claim");
}

TEST_F(EtcdStoreTest, AHeadThatNamesMoreThanFitsIntoMemoryIsDamage) {
  const auto store = open();
  ASSERT_TRUE(store->append(*store->claim(), {1, "one"}));
  etcd::BlobHead head;
  head.set_parts(~std::uint32_t{0});
  head.set_length(std::uint64_t{head.parts()} * kBlobPartBytes);
  put(keys().batch(1).head, head.SerializeAsString());
  expect_failure(store->read(0, 1), StorageFailure::kOther, "is missing, expected 524288 bytes");
}

TEST_F(EtcdStoreTest, AMissingBatchIsFoundByTheCheckAndByTheClaim) {
  const auto store = open();
  const StoreTerm term = *store->claim();
  for (const std::uint64_t number : {1u, 2u, 3u}) ASSERT_TRUE(store->append(term, {number, "b"}));
  erase({keys().batch(2).head});
  expect_failure(store->check(), StorageFailure::kOther, "batch 2 is missing");
  EXPECT_FALSE(open("another")->claim());
}

TEST_F(EtcdStoreTest, ReadersNeedALogAndNoDirectory) {
  const EtcdLocation there = server().location();
  expect_failure(EtcdStore::open_to_read(there), StorageFailure::kNotFound, "no log here");
  const auto store = open();
  const StoreTerm term = *store->claim();
  ASSERT_TRUE(store->append(term, {1, "one"}));
  ASSERT_TRUE(store->put_archived(term, {{5, "five"}}));
  const auto reader = EtcdStore::open_to_read(there);
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_EQ((*reader)->read(0, 10)->front().bytes, "one");
  EXPECT_TRUE((*reader)->archived(100, 10)->empty());
  EXPECT_TRUE((*reader)->check());
  const auto archive = SqliteStore::open_to_read(local("one") + "/archive");
  ASSERT_TRUE(archive) << archive.error().text();
  EXPECT_EQ((*archive)->archived(100, 10)->front().bytes, "five");
  // Each of Orrery's clusters has its own log in one etcd.
  EXPECT_FALSE(EtcdStore::open_to_read(server().location("other")));
}

TEST_F(EtcdStoreTest, AUrlNamesTheBackend) {
  const auto in_etcd = open_store(server().location().text(), local("url"));
  ASSERT_TRUE(in_etcd) << in_etcd.error().text();
  EXPECT_EQ((*in_etcd)->name(), server().location().text());
  EXPECT_EQ((*in_etcd)->traits().beat_every, Duration::milliseconds(500));
  const auto plain = open_store(local("plain"), "");
  ASSERT_TRUE(plain) << plain.error().text();
  EXPECT_EQ((*plain)->traits().beat_every, Duration::max());
  EXPECT_TRUE(open_store("sqlite:" + local("named"), ""));
  expect_failure(open_store("etcd://nowhere", local("url2")), StorageFailure::kOther,
                 "is no HOST:PORT");
}

}  // namespace
}  // namespace orrery
