#include "store/transfer/log_copy.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "store/etcd/etcd_server_test.hpp"
#include "store/etcd/store_url.hpp"
#include "store/transfer/written_log_test.hpp"

namespace orrery {
namespace {

class LogCopyTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!etcd_installed()) GTEST_SKIP() << "SKIPPED: " << kEtcdProgram << " is not installed";
    server_ = std::make_unique<EtcdServer>();
  }
  [[nodiscard]] std::string path(const std::string& name) const { return files_.path(name); }
  [[nodiscard]] std::string url(const std::string& cluster) const {
    return server_->location(cluster).text();
  }
  /// Copies with the archive and mark of a log in etcd in the directory `state`.
  Result<CopiedLog> copy(const std::string& from, const std::string& to,
                         const std::string& state = "state") {
    Result<CopySource> source = open_copy_source({from, path(state), Duration()});
    if (!source) return forward_error(source);
    Result<CopyPlan> plan = plan_copy(*source->log);
    if (!plan) return forward_error(plan);
    plan_ = *plan;
    auto target = open_copy_target(to, path(state));
    if (!target) return forward_error(target);
    return copy_log(*source, *plan, **target, [](const std::string& name) { return name != "x"; });
  }
  [[nodiscard]] static VerifiedHistory verified(const std::string& url) {
    auto log = open_store_to_read(url);
    EXPECT_TRUE(log) << log.error().text();
    HistoryResult<VerifiedHistory> history = verify_history(**log);
    EXPECT_TRUE(history) << history.error().text();
    return history ? *history : VerifiedHistory{};
  }
  [[nodiscard]] const CopyPlan& plan() const { return plan_; }
  /// A log in "from" with all that can be copied; its first batches were dropped.
  void write_source() const {
    auto store = SqliteStore::open(path("from"));
    ASSERT_TRUE(store) << store.error().text();
    WrittenLog log(**store);
    for (int i = 0; i < 3; ++i) log.append();
    log.put_snapshot();
    for (int i = 0; i < 2; ++i) log.append();
    ASSERT_TRUE((*store)->put_snapshot(log.term(), {4, "no snapshot"}));
    log.put_snapshot();
    log.append(7);
    ASSERT_TRUE((*store)->drop_covered(log.term(), 3));
    StoreTexts texts{{"x", "stays"}};
    for (int i = 0; i < 50; ++i) texts.emplace(fmt::format("text{}", i), std::string(40'000, 't'));
    ASSERT_TRUE((*store)->put_texts(log.term(), texts));
    ASSERT_TRUE((*store)->put_archived(log.term(), {{5, "five"}, {2, "two"}}));
  }

 private:
  TestDirectory files_;
  std::unique_ptr<EtcdServer> server_;
  CopyPlan plan_;
};

TEST_F(LogCopyTest, ADirectoryGoesIntoEtcdAndBackWithItsHistory) {
  write_source();
  const Result<CopiedLog> there = copy(path("from"), url("there"));
  ASSERT_TRUE(there) << there.error().text();
  EXPECT_EQ(there->batches, 3u);
  EXPECT_EQ(there->archived, 2u);
  EXPECT_EQ(there->next_job, 7u);
  EXPECT_GT(there->term, read_high_water(path("from"))->value().term);
  ASSERT_EQ(plan().passed_over.size(), 1u);
  EXPECT_NE(plan().passed_over[0].find("the snapshot up to batch 4: expected the head"),
            std::string::npos);
  const VerifiedHistory in_etcd = verified(url("there"));
  EXPECT_EQ(in_etcd.history_hash, plan().history_hash);
  EXPECT_EQ(in_etcd.extent, (StoreExtent{.oldest = 4, .newest = 6}));
  EXPECT_EQ(in_etcd.snapshots, (std::vector<std::uint64_t>{5, 3}));

  const Result<CopiedLog> back = copy(url("there"), path("back"));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_GT(back->term, there->term);
  EXPECT_EQ(verified(path("back")).history_hash, in_etcd.history_hash);
  auto first = *SqliteStore::open_as_it_is(path("from"));
  auto last = *SqliteStore::open(path("back"));
  EXPECT_EQ(*last->archived(100, 10), *first->archived(100, 10));
  EXPECT_EQ(last->marked_next_job(), 7u);
  StoreTexts texts = *first->texts();
  texts.erase("x");
  EXPECT_EQ(*last->texts(), texts);
  const auto before = *first->read(0, std::size_t{1} << 20);
  const auto after = *last->read(0, std::size_t{1} << 20);
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_EQ(after[i].bytes, before[i].bytes);
}

TEST_F(LogCopyTest, AControllerOpensACopyInEtcdAndGoesOn) {
  write_source();
  const Result<CopiedLog> copied = copy(path("from"), url("there"));
  ASSERT_TRUE(copied) << copied.error().text();
  auto store = open_store(url("there"), path("state/store"));
  ASSERT_TRUE(store) << store.error().text();
  EXPECT_EQ((*store)->marked_next_job(), 7u);
  const StoreTerm term = *(*store)->claim();
  EXPECT_GT(static_cast<std::uint64_t>(term), copied->term);
  EXPECT_TRUE((*store)->append(term, {7, "seven"}));
  EXPECT_EQ((*store)->archived(100, 10)->size(), 2u);
}

TEST_F(LogCopyTest, ALogOfOneSnapshotBeginsWithIt) {
  {
    auto store = *SqliteStore::open(path("from"));
    WrittenLog log(*store);
    log.append();
    log.append();
    log.put_snapshot();
    ASSERT_TRUE(store->drop_covered(log.term(), 2));
  }
  for (const std::string& to : {url("there"), path("to")}) {
    const Result<CopiedLog> copied = copy(path("from"), to);
    ASSERT_TRUE(copied) << copied.error().text();
    EXPECT_EQ(copied->batches, 0u);
    EXPECT_EQ(verified(to).extent, (StoreExtent{.oldest = 3, .newest = 2}));
    EXPECT_EQ(verified(to).history_hash, plan().history_hash);
  }
}

TEST_F(LogCopyTest, NothingOfAnotherLogIsReplaced) {
  write_source();
  ASSERT_TRUE(copy(path("from"), url("there")));
  const Result<CopiedLog> again = copy(path("from"), url("there"), "other");
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("choose another CLUSTER in the URL, or a directory"),
            std::string::npos)
      << again.error().text();
  EXPECT_EQ(again.error().message.find("etcdctl del"), std::string::npos);
  const Result<CopiedLog> followed = copy(path("from"), url("elsewhere"));
  ASSERT_FALSE(followed);
  EXPECT_NE(followed.error().message.find("/state/store/archive: belongs to a log in etcd"),
            std::string::npos)
      << followed.error().text();
  const Result<CopiedLog> directory = copy(url("there"), path("from"));
  ASSERT_FALSE(directory);
  EXPECT_NE(directory.error().message.find("is there already"), std::string::npos);
  EXPECT_EQ((*open_store_to_read(path("from")))->extent()->newest, 6u);
}

