// gateway/picker/followed_answer_test.cpp - what is counted of answers that come in pieces.
#include "gateway/picker/followed_answer.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Instant at(std::int64_t milliseconds) { return Instant::from_ns(milliseconds * 1'000'000); }

TEST(FollowedAnswer, TimesAStreamByItsFirstAndLastBytes) {
  FollowedAnswer answer;
  answer.begin(200, "text/event-stream; charset=utf-8");
  answer.add("data: {\"a\":1}\n\n", at(130));
  answer.add("", at(150));
  answer.add("data: {\"a\":2}\n\n", at(170));
  answer.add("data: {\"a\":3}\n\n", at(230));
  const EndedRequest ended = answer.ended(answer.whole_end(), at(100), 7);
  EXPECT_EQ(ended.end, RequestEnd::kCompleted);
  EXPECT_EQ(ended.ttft, Duration::milliseconds(30));
  EXPECT_EQ(ended.tpot, Duration::milliseconds(50));
  EXPECT_EQ(ended.prompt_tokens, 7u);
  EXPECT_EQ(ended.output_tokens, 3u);
  EXPECT_TRUE(answer.knows_tokens());
}

TEST(FollowedAnswer, ReadsTheUsageAtTheEndOfALongAnswer) {
  FollowedAnswer answer;
  answer.begin(200, "application/json");
  for (int i = 0; i < 40; ++i) answer.add(std::string(50'000, 'x'), at(i));
  answer.add(R"(","usage":{"prompt_tokens":3,"completion_tokens":5}})", at(50));
  const EndedRequest ended = answer.ended(answer.whole_end(), at(0), 7);
  EXPECT_EQ(ended.prompt_tokens, 3u);
  EXPECT_EQ(ended.output_tokens, 5u);
  EXPECT_EQ(ended.ttft, Duration());
}

TEST(FollowedAnswer, LearnsNothingOfErrors) {
  FollowedAnswer refused;
  refused.begin(404, "application/json");
  refused.add(R"({"usage":{"prompt_tokens":3,"completion_tokens":5}})", at(1));
  EXPECT_EQ(refused.whole_end(), RequestEnd::kCompleted);
  EXPECT_FALSE(refused.knows_tokens());
  FollowedAnswer failed;
  failed.begin(500, "application/json");
  EXPECT_EQ(failed.whole_end(), RequestEnd::kFailed);
  EXPECT_FALSE(failed.has_body());
  FollowedAnswer broken;
  broken.begin(200, "text/event-stream");
  broken.add("data: {\"error\":{\"message\":\"x\"}}\n\n", at(1));
  EXPECT_EQ(broken.whole_end(), RequestEnd::kFailed);
}

}  // namespace
}  // namespace orrery
