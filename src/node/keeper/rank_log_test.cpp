// node/keeper/rank_log_test.cpp - where the output of a process goes: files, the tail, copies.
#include "node/keeper/rank_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "node/agent/agent_parts_test.hpp"

namespace orrery {
namespace {

class RankLogTest : public AgentPartTest {
 protected:
  void SetUp() override {
    AgentPartTest::SetUp();
    path_ = directory_ + "/log";
  }
  void TearDown() override {
    log_.reset();
    AgentPartTest::TearDown();
  }
  void open(const LogLimits& limits = {}) {
    log_.reset();
    log_ = RankLog::open({real_->loop(), real_->env().storage, path_, limits}).value();
  }
  void write(const std::string& text, RankLog::Stream stream = RankLog::Stream::kOutput) {
    ASSERT_EQ(::write(log_->writing_end(stream), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
    log_->drain();
  }

  std::string path_;
  std::unique_ptr<RankLog> log_;
};

TEST_F(RankLogTest, AFullFileIsRotatedAndTheOldestIsDropped) {
  open({.file_bytes = 4, .files = 3});
  write("0123456789");
  EXPECT_EQ(read(path_), "89");
  EXPECT_EQ(read(path_ + ".1"), "4567");
  EXPECT_EQ(read(path_ + ".2"), "0123");
  write("abcdef");
  EXPECT_EQ(read(path_), "cdef");
  EXPECT_EQ(read(path_ + ".1"), "89ab");
  EXPECT_EQ(read(path_ + ".2"), "4567");
  EXPECT_FALSE(std::filesystem::exists(path_ + ".3"));
  EXPECT_EQ(RankLog::begin_of(real_->env().storage, path_), 12u);
}

TEST_F(RankLogTest, TheTailIsReadFromAPositionOfTheWholeLog) {
  open({.file_bytes = 4, .files = 2});
  write("0123456789");
  EXPECT_EQ(log_->tail(), "0123456789") << "files do not bound it";
  EXPECT_EQ(log_->read(7).from, 7u);
  EXPECT_EQ(log_->read(7).bytes, "789");
  EXPECT_EQ(log_->read(99).from, 10u);
  EXPECT_EQ(log_->read(99).bytes, "");
}

TEST_F(RankLogTest, TheTailIsTheNewestPart) {
  open();
  write(std::string(RankLog::kTailBytes / 2, 'a'));
  write(std::string(RankLog::kTailBytes / 2, 'b'));
  write("c");
  EXPECT_EQ(log_->tail().size(), RankLog::kTailBytes);
  EXPECT_EQ(log_->tail().back(), 'c');
  EXPECT_EQ(log_->read(0).from, 1u) << "the first byte is only in the file";
}

TEST_F(RankLogTest, AnExistingLogIsContinued) {
  open({.file_bytes = 4, .files = 2});
  write("01234");
  open({.file_bytes = 4, .files = 2});
  EXPECT_EQ(log_->read(0).from, 5u) << "its tail is gone with its keeper";
  write("5");
  EXPECT_EQ(log_->read(0).from, 5u);
  EXPECT_EQ(log_->read(0).bytes, "5");
  EXPECT_EQ(read(path_), "45");
}

TEST_F(RankLogTest, WhatAFullDiskDoesNotTakeIsCountedAndStaysInTheTail) {
  std::filesystem::create_symlink("/dev/full", path_);
  open();
  write("0123");
  EXPECT_EQ(log_->dropped(), 4u);
  EXPECT_EQ(log_->tail(), "0123");
}

TEST_F(RankLogTest, StandardErrorGoesWhereTheOutputGoesUnlessItIsSplit) {
  open();
  EXPECT_EQ(log_->writing_end(RankLog::Stream::kErrors), -1);
  ASSERT_TRUE(log_->split_errors());
  write("out ");
  write("err", RankLog::Stream::kErrors);
  EXPECT_EQ(read(path_), "out err") << "the log has both";
}

TEST_F(RankLogTest, ACopyHasOneStreamAloneAndEndsWhenItHasAll) {
  open();
  ASSERT_TRUE(log_->split_errors());
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
  const FileDescriptor reading(ends[0]);
  log_->copy_to(RankLog::Stream::kErrors, FileDescriptor(ends[1]));
  write("out ");
  write("err", RankLog::Stream::kErrors);
  std::array<char, 16> bytes{};
  ASSERT_EQ(::read(reading.get(), bytes.data(), bytes.size()), 3);
  EXPECT_EQ(std::string(bytes.data(), 3), "err");
  log_->end_copies();
  EXPECT_EQ(::read(reading.get(), bytes.data(), bytes.size()), 0) << "the pipe is closed";
}

}  // namespace
}  // namespace orrery
