#include "store/transfer/adopt_log.hpp"

#include <gtest/gtest.h>

#include "store/etcd/etcd_server_test.hpp"
#include "store/transfer/written_log_test.hpp"

namespace orrery {
namespace {

/// A log of three batches, as a backup of one that had more.
class AdoptLogTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!etcd_installed()) GTEST_SKIP() << "SKIPPED: " << kEtcdProgram << " is not installed";
    server_ = std::make_unique<EtcdServer>();
    auto store = *EtcdStore::open(location(), files_.path("other/store"));
    WrittenLog log(*store);
    for (int i = 0; i < 3; ++i) log.append();
    see({5, 9, 4});
  }
  /// The mark of this machine.
  void see(const HighWater& mark) {
    ASSERT_TRUE(RealStorage().make_directories(local()));
    ASSERT_TRUE(HighWaterFile::put(local(), mark));
  }
  [[nodiscard]] std::string local() const { return files_.path("state/store"); }
  [[nodiscard]] std::string path(const std::string& name) const { return files_.path(name); }
  [[nodiscard]] EtcdLocation location(const std::string& cluster = "test") const {
    return server_->location(cluster);
  }
  Result<StoreTerm> adopt(const AdoptableLog& found, const StoreTexts& texts = {}) {
    return adopt_log(location(), found, {local(), texts, Duration()});
  }

 private:
  TestDirectory files_;
  std::unique_ptr<EtcdServer> server_;
};

TEST_F(AdoptLogTest, ALogBehindTheMarkIsTakenWithAHigherTermAndGoesOn) {
  const auto refused = EtcdStore::open(location(), local());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("orrery store adopt '" + location().url() + "' --state " +
                                         path("state")),
            std::string::npos)
      << refused.error().message;
  const Result<AdoptableLog> found = find_adoptable(location(), local());
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->marked, (HighWater{5, 9, 4}));
  EXPECT_EQ(found->seen.newest, 3u);
  const Result<StoreTerm> term = adopt(*found, {{"lost", "1 4"}});
  ASSERT_TRUE(term) << term.error().text();
  EXPECT_EQ(*term, static_cast<StoreTerm>(10));
  EXPECT_EQ(**read_high_water(local()), (HighWater{3, 10, 4}));

  auto store = EtcdStore::open(location(), local());
  ASSERT_TRUE(store) << store.error().text();
  EXPECT_EQ((*store)->marked_next_job(), 4u);
  EXPECT_EQ((*store)->texts()->at("lost"), "1 4");
  const StoreTerm next = *(*store)->claim();
  EXPECT_EQ(next, static_cast<StoreTerm>(11));
  EXPECT_TRUE((*store)->append(next, {4, "four"}));
}

TEST_F(AdoptLogTest, EachMachineClaimsAboveWhatItHasSeen) {
  ASSERT_TRUE(adopt(*find_adoptable(location(), local())));
  see({4, 30, 2});
  const Result<StoreTerm> second = adopt(*find_adoptable(location(), local()));
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_EQ(*second, static_cast<StoreTerm>(31));
}

TEST_F(AdoptLogTest, WhereNothingIsLostThereIsNothingToAdopt) {
  ASSERT_TRUE(adopt(*find_adoptable(location(), local())));
  const Result<AdoptableLog> again = find_adoptable(location(), local());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, ErrorKind::kInfeasible);
  EXPECT_NE(again.error().message.find("nothing is lost here"), std::string::npos);
  const Result<AdoptableLog> no_mark = find_adoptable(location(), path("none"));
  ASSERT_FALSE(no_mark);
  EXPECT_EQ(no_mark.error().kind, ErrorKind::kInput);
  const Result<AdoptableLog> no_log = find_adoptable(location("none"), local());
  ASSERT_FALSE(no_log);
  EXPECT_EQ(no_log.error().kind, ErrorKind::kInput);
  EXPECT_NE(no_log.error().message.find("`etcdctl snapshot restore`"), std::string::npos);
}

TEST_F(AdoptLogTest, WhileAControllerRunsNothingChanges) {
  const Result<AdoptableLog> found = find_adoptable(location(), local());
  ASSERT_TRUE(found) << found.error().text();
  auto other = *EtcdStore::open(location(), path("other/store"));
  const StoreTerm term = *other->claim();
  const Result<StoreTerm> refused = adopt(*found);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kInfeasible) << refused.error().text();
  EXPECT_EQ(**read_high_water(local()), (HighWater{5, 9, 4}));
  EXPECT_TRUE(other->beat(term)) << "it writes on";
  const auto own = SqliteStore::open(local() + "/archive");
  ASSERT_TRUE(own);
  const Result<StoreTerm> locked = adopt(*find_adoptable(location(), local()));
  ASSERT_FALSE(locked);
  EXPECT_NE(locked.error().message.find("writes this store"), std::string::npos);
}

}  // namespace
}  // namespace orrery
