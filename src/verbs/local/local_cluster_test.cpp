#include "verbs/local/local_cluster.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <latch>
#include <memory>
#include <thread>

#include "verbs/scratch_files_test.hpp"

namespace orrery {
namespace {

class LocalClusterFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_local_fleet(storage_, directory_, {.nodes = 2, .accelerators = 8}));
  }
  [[nodiscard]] std::string record() {
    return storage_.read_file(directory_ + "/local.json", 1 << 20).value();
  }
  RealStorage storage_;
  const ScratchFiles files_;
  const std::string directory_ = files_.path("cluster");
};

TEST_F(LocalClusterFilesTest, OneVerbAtATimeHasADirectory) {
  const auto first = LocalCluster::open(directory_);
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(first->nodes().size(), 2u);
  EXPECT_FALSE(first->runs());
  const auto second = LocalCluster::open(directory_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().text(),
            "another `orrery up`, `down` or `fleet apply` is running for " + first->directory());
}

TEST_F(LocalClusterFilesTest, AVerbMayWaitForTheOneBefore) {
  auto first = std::make_unique<Result<LocalCluster>>(LocalCluster::open(directory_));
  ASSERT_TRUE(*first) << first->error().text();
  std::latch begun(1);
  const std::jthread ends([&] {
    begun.wait();
    first.reset();
  });
  begun.count_down();
  const auto second = LocalCluster::open(directory_, Duration::minutes(1));
  EXPECT_TRUE(second) << second.error().text();
}

TEST_F(LocalClusterFilesTest, ADirectoryWithoutFleetIsNoCluster) {
  EXPECT_FALSE(LocalCluster::open(directory_ + "/none"));
  std::filesystem::remove(directory_ + "/fleet.yaml");
  EXPECT_FALSE(LocalCluster::open(directory_));
}

TEST_F(LocalClusterFilesTest, WithoutProcessesNothingIsEndedAndABootIsOver) {
  {
    auto cluster = LocalCluster::open(directory_);
    ASSERT_TRUE(cluster);
    const auto ended = cluster->stop(LocalCluster::Keepers::kEnd);
    ASSERT_TRUE(ended) << ended.error().text();
    EXPECT_EQ(ended->controllers + ended->agents + ended->keepers, 0u);
    EXPECT_EQ(ended->other_controller, 0);
  }
  EXPECT_NE(record().find("\"boot\": 2"), std::string::npos) << record();
  auto again = LocalCluster::open(directory_);
  ASSERT_TRUE(again->stop(LocalCluster::Keepers::kKeep));
  EXPECT_NE(record().find("\"boot\": 2"), std::string::npos) << record();
}

TEST_F(LocalClusterFilesTest, ProcessesFromBeforeTheMachinesBootAreGone) {
  ASSERT_TRUE(storage_.write_file(directory_ + "/local.json",
                                  R"({"boot": 4, "machine_boot": "another", "processes":
          [{"name": "orreryd", "process": {"pid": 1, "started": 1}}]})"));
  auto cluster = LocalCluster::open(directory_);
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_FALSE(cluster->runs());
  ASSERT_TRUE(cluster->stop(LocalCluster::Keepers::kKeep));
  EXPECT_NE(record().find("\"boot\": 5"), std::string::npos) << record();
}

TEST_F(LocalClusterFilesTest, ARefusedStartLeavesNothingThatTheNextOneRunsInto) {
  {
    auto cluster = LocalCluster::open(directory_);
    ASSERT_TRUE(cluster) << cluster.error().text();
    const auto alone = cluster->start({.controllers = 3});
    ASSERT_FALSE(alone);
    EXPECT_NE(alone.error().text().find("add --store etcd"), std::string::npos);
    for (const char* log : {"one", "two"}) {
      const std::string url = fmt::format("etcd://127.0.0.1:1/{}?ca=/none/ca.pem", log);
      const auto gone = cluster->start({.controllers = 2, .store = url});
      ASSERT_FALSE(gone);
      EXPECT_EQ(gone.error().text().find("the log of the cluster"), std::string::npos)
          << "the next one may have another log: " << gone.error().text();
      EXPECT_FALSE(std::filesystem::exists(directory_ + "/cluster.key"));
      EXPECT_FALSE(cluster->runs());
    }
    EXPECT_EQ(record().find("etcd://"), std::string::npos) << record();
  }
  remove_unused_fleet(directory_);
  EXPECT_TRUE(write_local_fleet(storage_, directory_, {.nodes = 3, .accelerators = 4}))
      << "another fleet may be made";
  std::filesystem::create_directories(directory_ + "/store");
  remove_unused_fleet(directory_);
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/fleet.yaml")) << "a log has begun";
}

TEST_F(LocalClusterFilesTest, ADamagedRecordIsNamedWithItsPlace) {
  ASSERT_TRUE(storage_.write_file(directory_ + "/local.json", R"({"boot": "x"})"));
  const auto cluster = LocalCluster::open(directory_);
  ASSERT_FALSE(cluster);
  EXPECT_NE(cluster.error().text().find("/local.json:"), std::string::npos)
      << cluster.error().text();
}

}  // namespace
}  // namespace orrery
