// node/attempts/attempt_logs_test.cpp - who answers a question for output, and when a keeper goes.
#include "node/attempts/attempt_logs.hpp"

#include "node/agent/agent_parts_test.hpp"
#include "node/launch/attempt_directories.hpp"

namespace orrery {
namespace {

constexpr AttemptId kAttempt{JobId(5), 1};

class AttemptLogsTest : public AgentPartTest {
 protected:
  void SetUp() override {
    AgentPartTest::SetUp();
    files_ = KeeperFiles{directory_ + "/5-1"};
    std::filesystem::create_directories(files_.logs);
    logs_ = std::make_unique<AttemptLogs>(place(), keeper_);
  }
  [[nodiscard]] LogPlace place() { return {real_->env().storage, *session_, kAttempt, files_}; }
  void write(std::uint32_t rank, const std::string& text) {
    ASSERT_TRUE(real_->env().storage.write_file(log_path(files_, {0, rank}), text));
  }
  /// The keeper's answer to its first pending question of a rank, from a byte on.
  [[nodiscard]] static LogTail tail(std::uint32_t rank, std::uint64_t asked, LogPart part) {
    return {.question = {0, rank, asked}, .found = true, .part = std::move(part)};
  }
  [[nodiscard]] std::size_t releases() const { return keeper_.orders<ReleaseKeeper>().size(); }

  KeeperFiles files_;
  KeptKeeper keeper_;
  std::unique_ptr<AttemptLogs> logs_;
};

TEST_F(AttemptLogsTest, TheKeeperAnswersFromItsTail) {
  write(2, "older");
  logs_->ask({9, {0, 2, 3}});
  ASSERT_EQ(keeper_.all<LogQuestion>().size(), 1u);
  EXPECT_EQ(keeper_.all<LogQuestion>()[0].from, 3u);
  EXPECT_TRUE(channel_.sent.empty()) << "the keeper has not answered";
  logs_->on_tail(tail(2, 3, {3, "newest"}));
  const std::vector<AttemptLogPart> parts = channel_.all<AttemptLogPart>();
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].id, 9u);
  EXPECT_TRUE(parts[0].found);
  EXPECT_EQ(parts[0].size, 9u);
  EXPECT_EQ(parts[0].part.bytes, "newest");
  logs_->on_tail(tail(2, 3, {3, "newest"}));
  EXPECT_EQ(channel_.all<AttemptLogPart>().size(), 1u) << "an answer to no question";
}

TEST_F(AttemptLogsTest, WhatTheKeepersTailLacksComesFromTheFiles) {
  write(0, "0123456789");
  logs_->ask({9, {0, 0, 2}});
  logs_->on_tail(tail(0, 2, {6, "6789"}));
  const std::vector<AttemptLogPart> parts = channel_.all<AttemptLogPart>();
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].part.from, 2u);
  EXPECT_EQ(parts[0].part.bytes, "23456789");
}

TEST_F(AttemptLogsTest, AnEndIsWhatTheTailHas) {
  logs_->ask({9, {0, 0, kFromTail}});
  EXPECT_EQ(keeper_.all<LogQuestion>()[0].from, 0u) << "the whole tail is wanted";
  logs_->on_tail(tail(0, 0, {600, "end"}));
  ASSERT_EQ(channel_.all<AttemptLogPart>().size(), 1u);
  EXPECT_EQ(channel_.all<AttemptLogPart>()[0].part.from, 600u);
}

TEST_F(AttemptLogsTest, ARankThatTheKeeperDoesNotHaveMayHaveLeftFiles) {
  write(1, "gone");
  logs_->ask({9, {0, 1, 0}});
  logs_->on_tail({.question = {0, 1, 0}, .found = false});
  logs_->ask({10, {0, 7, 0}});
  logs_->on_tail({.question = {0, 7, 0}, .found = false});
  const std::vector<AttemptLogPart> parts = channel_.all<AttemptLogPart>();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].part.bytes, "gone");
  EXPECT_FALSE(parts[1].found);
}

