#include "verbs/watch/log_lines.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

v1::LogChunk chunk_of(std::uint32_t rank, const std::string& bytes, std::uint32_t ranks = 2) {
  v1::LogChunk chunk;
  chunk.set_attempt(1);
  chunk.set_rank(rank);
  chunk.set_ranks(ranks);
  chunk.set_bytes(bytes);
  return chunk;
}

LogLines lines_of(LogBytes bytes = LogBytes::kRaw) {
  return LogLines(log_request({.job = "7"}).value(), bytes);
}

TEST(LogRequestTest, WhatIsNotAskedForIsAbsent) {
  const auto request = log_request({.job = "7"});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->id(), 7u);
  EXPECT_FALSE(request->has_rank() || request->has_gang() || request->has_tail());
  const auto full = log_request(attached({.job = "7", .gang = 0, .rank = 3, .node = "n1"}));
  EXPECT_TRUE(full->has_gang() && full->has_rank() && full->follow());
  EXPECT_EQ(full->tail(), 10u);
  EXPECT_EQ(full->node(), "n1");
  EXPECT_FALSE(log_request({.job = "train"}));
}

TEST(LogLinesTest, TheOutputOfOneRankIsUnchanged) {
  LogLines lines = lines_of();
  EXPECT_EQ(lines.show(chunk_of(0, "a\nb\x1b", 1)).bytes, "a\nb\x1b");
  EXPECT_EQ(lines.take_unfinished(), "");
  LogLines escaped = lines_of(LogBytes::kEscaped);
  EXPECT_EQ(escaped.show(chunk_of(0, "a\nb\x1b", 1)).bytes, "a\nb\\x1b");
}

TEST(LogLinesTest, LinesOfSeveralRanksAreWholeAndLabelled) {
  LogLines lines = lines_of();
  EXPECT_EQ(lines.show(chunk_of(0, "one\ntw")).bytes, "0: one\n");
  EXPECT_EQ(lines.show(chunk_of(1, "\nx")).bytes, "1: \n");
  EXPECT_EQ(lines.show(chunk_of(0, "o\n")).bytes, "0: two\n");
  EXPECT_EQ(lines.take_unfinished(), "1: x\n");
  EXPECT_EQ(lines.take_unfinished(), "");
}

TEST(LogLinesTest, AGangIsNamedOnceThereIsASecond) {
  LogLines lines = lines_of();
  v1::LogChunk chunk = chunk_of(3, "a\n");
  EXPECT_EQ(lines.show(chunk).bytes, "3: a\n");
  chunk.set_gang(1);
  EXPECT_EQ(lines.show(chunk).bytes, "1.3: a\n");
  EXPECT_EQ(lines.show(chunk_of(3, "b\n")).bytes, "0.3: b\n");
}

TEST(LogLinesTest, ALineWithoutEndIsCutAt64KiB) {
  LogLines lines = lines_of();
  const std::string long_line(std::size_t{64} << 10, 'x');
  EXPECT_EQ(lines.show(chunk_of(0, long_line)).bytes, "0: " + long_line + "\n");
  EXPECT_EQ(lines.take_unfinished(), "");
}

TEST(LogLinesTest, MissingOutputAndNotesAreMessages) {
  LogLines lines = lines_of();
  v1::LogChunk chunk = chunk_of(2, "");
  chunk.set_skipped(1);
  EXPECT_EQ(lines.show(chunk).message,
            "orrery: rank 2: 1 byte of earlier output is no longer kept\n");
  chunk.set_skipped(4096);
  chunk.set_ranks(1);
  EXPECT_EQ(lines.show(chunk).message,
            "orrery: 4,096 bytes of earlier output are no longer kept\n");
  chunk.set_note("attempt 2\nof job 7");
  EXPECT_EQ(lines.show(chunk).message, "orrery: attempt 2\\nof job 7\n");
}

TEST(LogLinesTest, AStreamGoesOnBehindWhatWasTaken) {
  LogLines lines = lines_of();
  v1::LogChunk chunk = chunk_of(1, "abc");
  chunk.set_from(10);
  lines.remember(chunk);
  chunk.set_from(13);
  lines.remember(chunk);
  lines.remember(chunk_of(0, "x"));
  ASSERT_EQ(lines.request().positions_size(), 2);
  EXPECT_EQ(lines.request().positions(0).from(), 16u);
  EXPECT_EQ(lines.request().positions(1).from(), 1u);
  v1::LogChunk note = chunk_of(0, "");
  note.set_attempt(0);
  lines.remember(note);
  EXPECT_EQ(lines.request().from_attempt(), 1u);
  chunk.set_attempt(2);
  lines.remember(chunk);
  EXPECT_EQ(lines.request().from_attempt(), 2u);
  EXPECT_EQ(lines.request().positions_size(), 1);
}

TEST(LogLinesTest, HoweverAStreamIsCutItsLinesAreTheSame) {
  constexpr std::uint64_t kSeed = 5;
  Rng rng(kSeed);
  for (int round = 0; round < 300; ++round) {
    std::string whole;
    const std::uint64_t size = rng.below(40);
    for (std::uint64_t i = 0; i < size; ++i) whole += rng.below(4) == 0 ? '\n' : 'a';
    LogLines at_once = lines_of();
    std::string expected = at_once.show(chunk_of(0, whole)).bytes;
    expected += at_once.take_unfinished();
    LogLines in_pieces = lines_of();
    std::string found;
    for (std::size_t at = 0; at < whole.size();) {
      const std::size_t length = 1 + rng.below(7);
      found += in_pieces.show(chunk_of(0, whole.substr(at, length))).bytes;
      at += length;
    }
    found += in_pieces.take_unfinished();
    ASSERT_EQ(found, expected) << "seed " << kSeed << ", round " << round;
  }
}

}  // namespace
}  // namespace orrery
