#include "node/log_times.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "base/system/real_env.hpp"

namespace orrery {
namespace {

class LogTimesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_times_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] static Instant at(double seconds) {
    return Instant::from_ns(1'000'000'000'000'000'000) + Duration::from_seconds(seconds);
  }
  [[nodiscard]] std::optional<std::uint64_t> since(double seconds) {
    return LogTimes::offset_since(storage_, path(), at(seconds));
  }
  [[nodiscard]] std::string path() const { return directory_ + "/gang-0-rank-0.log"; }

  std::string directory_;
  RealStorage storage_{Durability::kUntilBoot};
};

TEST_F(LogTimesTest, TellsWhereWhatWasWrittenSinceBegins) {
  EXPECT_EQ(since(0), std::nullopt);
  LogTimes times(storage_, path());
  times.note(0, at(0));
  times.note(10, at(0.5));  // within a second of the mark before
  times.note(20, at(10));
  times.note(30, at(11));
  EXPECT_EQ(since(-5), 0u);
  EXPECT_EQ(since(0.7), 0u);
  EXPECT_EQ(since(9.9), 20u) << "what stands before was written within a second of its mark";
  EXPECT_EQ(since(10), 20u);
  EXPECT_EQ(since(10.5), 20u);
  EXPECT_EQ(since(11.5), 30u);
  EXPECT_EQ(since(12), ~std::uint64_t{0}) << "nothing was written since";
}

TEST_F(LogTimesTest, GoesOnWithTheMarksOfAnEarlierProcess) {
  {
    LogTimes(storage_, path()).note(0, at(0));
  }
  LogTimes(storage_, path()).note(50, at(100));
  EXPECT_EQ(since(0.5), 0u);
  EXPECT_EQ(since(50), 50u);
  EXPECT_EQ(since(100), 50u);
}

TEST_F(LogTimesTest, KeepsEverySecondMarkWhenThereAreTooMany) {
  LogTimes times(storage_, path());
  for (std::size_t i = 0; i <= LogTimes::kMarksMax; ++i) {
    times.note(i * 10, at(static_cast<double>(i)));
  }
  const auto lines = std::filesystem::file_size(path() + ".times");
  EXPECT_LT(lines, LogTimes::kMarksMax * 24);
  EXPECT_EQ(since(1'001), 10'000u) << "a mark every two seconds is left";
  EXPECT_EQ(since(1'002), 10'020u);
}

TEST_F(LogTimesTest, ADamagedLineEndsTheMarks) {
  {
    LogTimes(storage_, path()).note(0, at(0));
  }
  ASSERT_TRUE(storage_.open(path() + ".times", OpenMode::kAppend).value()->append("12 x 13"));
  EXPECT_EQ(since(100), ~std::uint64_t{0});
}

}  // namespace
}  // namespace orrery
