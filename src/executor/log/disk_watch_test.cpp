#include "executor/log/disk_watch.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/system/real_env.hpp"
#include "executor/lab_test.hpp"

namespace orrery {
namespace {

class DiskWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_disk_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  CollectedLog sink_;
  std::unique_ptr<RealEnv> real_ = RealEnv::create().value();
  std::string directory_;
};

TEST_F(DiskWatchTest, ADiskThatHasLessThanTheReserveRefusesWorkAndIsLoggedOnce) {
  constexpr std::uint64_t kMoreThanAnyDisk = std::uint64_t{1} << 60;
  DiskWatch watch(real_->env(), Log(sink_), directory_, kMoreThanAnyDisk);
  watch.look();
  watch.look();
  EXPECT_EQ(watch.room(), DiskRoom::kLow);
  EXPECT_EQ(watch.admission().error().text(),
            "the controller's disk is full: only its reserve is left in " + directory_);
  ASSERT_EQ(sink_.lines.size(), 1U);
  EXPECT_NE(sink_.lines[0].find("disk full, submissions are refused"), std::string::npos);
  EXPECT_NE(sink_.lines[0].find("reserve=\"given up\""), std::string::npos) << sink_.lines[0];
}

TEST_F(DiskWatchTest, ADiskWithRoomTakesWork) {
  DiskWatch watch(real_->env(), Log(sink_), directory_, 4096);
  watch.look();
  EXPECT_TRUE(watch.admission());
  EXPECT_GT(watch.free_bytes(), 0U);
  EXPECT_TRUE(sink_.lines.empty());
  EXPECT_EQ(watch.make_room(), RoomMade::kYes);
}

}  // namespace
}  // namespace orrery
