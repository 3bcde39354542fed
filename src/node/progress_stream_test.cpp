// node/progress_stream_test.cpp - lines of progress, however they are cut, and what is none.
#include "node/progress_stream.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace orrery {
namespace {

struct Heard {
  std::vector<ProgressLine> lines;
  std::uint64_t bad = 0;
};

/// Fed in parts of `part` bytes.
Heard heard(const std::string& text, std::size_t part) {
  ProgressParser parser;
  Heard result;
  for (std::size_t at = 0; at < text.size(); at += part) {
    parser.feed(std::string_view(text).substr(at, part),
                [&](const ProgressLine& line) { result.lines.push_back(line); });
  }
  result.bad = parser.bad_lines();
  return result;
}

TEST(ProgressParser, ReadsLinesHoweverTheyAreCut) {
  const std::string text =
      "{\"step\": 7, \"loss\": 2.5, \"tokens\": 99, \"checkpoint\": \"c/7\"}\n\n"
      "{\"epoch\": 2, \"rank\": 1, \"mood\": \"good\", \"compute\": 0.5}\n{\"step\": 8";
  for (const std::size_t part : {std::size_t{1}, std::size_t{7}, text.size()}) {
    const Heard result = heard(text, part);
    ASSERT_EQ(result.lines.size(), 2u) << part;
    EXPECT_EQ(result.lines[0].step, 7u);
    EXPECT_EQ(result.lines[0].loss, 2.5);
    EXPECT_EQ(result.lines[0].tokens, 99u);
    EXPECT_EQ(result.lines[0].checkpoint, "c/7");
    EXPECT_EQ(result.lines[1].epoch, 2u);
    EXPECT_EQ(result.lines[1].compute, 0.5);
    EXPECT_FALSE(result.lines[1].quiet);
    EXPECT_FALSE(result.lines[1].step);
    EXPECT_EQ(result.bad, 0u);
  }
}

TEST(ProgressParser, CountsWhatIsNoLineAndGoesOn) {
  const std::string text =
      "step 7\n[1]\n{\"step\": -1}\n{\"rank\": 4294967296}\n{\"loss\": \"x\"}\n"
      "{\"quiet\": \"1\"}\n{\"quiet\": -1}\n{\"compute\": 1e10}\n" +
      std::string(1'000'000, '{') + "\n{\"step\": 9}\n";
  for (const std::size_t part : {std::size_t{1000}, text.size()}) {
    const Heard result = heard(text, part);
    ASSERT_EQ(result.lines.size(), 1u) << part;
    EXPECT_EQ(result.lines[0].step, 9u);
    EXPECT_EQ(result.bad, 9u);
  }
}

TEST(ProgressParser, ReadsTheReportOfAReplica) {
  const std::string text =
      "{\"replica\": {\"phase\": \"loading\"}}\n"
      "{\"replica\": {\"phase\": \"ready\", \"endpoint\": \"0.0.0.0:4711\", \"pid\": 12, "
      "\"slots\": 8, \"kv_tokens\": 4096, \"kv_events\": \"0.0.0.0:9\", \"prefill_tokens_s\": "
      "2400, \"step_s\": 0.004, "
      "\"step_full_s\": 0.01}}\n";
  const Heard result = heard(text, 9);
  ASSERT_EQ(result.lines.size(), 2u);
  EXPECT_EQ(result.lines[0].replica, (ReplicaReport{.phase = ReplicaPhase::kLoading}));
  EXPECT_EQ(
      result.lines[1].replica,
      (ReplicaReport{
          ReplicaPhase::kReady, "0.0.0.0:4711", 12, 8, {2400, 0.004, 0.01}, 4096, "0.0.0.0:9"}));
}

TEST(ProgressParser, RefusesAReplicaThatDoesNotSayEnough) {
  for (const std::string_view replica :
       {"7", "{}", "{\"phase\": \"happy\"}", "{\"phase\": \"ready\"}",
        "{\"phase\": \"loading\", \"pid\": -1}", "{\"phase\": \"warming\", \"step_s\": -1}",
        "{\"phase\": \"warming\", \"kv_events\": \"h\"}",
        "{\"phase\": \"warming\", \"step_s\": 1e300}"}) {
    const Heard result = heard("{\"replica\": " + std::string(replica) + "}\n", 100);
    EXPECT_EQ(result.bad, 1u) << replica;
    EXPECT_TRUE(result.lines.empty()) << replica;
  }
}

}  // namespace
}  // namespace orrery
