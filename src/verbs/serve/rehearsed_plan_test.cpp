// verbs/serve/rehearsed_plan_test.cpp - plans of services that are played against requests.
#include "verbs/serve/rehearsed_plan.hpp"

#include <gtest/gtest.h>

#include "verbs/scratch_files_test.hpp"
#include "verbs/serve/serve_answer.hpp"

namespace orrery {
namespace {

/// Requests at an even rate, but for one minute in which they are `burst` times as many.
std::string requests(int burst) {
  std::string lines;
  int time_ms = 0;
  for (int second = 0; second < 240; ++second) {
    const int count = 2 * (second >= 120 && second < 180 ? burst : 1);
    for (int i = 0; i < count; ++i) {
      lines += fmt::format(
          "{{\"timestamp\": {}, \"input_length\": 2000, \"output_length\": 200, \"hash_ids\": "
          "[]}}\n",
          time_ms + i * 1000 / count);
    }
    time_ms += 1000;
  }
  return lines;
}

class RehearsedPlanTest : public ::testing::Test {
 protected:
  Result<VerbAnswer> plan(const std::string& lines, const ServeOptions& more = {}) {
    ServeOptions serve = more;
    serve.requests = files_.write("requests.jsonl", lines) + ":mooncake";
    if (serve.ttft.empty()) serve.ttft = "1 s";
    PlanOptions options;
    options.model = "llama-3.1-70b";
    options.machines.accelerators = machines_;
    options.top = 2;
    return report_serving({}, {options, serve});
  }

  ScratchFiles files_;
  std::string machines_ = "h100";
};

TEST_F(RehearsedPlanTest, ABurstNeedsMoreInstancesThanItsMean) {
  const auto even = plan(requests(1));
  const auto bursts = plan(requests(20));
  ASSERT_TRUE(even) << even.error().text();
  ASSERT_TRUE(bursts) << bursts.error().text();
  const Json& calm = even->json["rehearsed"][0];
  const Json& wild = bursts->json["rehearsed"][0];
  EXPECT_GE(calm["instances"], 2) << "one instance may fail";
  EXPECT_GT(wild["instances"], calm["instances"]);
  for (const Json* each : {&calm, &wild}) {
    EXPECT_GE((*each)["slo_attained"], 0.99);
    EXPECT_GE((*each)["slo_attained_with_a_failure"], 0.99);
    EXPECT_GT((*each)["usd_per_million_tokens"], 0);
  }
  EXPECT_NE(bursts->text.find("also while one instance is away"), std::string::npos);
}

TEST_F(RehearsedPlanTest, TooFewAcceleratorsAreSaidToBeTooFew) {
  machines_ = "h100:8";
  const auto answer = plan(requests(20));
  ASSERT_TRUE(answer) << answer.error().text();
  const Json& rehearsed = answer->json["rehearsed"];
  ASSERT_FALSE(rehearsed.empty());
  for (const Json& each : rehearsed) EXPECT_EQ(each["instances"], 0) << each;
  EXPECT_NE(answer->text.find("No number of instances suffices on nvidia-h100-sxm5-80g:8, tp="),
            std::string::npos)
      << answer->text;
  EXPECT_NE(answer->text.find("% of the requests are within the targets"), std::string::npos);
}

TEST_F(RehearsedPlanTest, RequestsTakeThePlaceOfSizesAndRate) {
  const auto both = plan(requests(1), {.input_tokens = 10});
  ASSERT_FALSE(both);
  EXPECT_NE(both.error().message.find("--requests: expected no --input-tokens"), std::string::npos);
  const auto half = plan(requests(1), {.half = "third"});
  ASSERT_FALSE(half);
  EXPECT_NE(half.error().message.find("--half"), std::string::npos);
  PlanOptions options;
  options.model = "llama-3.1-70b";
  options.machines.accelerators = "h100";
  ServeOptions alone;
  alone.half = "first";
  const auto none = report_serving({}, {options, alone});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "--half: needs --requests");
}

TEST(BusiestMinute, IsTheOneWithMostTokens) {
  RequestTrace trace;
  for (const int second : {0, 10, 100, 130, 150, 400}) {
    trace.requests.push_back({.arrival = Duration::seconds(second), .prompt_tokens = 10});
  }
  EXPECT_EQ(busiest_minute(trace), Duration::seconds(100));
  EXPECT_EQ(busiest_minute({}), Duration());
}

}  // namespace
}  // namespace orrery
