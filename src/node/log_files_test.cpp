// node/log_files_test.cpp - which part of a rotated log is on disk, and what a read returns of it.
#include "node/log_files.hpp"

#include "node/agent/agent_parts_test.hpp"

namespace orrery {
namespace {

class LogFilesTest : public AgentPartTest {
 protected:
  void write(const std::string& ending, const std::string& text) {
    ASSERT_TRUE(real_->env().storage.write_file(path() + ending, text));
  }
  /// Writes a log of 16 bytes, of which the first 4 are gone.
  void write_rotated() {
    write(".2", "4567");
    write(".1", "89ab");
    write("", "cdef");
    write(".begin", "12\n");
  }
  [[nodiscard]] std::string path() const { return directory_ + "/log"; }
  [[nodiscard]] LogFiles look() { return LogFiles::look(real_->env().storage, path()); }
};

TEST_F(LogFilesTest, ALogThatWasNotRotatedBeginsAtZero) {
  write("", "0123");
  const LogFiles log = look();
  EXPECT_TRUE(log.found());
  EXPECT_EQ(log.begin(), 0u);
  EXPECT_EQ(log.end(), 4u);
  EXPECT_EQ(log.read(1, 100).from, 1u);
  EXPECT_EQ(log.read(1, 100).bytes, "123");
}

TEST_F(LogFilesTest, PositionsCountTheBytesThatAreGone) {
  write_rotated();
  const LogFiles log = look();
  EXPECT_EQ(log.begin(), 4u);
  EXPECT_EQ(log.end(), 16u);
  EXPECT_EQ(log.read(0, 100).from, 4u) << "where the log still begins";
  EXPECT_EQ(log.read(0, 100).bytes, "456789abcdef");
  EXPECT_EQ(log.read(12, 100).bytes, "cdef");
  EXPECT_EQ(log.read(99, 100).from, 16u);
  EXPECT_EQ(log.read(99, 100).bytes, "");
}

TEST_F(LogFilesTest, AReadOfSeveralFilesIsBounded) {
  write_rotated();
  const LogPart part = look().read(6, 4);
  EXPECT_EQ(part.from, 6u);
  EXPECT_EQ(part.bytes, "6789");
}

TEST_F(LogFilesTest, WithoutItsNewestFileTheOlderOnesAreRead) {
  write_rotated();
  ASSERT_TRUE(real_->env().storage.remove(path()));
  const LogFiles log = look();
  EXPECT_TRUE(log.found());
  EXPECT_EQ(log.begin(), 4u);
  EXPECT_EQ(log.end(), 12u);
  EXPECT_EQ(log.read(0, 100).bytes, "456789ab");
}

TEST_F(LogFilesTest, ALogWithoutFilesIsNotFound) {
  const LogFiles log = look();
  EXPECT_FALSE(log.found());
  EXPECT_EQ(log.end(), 0u);
  EXPECT_EQ(log.read(0, 100).bytes, "");
}

}  // namespace
}  // namespace orrery
