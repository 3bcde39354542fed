// gateway/service_stats_test.cpp - totals, and the window that slides.
#include "gateway/service_stats.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Instant at(std::int64_t seconds) { return Instant() + Duration::seconds(1000 + seconds); }

TEST(ServiceStats, CountsEachEndOnce) {
  ServiceStats stats(at(0));
  for (const RequestEnd end :
       {RequestEnd::kCompleted, RequestEnd::kCancelled, RequestEnd::kShed, RequestEnd::kFailed}) {
    stats.add({.end = end, .prompt_tokens = 2, .output_tokens = 3}, at(1));
  }
  EXPECT_EQ(stats.counts().completed, 1u);
  EXPECT_EQ(stats.counts().cancelled, 1u);
  EXPECT_EQ(stats.counts().shed, 1u);
  EXPECT_EQ(stats.counts().failed, 1u);
  EXPECT_EQ(stats.counts().prompt_tokens, 8u);
  EXPECT_EQ(stats.counts().output_tokens, 12u);
}

TEST(ServiceStats, CountsAnswersThatMissATarget) {
  ServiceStats stats(at(0));
  const EndedRequest answered{.ttft = Duration::seconds(2), .tpot = Duration::milliseconds(50)};
  stats.add(answered, at(1));
  EXPECT_EQ(stats.counts().late, 0u) << "there is no target";
  stats.set_targets({.ttft_s = 1});
  stats.add(answered, at(2));
  EXPECT_EQ(stats.counts().late, 1u);
  stats.set_targets({.ttft_s = 3, .tpot_s = 0.04});
  stats.add(answered, at(3));
  EXPECT_EQ(stats.counts().late, 2u);
  stats.set_targets({.ttft_s = 3, .tpot_s = 0.06});
  stats.add(answered, at(4));
  stats.add({.end = RequestEnd::kShed}, at(5));
  EXPECT_EQ(stats.counts().late, 2u);
  EXPECT_EQ(stats.report(at(400)).counts.timed, 4u) << "since the start";
}

TEST(ServiceStats, SlidesItsWindow) {
  ServiceStats stats(at(0));
  stats.add({.output_tokens = 5, .ttft = Duration::milliseconds(20)}, at(5));
  EXPECT_EQ(stats.report(at(20)).window, Duration::seconds(20));
  EXPECT_EQ(stats.report(at(20)).window_requests, 1u);
  EXPECT_EQ(stats.report(at(299)).window_output_tokens, 5u);
  EXPECT_EQ(stats.report(at(299)).ttft.count(), 1u);
  const ServiceReport later = stats.report(at(305));
  EXPECT_EQ(later.window_requests, 0u);
  EXPECT_EQ(later.ttft.count(), 0u);
  EXPECT_EQ(later.window, Duration::seconds(295));
  EXPECT_EQ(later.counts.completed, 1u);
  stats.add({.end = RequestEnd::kShed}, at(1000));
  EXPECT_EQ(stats.report(at(1001)).window_requests, 0u)
      << "nothing of it says how long requests are";
  stats.add({.prompt_tokens = 3}, at(1001));
  EXPECT_EQ(stats.report(at(1002)).window_requests, 1u);
}

}  // namespace
}  // namespace orrery
