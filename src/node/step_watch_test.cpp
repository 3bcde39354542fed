// node/step_watch_test.cpp - when silence is a hang, of whom, and how long ranks compute.
#include "node/step_watch.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

constexpr Instant kStart = Instant::from_ns(1'000'000'000'000);

Instant after(double seconds) { return kStart + Duration::from_seconds(seconds); }

ProgressLine step(std::uint64_t number, std::optional<std::uint32_t> rank = {}) {
  ProgressLine line;
  line.step = number;
  line.rank = rank;
  return line;
}

/// Steps 0, 1, .. told so many seconds apart.
StepWatch watch_of(int steps, double apart) {
  StepWatch watch;
  for (int i = 0; i < steps; ++i) watch.note(step(static_cast<std::uint64_t>(i)), after(i * apart));
  return watch;
}

TEST(StepWatch, WhoHasToldTooLittleNeverHangs) {
  EXPECT_EQ(StepWatch().due(), Instant::max());
  EXPECT_EQ(watch_of(2, 1).due(), Instant::max());
  StepWatch same = watch_of(2, 1);
  same.note(step(1), after(5));
  EXPECT_EQ(same.due(), Instant::max()) << "the same step again is no third one";
}

TEST(StepWatch, SilenceIsAHangAfterTenUsualPausesAMinuteAndTwiceTheLongest) {
  EXPECT_EQ(watch_of(4, 1).due(), after(3 + 60)) << "at least a minute";
  EXPECT_EQ(watch_of(4, 10).due(), after(30 + 100)) << "ten times the median";
  StepWatch watch = watch_of(5, 1);
  watch.note(step(5), after(4 + 300));
  EXPECT_EQ(watch.due(), after(304 + 600)) << "it came back after as long once";
  ProgressLine word;
  watch.note(word, after(500));
  EXPECT_EQ(watch.due(), after(500 + 600)) << "any word will do";
  watch.excuse(after(900));
  EXPECT_EQ(watch.due(), after(900 + 600));
}

TEST(StepWatch, WhatIsNoHangIsForTheProgramToSay) {
  StepWatch watch = watch_of(4, 1);
  ProgressLine word;
  word.quiet = 3600;
  watch.note(word, after(4));
  EXPECT_EQ(watch.due(), after(4 + 3600));
  watch.begin_anew();
  EXPECT_EQ(watch.due(), Instant::max());
  for (std::uint64_t i = 0; i < 3; ++i) watch.note(step(i), after(10));
  EXPECT_EQ(watch.due(), after(10 + 3600)) << "that stays";
}

TEST(StepWatch, TheRankFurthestBehindIsNamed) {
  StepWatch watch;
  ProgressLine here;
  here.epoch = 2;
  here.rank = 9;
  watch.note(here, kStart);  // never of a step
  for (std::uint64_t i = 0; i < 4; ++i) {
    for (const std::uint32_t rank : {5u, 7u, 8u}) {
      if (rank != 7 || i < 3) watch.note(step(40 + i, rank), after(static_cast<double>(i)));
    }
  }
  const StepWatch::Hang hang = watch.hang(after(80));
  EXPECT_EQ(hang.rank, 7u);
  EXPECT_EQ(hang.step, 42u);
  EXPECT_EQ(hang.silent, Duration::seconds(77));
  EXPECT_EQ(hang.usual, Duration::seconds(1));
}

TEST(StepWatch, ARanksPaceIsTheMedianOfItsNewestSteps) {
  StepWatch watch;
  for (int i = 0; i < 100; ++i) {
    ProgressLine line = step(static_cast<std::uint64_t>(i), 3);
    line.compute = i < 80 ? 9.0 : i % 10 == 0 ? 5.0 : 2.0;
    watch.note(line, kStart);
  }
  watch.note(step(100, 1), kStart);
  EXPECT_EQ(watch.paces(), (std::vector<RankPace>{{3, 2.0}}));
  for (std::uint32_t rank = 0; rank < 5000; ++rank) {
    ProgressLine line = step(101, rank);
    line.compute = 1.0;
    watch.note(line, kStart);
  }
  EXPECT_EQ(watch.paces().size(), StepWatch::kRanksMax) << "who invents ranks takes no memory";
}

}  // namespace
}  // namespace orrery
