// perf/site/storage_path_test.cpp - units or NICs, whichever is less, and local drives past both.
#include "perf/site/storage_path.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"
#include "perf/repository_facts_test.hpp"

namespace orrery {
namespace {

const StorageSystem* storage(std::string_view name) {
  const StorageSystem* found = builtin_facts().find<StorageSystem>(name);
  EXPECT_NE(found, nullptr) << name;
  return found;
}

double rate(const StoragePath& path, Transfer transfer, std::string_view node = "dgx-h100") {
  const Result<BytesPerSecond> found =
      storage_rate(path, node_type(node), builtin_constants(), transfer);
  EXPECT_TRUE(found) << found.error().text();
  return found ? found->value() : 0;
}

TEST(StoragePath, ASharedSystemGivesItsUnitsOrTheNicsOfTheNodes) {
  const StoragePath few{.system = storage("ddn-ai400x2-lustre"), .units = 4, .nodes = 128};
  EXPECT_DOUBLE_EQ(rate(few, Transfer::kRead), 4 * 90e9);
  EXPECT_DOUBLE_EQ(rate(few, Transfer::kWrite), 4 * 65e9);
  const StoragePath many{.system = storage("ddn-ai400x2-lustre"), .units = 400, .nodes = 2};
  EXPECT_DOUBLE_EQ(rate(many, Transfer::kRead), 2 * 80e9) << "two 400 Gb/s ports carry 80 GB/s";
}

TEST(StoragePath, TheOperatorsLimitOfANodeHolds) {
  const StoragePath limited{.system = storage("ddn-ai400x2-lustre"),
                            .units = 400,
                            .nodes = 2,
                            .node_limit = BytesPerSecond(4e9)};
  EXPECT_DOUBLE_EQ(rate(limited, Transfer::kRead), 8e9);
}

TEST(StoragePath, LocalDrivesScaleWithTheNodes) {
  const StoragePath drives{.system = storage("node-local-raid0-8gen4"), .nodes = 64};
  EXPECT_DOUBLE_EQ(rate(drives, Transfer::kRead), 64 * 50e9);
  EXPECT_EQ(place_of(*drives.system), StoragePlace::kLocal);
}

TEST(StoragePath, PeerMemoryIsBoundByTheComputeNics) {
  const StoragePath peer{.system = storage("node-dram-peer"), .nodes = 16};
  EXPECT_DOUBLE_EQ(rate(peer, Transfer::kWrite), 16 * 350e9) << "8 x 400 Gb/s carry more";
  EXPECT_DOUBLE_EQ(rate(peer, Transfer::kWrite, "dgx-a100-80g"), 16 * 200e9);
}

TEST(StoragePath, AnUnpublishedWriteRateIsAskedFor) {
  const StoragePath path{.system = storage("threefs-node"), .units = 180, .nodes = 8};
  const Result<BytesPerSecond> write =
      storage_rate(path, node_type("dgx-h100"), builtin_constants(), Transfer::kWrite);
  ASSERT_FALSE(write);
  EXPECT_NE(write.error().message.find("threefs-node"), std::string::npos);
  EXPECT_GT(rate(path, Transfer::kRead), 0);
}

TEST(StoragePath, MoreUnitsOrNodesNeverDeliverLess) {
  Rng rng(31);
  for (const StorageSystem& system : builtin_facts().all<StorageSystem>()) {
    for (int i = 0; i < 50; ++i) {
      const double units = 1 + 100 * rng.uniform();
      const double nodes = 1 + 1000 * rng.uniform();
      const double here =
          rate({.system = &system, .units = units, .nodes = nodes}, Transfer::kRead);
      EXPECT_GE(rate({.system = &system, .units = units + 1, .nodes = nodes}, Transfer::kRead),
                here);
      EXPECT_GE(rate({.system = &system, .units = units, .nodes = nodes + 1}, Transfer::kRead),
                here);
    }
  }
}

TEST(StoragePath, RefusesLessThanOneUnitOrNode) {
  const StoragePath none{.system = storage("ddn-ai400x2-lustre"), .units = 0, .nodes = 1};
  EXPECT_FALSE(storage_rate(none, node_type("dgx-h100"), builtin_constants(), Transfer::kRead));
  const StoragePath nowhere{.system = storage("ddn-ai400x2-lustre"), .units = 1, .nodes = 0};
  EXPECT_FALSE(storage_rate(nowhere, node_type("dgx-h100"), builtin_constants(), Transfer::kRead));
}

}  // namespace
}  // namespace orrery
