// gateway/event_scanner_test.cpp - events in any pieces and with any line ends.
#include "gateway/stream/event_scanner.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

constexpr std::string_view kStream =
    ": note\n\ndata: {\"a\":1}\r\n\r\nevent: x\rdata:{\"b\":\"\\\"usage\\\":{1}\"}\r\r"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":22}}\n\n"
    "data: [DONE]\n\n";

TEST(EventScanner, CountsChunksAndReadsUsage) {
  EventScanner scanner;
  EXPECT_EQ(scanner.scan(kStream), kStream.size());
  EXPECT_EQ(scanner.chunks(), 3u);
  EXPECT_TRUE(scanner.done());
  EXPECT_FALSE(scanner.failed());
  EXPECT_EQ(scanner.usage().prompt, 11u);
  EXPECT_EQ(scanner.usage().output, 22u);
}

TEST(EventScanner, FindsTheSameWhereverTheBytesAreSplit) {
  for (std::size_t split = 0; split <= kStream.size(); ++split) {
    EventScanner scanner;
    const std::size_t whole = scanner.scan(kStream.substr(0, split));
    EXPECT_LE(whole, split);
    EXPECT_EQ(scanner.scan(kStream.substr(split)), kStream.size() - split);
    EXPECT_EQ(scanner.chunks(), 3u) << split;
    EXPECT_TRUE(scanner.done()) << split;
    EXPECT_EQ(scanner.usage().output, 22u) << split;
  }
}

TEST(EventScanner, HoldsBackAnEventThatIsNotWhole) {
  EventScanner scanner;
  EXPECT_EQ(scanner.scan("data: 1\n\ndata: 2\n"), 9u);
  EXPECT_EQ(scanner.scan("da"), 0u);
  EXPECT_EQ(scanner.scan("ta: 3\n\nx"), 7u);
}

TEST(EventScanner, NoticesErrors) {
  EventScanner scanner;
  static_cast<void>(scanner.scan("data: {\"error\":null}\n\n"));
  EXPECT_FALSE(scanner.failed());
  static_cast<void>(scanner.scan("data: { \"error\": {\"message\":\"x\"}}\n\n"));
  EXPECT_TRUE(scanner.failed());
}

TEST(TokenUsage, ReadsTheLastOneOfAnAnswer) {
  const TokenUsage usage =
      find_usage(R"({"text":"\"usage\":{\"prompt_tokens\":9}","usage": {"completion_tokens": 4,)"
                 R"("prompt_tokens_details":{"cached_tokens":3},"prompt_tokens":8}})");
  EXPECT_EQ(usage.known, TokenUsage::Known::kYes);
  EXPECT_EQ(usage.prompt, 8u);
  EXPECT_EQ(usage.output, 4u);
  EXPECT_EQ(find_usage(R"({"usage":null})").known, TokenUsage::Known::kNo);
  EXPECT_EQ(find_usage("").known, TokenUsage::Known::kNo);
  EXPECT_EQ(find_usage("\"usage\"").known, TokenUsage::Known::kNo);
}

}  // namespace
}  // namespace orrery
