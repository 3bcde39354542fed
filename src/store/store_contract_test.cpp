// The guarantees of every backend (store/store.hpp); a new backend is added at the end of this
// file.
#include <gtest/gtest.h>

#include "store/backend_test.hpp"
#include "store/etcd/etcd_server_test.hpp"

namespace orrery {
namespace {

struct NamedBackend {
  const char* name;
  std::unique_ptr<TestBackend> (*make)();  ///< null: the machine lacks what it needs
};

void PrintTo(const NamedBackend& backend, std::ostream* out) { *out << backend.name; }

template <class Backend>
std::unique_ptr<TestBackend> make() {
  return std::make_unique<Backend>();
}

std::unique_ptr<TestBackend> make_with_etcd() {
  return etcd_installed() ? std::make_unique<EtcdBackend>() : nullptr;
}

class StoreContract : public testing::TestWithParam<NamedBackend> {
 protected:
  void SetUp() override {
    if (backend_ == nullptr) GTEST_SKIP() << "SKIPPED: " << kEtcdProgram << " is not installed";
    reopen();
  }
  void reopen() {
    store_.reset();
    store_ = backend_->open();
    ASSERT_NE(store_, nullptr);
    const StorageResult<StoreTerm> term = store_->claim();
    ASSERT_TRUE(term) << term.error().text();
    term_ = *term;
  }
  Store& store() { return *store_; }
  [[nodiscard]] StoreTerm term() const { return term_; }
  StorageStatus append(std::uint64_t number, const std::string& bytes) {
    return store_->append(term_, {number, bytes});
  }
  /// Returns "1:one 2:two" from batches that are read in portions.
  std::string all(std::uint64_t after = 0, std::size_t bytes_max = 1) {
    std::string text;
    while (true) {
      const auto some = store_->read(after, bytes_max);
      EXPECT_TRUE(some) << some.error().text();
      if (!some || some->empty()) return text;
      for (const Batch& batch : *some) {
        text += (text.empty() ? "" : " ") + std::to_string(batch.number) + ":" + batch.bytes;
      }
      after = some->back().number;
    }
  }

 private:
  std::unique_ptr<TestBackend> backend_ = GetParam().make();
  std::unique_ptr<Store> store_;
  StoreTerm term_ = StoreTerm::kNone;
};

TEST_P(StoreContract, BatchesComeBackInOrderAlsoWhenOpenedAgain) {
  EXPECT_EQ(*store().extent(), (StoreExtent{.oldest = 1, .newest = 0}));
  EXPECT_EQ(all(), "");
  ASSERT_TRUE(append(1, "one"));
  ASSERT_TRUE(append(2, ""));
  ASSERT_TRUE(append(3, std::string("a\0b", 3)));
  reopen();
  ASSERT_TRUE(append(4, "four"));
  EXPECT_EQ(all(), std::string("1:one 2: 3:a\0b 4:four", 21));
  EXPECT_EQ(all(2, 1 << 20), std::string("3:a\0b 4:four", 12));
  EXPECT_EQ(all(4), "");
  EXPECT_EQ(*store().extent(), (StoreExtent{.oldest = 1, .newest = 4}));
  EXPECT_TRUE(store().check());
}

TEST_P(StoreContract, ALargeBatchIsOneBatch) {
  const std::string large(std::size_t{3} << 20, 'x');
  ASSERT_TRUE(append(1, large));
  const auto read = store().read(0, 100);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 1u);
  EXPECT_TRUE(read->front().bytes == large);
}

TEST_P(StoreContract, GapsAndDoubledBatchesAreRefused) {
  ASSERT_TRUE(append(1, "one"));
  const StorageStatus gap = append(3, "three");
  ASSERT_FALSE(gap);
  EXPECT_NE(gap.error().message.find("expected batch 2, was given 3"), std::string::npos)
      << gap.error().text();
  EXPECT_FALSE(append(1, "uno"));
  EXPECT_TRUE(append(2, "two"));
  EXPECT_EQ(all(), "1:one 2:two");
}

TEST_P(StoreContract, WhoseTermIsOverWritesNothingMore) {
  EXPECT_FALSE(store().append(StoreTerm::kNone, {1, "nobody's"}));
  ASSERT_TRUE(append(1, "one"));
  const StoreTerm newer = *store().claim();
  EXPECT_GT(newer, term());
  const StorageStatus late = append(2, "late");
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().message.find("may write no more"), std::string::npos)
      << late.error().text();
  EXPECT_FALSE(store().put_snapshot(term(), {1, "late"}));
  EXPECT_FALSE(store().put_texts(term(), {{"name", "late"}}));
  ASSERT_TRUE(store().append(newer, {2, "two"}));
  ASSERT_TRUE(store().put_snapshot(newer, {1, "state"}));
  EXPECT_FALSE(store().drop_covered(term(), 1));
  EXPECT_EQ(all(), "1:one 2:two");
}