TEST_F(LogCopyTest, ALogThatIsDamagedOrWrittenOrMissingIsNotCopied) {
  write_source();
  for (const std::string& none : {path("none"), url("none")}) {
    const Result<CopiedLog> missing = copy(none, path("to"));
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().kind, ErrorKind::kInput) << missing.error().text();
  }
  {
    const auto writer = *SqliteStore::open(path("from"));
    const Result<CopiedLog> written = copy(path("from"), path("to"));
    ASSERT_FALSE(written);
    EXPECT_NE(written.error().message.find("writes this store"), std::string::npos);
    const StoreTerm term = *writer->claim();
    ASSERT_TRUE(writer->append(term, {7, "no record"}));
  }
  const Result<CopiedLog> damaged = copy(path("from"), path("to"));
  ASSERT_FALSE(damaged);
  EXPECT_NE(damaged.error().message.find("batch 7"), std::string::npos) << damaged.error().text();
  EXPECT_FALSE(std::filesystem::exists(path("to"))) << "nothing was written";
}

TEST_F(LogCopyTest, WhatIsWrittenMeanwhileIsNotQuiet) {
  write_source();
  ASSERT_TRUE(copy(path("from"), url("there")));
  auto store = *open_store(url("there"), path("state/store"));
  const StoreTerm term = *store->claim();
  const auto client = *EtcdClient::make(*parse_etcd_location(url("there")));
  EtcdReader reader(*client);
  const WriterSeen seen = reader.state()->seen;
  EXPECT_TRUE(watch_quiet(reader, seen, Duration::milliseconds(1)));
  ASSERT_TRUE(store->beat(term));
  const Status written = watch_quiet(reader, seen, Duration());
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, ErrorKind::kInfeasible);
  EXPECT_NE(written.error().message.find("stop every controller"), std::string::npos);
}

TEST_F(LogCopyTest, ASourceThatWasWrittenMeanwhileStaysOpen) {
  write_source();
  ASSERT_TRUE(copy(path("from"), url("there")));
  const EtcdLocation location = *parse_etcd_location(url("there"));
  auto store = *open_store(url("there"), path("state/store"));
  const StoreTerm term = *store->claim();
  const Result<CopySource> source = open_copy_source({url("there"), path("state"), Duration()});
  ASSERT_TRUE(source) << source.error().text();
  ASSERT_TRUE(store->beat(term));
  const Status closed = close_source(location, *source, "/new");
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().kind, ErrorKind::kInfeasible);
  EXPECT_NE(closed.error().message.find("was written while it was copied"), std::string::npos);
  EXPECT_TRUE(store->beat(term));
}

TEST_F(LogCopyTest, BothTargetsBeginOnceWithASnapshotAndATermOfTheirOwn) {
  for (const std::string& to : {url("new"), path("new")}) {
    auto target = *open_copy_target(to, path("state"));
    const StoreTerm term = *target->claim_above(41);
    EXPECT_EQ(term, static_cast<StoreTerm>(42));
    EXPECT_FALSE(target->begin_at(StoreTerm::kNone, {5, "no writer's"}));
    ASSERT_TRUE(target->begin_at(term, {5, "five"}));
    EXPECT_FALSE(target->begin_at(term, {6, "once more"}));
    EXPECT_EQ(*target->store().extent(), (StoreExtent{.oldest = 6, .newest = 5}));
    EXPECT_FALSE(target->store().append(term, {1, "one"}));
    ASSERT_TRUE(target->store().append(term, {6, "six"}));
    ASSERT_TRUE(target->finish({.batch = 6, .term = 42, .next_job = 3}));
    auto store = open_store(to, path("state/store"));
    ASSERT_TRUE(store) << store.error().text();
    EXPECT_EQ((*store)->marked_next_job(), 3u);
    EXPECT_EQ(*(*store)->claim(), static_cast<StoreTerm>(43));
    EXPECT_EQ(*(*store)->snapshot(5), "five");
  }
}

}  // namespace
}  // namespace orrery
