#include "verbs/local/local_fleet.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/numbers/rng.hpp"
#include "base/system/real_storage.hpp"
#include "verbs/scratch_files_test.hpp"

namespace orrery {
namespace {

class LocalFleetTest : public ::testing::Test {
 protected:
  [[nodiscard]] Status write(const LocalFleetOptions& options) {
    return write_local_fleet(storage_, directory_, options);
  }
  RealStorage storage_;
  const ScratchFiles files_;
  const std::string directory_ = files_.path("cluster");
};

TEST_F(LocalFleetTest, WithoutOptionsThereAreFourNodesOfTwo) {
  ASSERT_TRUE(write({}));
  const auto nodes = read_local_fleet(directory_);
  ASSERT_TRUE(nodes) << nodes.error().text();
  ASSERT_EQ(nodes->size(), 4u);
  EXPECT_EQ(nodes->front().name, "node-0");
  EXPECT_EQ(nodes->back().name, "node-3");
  EXPECT_EQ(nodes->back().accelerators, 2u);
  EXPECT_NE(nodes->back().type.find("h100"), std::string::npos);
}

TEST_F(LocalFleetTest, ARackHasRoomForMoreNodes) {
  ASSERT_TRUE(write({.nodes = 2}));
  std::string text = storage_.read_file(directory_ + "/fleet.yaml", 1 << 20).value();
  const std::string named = "node-[0-1]";
  text.replace(text.find(named), named.size(), "node-[0-15]");
  const std::string two = "count: 2";
  text.replace(text.find(two), two.size(), "count: 16");
  ASSERT_TRUE(storage_.write_file(directory_ + "/fleet.yaml", text));
  const auto nodes = read_local_fleet(directory_);
  ASSERT_TRUE(nodes) << nodes.error().text() << text;
  EXPECT_EQ(nodes->size(), 16u);
}

TEST_F(LocalFleetTest, NumbersOutOfRangeAreRefusedAndNothingIsWritten) {
  EXPECT_EQ(write({.nodes = 0}).error().text(), "--nodes 0: expected 1 to 1000");
  EXPECT_EQ(write({.nodes = 1'001}).error().text(), "--nodes 1001: expected 1 to 1000");
  EXPECT_EQ(write({.accelerators = 65}).error().text(), "--accelerators 65: expected 1 to 64");
  EXPECT_FALSE(write({.accelerators = 64}));
  const Status unknown = write({.type = "h1000"});
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().text().find("h1000"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/fleet.yaml"));
}

TEST_F(LocalFleetTest, AFleetThatIsThereIsKeptAndAnotherOneIsRefused) {
  ASSERT_TRUE(write({.nodes = 3, .accelerators = 1, .type = "mi300x"}));
  const std::string text = storage_.read_file(directory_ + "/fleet.yaml", 1 << 20).value();
  EXPECT_TRUE(write({}));
  EXPECT_TRUE(write({.nodes = 3}));
  EXPECT_TRUE(write({.accelerators = 1, .type = "mi300x"}));
  const Status other = write({.nodes = 4});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::kInput);
  EXPECT_TRUE(other.error().text().starts_with("the cluster in " + directory_ +
                                               " has 3 nodes, the first with 1 x "))
      << other.error().text();
  EXPECT_FALSE(write({.type = "h100"}));
  EXPECT_FALSE(write({.accelerators = 2}));
  EXPECT_EQ(storage_.read_file(directory_ + "/fleet.yaml", 1 << 20).value(), text);
}

TEST_F(LocalFleetTest, AFileWithAnErrorIsNamedWithItsLine) {
  ASSERT_TRUE(storage_.make_directories(directory_));
  ASSERT_TRUE(storage_.write_file(directory_ + "/fleet.yaml",
                                  "apiVersion: orrery/v1\nkind: Fleet\nsits: []\n"));
  const auto nodes = read_local_fleet(directory_);
  ASSERT_FALSE(nodes);
  EXPECT_TRUE(nodes.error().text().starts_with(directory_ + "/fleet.yaml:"))
      << nodes.error().text();
}

TEST_F(LocalFleetTest, WhatIsWrittenIsReadBackWhateverItsSize) {
  constexpr std::uint64_t kSeed = 23;
  Rng rng(kSeed);
  for (int round = 0; round < 3; ++round) {
    std::filesystem::remove_all(directory_);
    const int nodes = 1 + static_cast<int>(rng.below(40));
    const int each = 1 + static_cast<int>(rng.below(8));
    ASSERT_TRUE(write({.nodes = nodes, .accelerators = each})) << "seed " << kSeed;
    const auto read = read_local_fleet(directory_);
    ASSERT_TRUE(read) << read.error().text();
    ASSERT_EQ(static_cast<int>(read->size()), nodes) << "seed " << kSeed << ", round " << round;
    for (int i = 0; i < nodes; ++i) {
      const LocalNode& node = (*read)[static_cast<std::size_t>(i)];
      ASSERT_EQ(node.name, "node-" + std::to_string(i)) << "seed " << kSeed;
      ASSERT_EQ(static_cast<int>(node.accelerators), each) << "seed " << kSeed;
    }
  }
}

}  // namespace
}  // namespace orrery