TEST_P(StoreContract, WhatASnapshotCoversCanBeDropped) {
  for (const std::uint64_t number : {1u, 2u, 3u, 4u}) ASSERT_TRUE(append(number, "b"));
  EXPECT_FALSE(store().put_snapshot(term(), {5, "ahead"}));
  ASSERT_TRUE(store().put_snapshot(term(), {2, "at two"}));
  ASSERT_TRUE(store().put_snapshot(term(), {4, "at four"}));
  EXPECT_FALSE(store().drop_covered(term(), 3)) << "there is no such snapshot";
  ASSERT_TRUE(store().drop_covered(term(), 2));
  EXPECT_EQ(all(), "3:b 4:b");
  EXPECT_EQ(*store().snapshots(), (std::vector<std::uint64_t>{4, 2}));
  ASSERT_TRUE(store().drop_covered(term(), 4));
  reopen();
  EXPECT_EQ(*store().extent(), (StoreExtent{.oldest = 5, .newest = 4}));
  EXPECT_EQ(*store().snapshots(), (std::vector<std::uint64_t>{4}));
  EXPECT_EQ(*store().snapshot(4), "at four");
  EXPECT_EQ(store().snapshot(2).error().failure, StorageFailure::kNotFound);
  EXPECT_FALSE(append(1, "numbers go on"));
  EXPECT_TRUE(append(5, "five"));
}

TEST_P(StoreContract, TextsAreReplacedByName) {
  ASSERT_TRUE(store().put_texts(term(), {{"fleet.yaml", "a"}, {"begin", ""}}));
  ASSERT_TRUE(store().put_texts(term(), {{"fleet.yaml", "b: \xc3\xa9\n"}}));
  reopen();
  EXPECT_EQ(*store().texts(), (StoreTexts{{"begin", ""}, {"fleet.yaml", "b: \xc3\xa9\n"}}));
}

TEST_P(StoreContract, TheArchiveIsReadFromTheNewestOn) {
  EXPECT_TRUE(store().archived(100, 10)->empty());
  ASSERT_TRUE(store().put_archived(term(), {{3, "three"}, {1, "one"}, {7, ""}}));
  ASSERT_TRUE(store().put_archived(term(), {{3, std::string("3\0", 2)}}));
  EXPECT_FALSE(store().put_archived(StoreTerm::kNone, {{9, "nobody's"}}));
  reopen();
  const ArchivedJob one{1, "one"};
  const ArchivedJob three{3, std::string("3\0", 2)};
  const ArchivedJob seven{7, ""};
  EXPECT_EQ(*store().archived(100, 10), (std::vector<ArchivedJob>{seven, three, one}));
  EXPECT_EQ(*store().archived(7, 10), (std::vector<ArchivedJob>{three, one}));
  EXPECT_EQ(*store().archived(8, 1), (std::vector<ArchivedJob>{seven}));
  EXPECT_TRUE(store().archived(1, 10)->empty());
}

INSTANTIATE_TEST_SUITE_P(Backends, StoreContract,
                         testing::Values(NamedBackend{"Memory", make<MemoryBackend>},
                                         NamedBackend{"Sqlite", make<SqliteBackend>},
                                         NamedBackend{"Etcd", make_with_etcd}),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace orrery