TEST_F(AttemptLogsTest, AfterALostConnectionPendingQuestionsAreAnsweredFromTheFiles) {
  write(0, "zero");
  write(1, "one");
  logs_->ask({9, {0, 0, 0}});
  logs_->ask({10, {0, 1, 0}});
  logs_->on_break();
  const std::vector<AttemptLogPart> parts = channel_.all<AttemptLogPart>();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].part.bytes, "zero");
  EXPECT_EQ(parts[1].part.bytes, "one");
  logs_->on_break();
  EXPECT_EQ(channel_.all<AttemptLogPart>().size(), 2u) << "each once";
}

TEST_F(AttemptLogsTest, TheKeeperGoesOnceTheEndsOfItsLogsAreSent) {
  write(0, "zero");
  write(1, "one");
  logs_->keep_then_release();
  EXPECT_EQ(keeper_.all<LogQuestion>().size(), 2u);
  EXPECT_EQ(releases(), 0u);
  logs_->on_tail(tail(0, 0, {0, "zero"}));
  EXPECT_EQ(releases(), 0u) << "it has not answered for rank 1";
  logs_->on_tail(tail(1, 0, {0, "one"}));
  EXPECT_EQ(releases(), 1u);
  const std::vector<KeptLog> kept = channel_.all<KeptLog>();
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].attempt, kAttempt);
  EXPECT_EQ(kept[1].rank, 1u);
  EXPECT_EQ(kept[1].part.bytes, "one");
  logs_->on_over();
  EXPECT_EQ(channel_.all<KeptLog>().size(), 2u) << "they are sent once";
}

TEST_F(AttemptLogsTest, AQuestionOfTheControllerDoesNotHoldTheKeeper) {
  write(0, "zero");
  logs_->ask({9, {0, 0, 4}});
  logs_->keep_then_release();
  logs_->on_tail(tail(0, 0, {0, "zero"}));
  EXPECT_EQ(releases(), 1u);
}

TEST_F(AttemptLogsTest, AKeeperWithoutLogsGoesAtOnce) {
  logs_->keep_then_release();
  EXPECT_EQ(releases(), 1u);
}

TEST_F(AttemptLogsTest, AKeeperThatIsLostWhileItAnswersIsReleasedWhenItComesBack) {
  write(0, "zero");
  logs_->keep_then_release();
  logs_->on_break();
  EXPECT_EQ(channel_.all<KeptLog>().size(), 1u);
  EXPECT_EQ(releases(), 1u);
}

TEST_F(AttemptLogsTest, AnAttemptThatEndsUnreleasedLeavesTheEndsOfItsLogs) {
  write(0, std::string(RankLog::kTailBytes + 5, 'x'));
  logs_->on_over();
  const std::vector<KeptLog> kept = channel_.all<KeptLog>();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].part.from, 5u) << "no more than a keeper has";
  EXPECT_EQ(kept[0].part.bytes.size(), RankLog::kTailBytes);
}

TEST_F(AttemptLogsTest, AnAnswerSaysWhereOutputSinceATimeBegins) {
  write(0, "zero");
  LogTimes times(real_->env().storage, log_path(files_, {0, 0}));
  times.note(0, Instant::from_ns(1'000'000'000));
  times.note(2, Instant::from_ns(60'000'000'000));
  answer_from_files(place(), {9, {0, 0, 0}, Instant::from_ns(50'000'000'000)});
  answer_from_files(place(), {10, {0, 0, 0}});
  answer_from_files(place(), {11, {0, 7, 0}, Instant::from_ns(50'000'000'000)});
  const std::vector<AttemptLogPart> parts = channel_.all<AttemptLogPart>();
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].since_from,
            LogTimes::offset_since(real_->env().storage, log_path(files_, {0, 0}),
                                   Instant::from_ns(50'000'000'000)));
  EXPECT_TRUE(parts[0].since_from.has_value());
  EXPECT_EQ(parts[1].since_from, std::nullopt) << "it was not asked for";
  EXPECT_EQ(parts[2].since_from, std::nullopt) << "there is no such log";
}

}  // namespace
}  // namespace orrery
