// workload/requests/requests_test.cpp - readers of traces of requests, and requests that are drawn.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "workload/requests/request_reader.hpp"

namespace orrery {
namespace {

const std::filesystem::path kTraces = ORRERY_SOURCE_DIR "/../shared/data/traces/serving";

#define SKIP_WITHOUT_TRACES() \
  if (!std::filesystem::exists(kTraces)) GTEST_SKIP() << "no public traces at " << kTraces

std::string error_of(std::string_view text, const RequestOptions& options = {}) {
  const Result<RequestTrace> trace = read_requests(text, "r", options);
  return trace ? "no error" : trace.error().text();
}

RequestTrace drawn(const std::string& keys, std::uint64_t seed = 1) {
  const std::string text = "apiVersion: orrery/v1\nkind: Requests\n" + keys;
  Result<RequestTrace> trace = read_requests(text, "r.yaml", {.seed = seed});
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().text());
  return trace ? *std::move(trace) : RequestTrace();
}

TEST(RequestReader, ReadsAzuresColumnsWithTheFirstArrivalAtZero) {
  const Result<RequestTrace> trace = read_requests(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n"
      "2023-11-16 18:17:04.0319600,3180,0\n",
      "r", {});
  ASSERT_TRUE(trace) << trace.error().text();
  ASSERT_EQ(trace->requests.size(), 2u);
  EXPECT_EQ(trace->requests[0].arrival, Duration());
  EXPECT_EQ(trace->requests[0].prompt_tokens, 4808u);
  EXPECT_EQ(trace->requests[0].chain_size, 0u);
  EXPECT_EQ(trace->requests[1].arrival, Duration::milliseconds(52));
  EXPECT_EQ(trace->requests[1].output_tokens, 1u) << "an answer has a token at least";
}

TEST(RequestReader, NumbersBlocksByTheirFirstUse) {
  const Result<RequestTrace> trace = read_requests(
      R"({"timestamp": 100, "input_length": 1000, "output_length": 5, "hash_ids": [70, 9]}
{"timestamp": 100.5, "input_length": 513, "output_length": 1, "hash_ids": [70, 8],
)"
      R"("tenant": "a", "class": "batch"})",
      "r", {});
  EXPECT_FALSE(trace) << "an object takes one line";
  const Result<RequestTrace> two = read_requests(
      "{\"timestamp\": 100, \"input_length\": 1000, \"output_length\": 5, \"hash_ids\": [70, 9]}\n"
      "{\"timestamp\": 100.5, \"input_length\": 513, \"output_length\": 1, \"hash_ids\": [70, 8], "
      "\"tenant\": \"a\", \"class\": \"batch\", \"other\": 1}\n",
      "r", {});
  ASSERT_TRUE(two) << two.error().text();
  EXPECT_EQ(two->blocks, 3u);
  EXPECT_EQ(two->chains, (std::vector<std::uint32_t>{0, 1, 0, 2}));
  EXPECT_EQ(two->requests[1].arrival, Duration::nanoseconds(500'000));
  EXPECT_EQ(two->tenants[two->requests[1].tenant], "a");
  EXPECT_EQ(two->requests[1].request_class, RequestClass::kBatch);
}

TEST(RequestReader, ErrorsNameTheLine) {
  EXPECT_EQ(error_of(""), "r:1:1: the file is empty, expected requests");
  EXPECT_EQ(error_of("a,b\n"),
            "r:1:1: \"a,b\" is the first line of no known format of requests; expected one of "
            "azure, mooncake, servegen, orrery");
  EXPECT_EQ(error_of("TIMESTAMP,ContextTokens\n"), "r:1:1: missing column \"GeneratedTokens\"");
  const std::string head = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  EXPECT_EQ(error_of(head), "r:1:1: the file has no request");
  EXPECT_EQ(error_of(head + "2023-11-16 18:17:03,x,1\n"),
            "r:2:21: \"x\": expected a number of tokens, 0 to 16777216");
  EXPECT_EQ(error_of(head + "2023-11-16 18:17:03,1,1\n2023-11-16 18:17:02,1,1\n"),
            "r:3:1: the time is before that of the row before");
  EXPECT_EQ(error_of("{\"timestamp\": 1}\n"),
            "r:1:1: \"input_length\": expected a number of tokens, 0 to 16777216");
  EXPECT_EQ(error_of("{\"timestamp\": 1, \"input_length\": 600, \"output_length\": 1, "
                     "\"hash_ids\": [1]}\n"),
            "r:1:1: \"hash_ids\": expected 2 numbers, one for each 512 tokens");
  EXPECT_EQ(error_of("t_s,rate_req_per_s\n0,1\n0,2\n"),
            "r:3:1: expected a time after that of the row before");
  EXPECT_EQ(error_of("t_s,rate_req_per_s\n0,-1\n"),
            "r:2:3: expected requests a second, 0 to 1000000");
}

TEST(RequestReader, ErrorsOfAFileOfKindRequestsNameTheKey) {
  const std::string head = "apiVersion: orrery/v1\nkind: Requests\n";
  EXPECT_EQ(error_of(head + "rate: 1\n"), "r:1:1: the key \"span\" is missing");
  EXPECT_EQ(error_of(head + "span: 1 h\n"), "r:1:1: expected either \"rate\" or \"rates\"");
  EXPECT_EQ(error_of(head + "span: 1 h\nrate: 1e6\n"),
            "r:1:1: about 3.6e+09 requests, expected at most 41943040");
  EXPECT_EQ(error_of("t_s,rate_req_per_s\n0,1e6\n1000000,1e6\n"),
            "r:1:1: about 2e+12 requests, expected at most 41943040");
  EXPECT_EQ(error_of(head + "span: 1 h\nrate: 1\ncv: 0\n"), "r:1:1: cv: 0, expected 0.05 to 50");
  EXPECT_EQ(error_of(head + "span: 1 h\nrate: 1\nprompt: {median: 0}\n"),
            "r:5:9: prompt.median: 0, expected 1 to 16777216");
  EXPECT_EQ(error_of(head + "span: 1 h\nrate: 1\nsessions: {turns: 0}\n"),
            "r:5:11: sessions.turns: 0, expected 1 to 10000");
  EXPECT_EQ(error_of(head + "span: 1 h\nrate: 1\nrats: 2\n"),
            "r:5:1: unknown key \"rats\", did you mean \"rate\"?; known here: apiVersion, kind, "
            "span, rate, rates, cv, day, prompt, output, sessions, batch");
  EXPECT_EQ(error_of(head + "rates: x.csv\n"),
            "r:1:1: \"rates\" names a file, expected \"rate\" where files cannot be read");
}

TEST(RequestWriter, WhatIsWrittenIsReadBack) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    SCOPED_TRACE(seed);
    const RequestTrace trace = drawn(
        "span: 20 min\nrate: 1\ncv: 3\nbatch: 0.3\n"
        "sessions: {turns: 3, think: 5 s, shared: 1200, prefixes: 4}\n",
        seed);
    const Result<RequestTrace> read = read_requests(write_requests(trace), "r", {});
    ASSERT_TRUE(read) << read.error().text();
    ASSERT_EQ(read->requests.size(), trace.requests.size());
    const Duration begin = trace.requests.front().arrival;
    std::set<std::pair<std::uint32_t, std::uint32_t>> numbers;
    for (std::size_t i = 0; i < trace.requests.size(); ++i) {
      const TraceRequest& a = trace.requests[i];
      const TraceRequest& b = read->requests[i];
      EXPECT_NEAR((a.arrival - begin).count_seconds(), b.arrival.count_seconds(), 2e-9);
      EXPECT_EQ(a.prompt_tokens, b.prompt_tokens);
      EXPECT_EQ(a.output_tokens, b.output_tokens);
      EXPECT_EQ(a.request_class, b.request_class);
      ASSERT_EQ(a.chain_size, b.chain_size);
      for (std::uint32_t k = 0; k < a.chain_size; ++k) {
        numbers.emplace(trace.chain_of(a)[k], read->chain_of(b)[k]);
      }
    }
    EXPECT_EQ(numbers.size(), read->blocks) << "blocks are numbered anew, one for one";
  }
}

TEST(RequestGenerator, TheSameSeedGivesTheSameRequests) {
  const std::string keys = "span: 1 h\nrate: 2\nday: 0.5\ncv: 2\n";
  EXPECT_EQ(drawn(keys, 5).requests, drawn(keys, 5).requests);
  EXPECT_NE(drawn(keys, 5).requests, drawn(keys, 6).requests);
}

TEST(RequestGenerator, RateBurstsAndLengthsAreThoseOfTheSpec) {
  for (const double cv : {0.5, 1.0, 4.0}) {
    const RequestTrace trace =
        drawn(fmt::format("span: 4 h\nrate: 5\ncv: {}\nprompt: {{median: 1000, sigma: 1}}\n"
                          "output: {{median: 200, sigma: 0, max: 100}}\n",
                          cv));
    const auto count = static_cast<double>(trace.requests.size());
    // The number has a standard deviation of cv times the root of the expected one.
    EXPECT_NEAR(count, 72'000, 5 * cv * std::sqrt(72'000)) << cv;
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 1; i < trace.requests.size(); ++i) {
      const double gap =
          (trace.requests[i].arrival - trace.requests[i - 1].arrival).count_seconds();
      sum += gap;
      squares += gap * gap;
    }
    const double mean = sum / (count - 1);
    EXPECT_NEAR(std::sqrt(squares / (count - 1) - mean * mean) / mean, cv, 0.1 * cv);
    std::vector<std::uint32_t> prompts;
    prompts.reserve(trace.requests.size());
    for (const TraceRequest& each : trace.requests) {
      prompts.push_back(each.prompt_tokens);
      EXPECT_EQ(each.output_tokens, 100u);
    }
    std::ranges::nth_element(prompts, prompts.begin() + 36'000);
    EXPECT_NEAR(prompts[36'000], 1000, 60);
  }
}

TEST(RequestGenerator, TheRateSwingsOverTheDay) {
  const RequestTrace trace = drawn("span: 24 h\nrate: 2\nday: 0.8\n");
  std::array<double, 24> hours{};
  for (const TraceRequest& each : trace.requests) {
    hours[static_cast<std::size_t>(each.arrival.count_seconds() / 3600)] += 1;
  }
  EXPECT_NEAR(hours[0], 2 * 0.2 * 3600, 250);
  EXPECT_NEAR(hours[12], 2 * 1.8 * 3600, 500);
  EXPECT_NEAR(static_cast<double>(trace.requests.size()), 2 * 86'400, 3000);
}

TEST(RequestGenerator, ATurnBeginsWithTheWholeBlocksOfTheOneBefore) {
  const RequestTrace trace = drawn(
      "span: 2 h\nrate: 0.5\nprompt: {median: 700, sigma: 0.5}\n"
      "sessions: {turns: 4, think: 20 s, shared: 1024, prefixes: 3}\n");
  std::size_t followed = 0;
  for (std::size_t i = 0; i < trace.requests.size(); ++i) {
    const auto chain = trace.chain_of(trace.requests[i]);
    ASSERT_EQ(chain.size(), trace_blocks_of(trace.requests[i].prompt_tokens));
    for (std::size_t j = i + 1; j < std::min(i + 60, trace.requests.size()); ++j) {
      const auto other = trace.chain_of(trace.requests[j]);
      if (other.size() <= chain.size() || chain.size() < 4 || other[2] != chain[2]) continue;
      ++followed;
      const auto same = std::ranges::mismatch(chain, other).in1 - chain.begin();
      EXPECT_GE(static_cast<std::size_t>(same) + 1, chain.size());
    }
  }
  EXPECT_GT(followed, 500u);
}

TEST(PublicRequests, TracesHaveWhatTheirDescriptionsState) {
  SKIP_WITHOUT_TRACES();
  const Result<RequestTrace> azure =
      load_requests((kTraces / "azure_llm_2023_code.csv.gz").string(), {});
  ASSERT_TRUE(azure) << azure.error().text();
  EXPECT_EQ(azure->requests.size(), 8'819u);
  EXPECT_NEAR(azure->span.count_seconds(), 3436, 1);
  Result<RequestTrace> mooncake =
      load_requests((kTraces / "mooncake_fast25_conversation.jsonl.gz").string(), {});
  ASSERT_TRUE(mooncake) << mooncake.error().text();
  EXPECT_EQ(mooncake->requests.size(), 12'031u);
  RequestTrace first = *mooncake;
  keep_half(first, TraceHalf::kFirst);
  keep_half(*mooncake, TraceHalf::kSecond);
  EXPECT_EQ(first.requests.size() + mooncake->requests.size(), 12'031u);
  EXPECT_EQ(mooncake->requests.front().arrival, Duration());
}

TEST(RequestReader, TellsWhatItDraws) {
  const Result<RequestTrace> rates = read_requests("t_s,rate_req_per_s\n0,5.5\n600,4.9\n", "r", {});
  ASSERT_TRUE(rates) << rates.error().text();
  EXPECT_EQ(rates->notes.size(), 1u) << "what is drawn is told";
}

TEST(RequestTrace, SpeedingUpKeepsTheOrderAndTheSpan) {
  RequestTrace trace = drawn("span: 1 h\nrate: 1\n");
  const Duration last = trace.requests.back().arrival;
  speed_up(trace, 4);
  EXPECT_NEAR(trace.requests.back().arrival.count_seconds(), last.count_seconds() / 4, 1e-6);
  EXPECT_NEAR(trace.span.count_seconds(), 900, 1e-6);
}

}  // namespace
}  // namespace orrery
