#include "tokens/incremental_decoder.hpp"

#include <gtest/gtest.h>

#include "tokens/bpe_tokenizer.hpp"

namespace orrery {
namespace {

class Decoded {
 public:
  explicit Decoded(std::vector<std::string> stops)
      : decoder_(bytes_, {.stops = std::move(stops)}) {}
  std::string add(std::string_view bytes) {
    std::string text;
    for (const char byte : bytes) text += decoder_.add(static_cast<unsigned char>(byte));
    return text;
  }
  std::string finish() { return decoder_.finish(); }
  std::string stop() const { return decoder_.stop().value_or("none"); }

 private:
  ByteTokenizer bytes_;
  IncrementalDecoder decoder_;
};

TEST(IncrementalDecoderTest, HoldsBytesThatMayBecomeACharacter) {
  Decoded text({});
  EXPECT_EQ(text.add("a\xe6\x97"), "a");
  EXPECT_EQ(text.add("\xa5"), "\xe6\x97\xa5");
  EXPECT_EQ(text.add("\xff"), "\xef\xbf\xbd");
  EXPECT_EQ(text.add("\xf0\x9f"), "");
  EXPECT_EQ(text.finish(), "\xef\xbf\xbd");
  EXPECT_EQ(text.stop(), "none");
}

TEST(IncrementalDecoderTest, HoldsATailThatMayBeginAStopString) {
  Decoded text({"</s>", "\n\n"});
  EXPECT_EQ(text.add("a<"), "a");
  EXPECT_EQ(text.add("/b"), "</b");
  EXPECT_EQ(text.add("c</s"), "c");
  EXPECT_EQ(text.finish(), "</s");
  EXPECT_EQ(text.stop(), "none");
}

TEST(IncrementalDecoderTest, EndsAtTheStopStringThatIsCompleteFirst) {
  Decoded text({"xyz", "b", "ab"});
  EXPECT_EQ(text.add("11xyab"), "11xy");
  EXPECT_EQ(text.stop(), "ab") << "the longer of two that end together";
  EXPECT_EQ(text.add("more"), "");
  EXPECT_EQ(text.finish(), "");
}

TEST(IncrementalDecoderTest, GivesTheSamePartsHoweverTheTextIsCut) {
  const std::string whole = "aab aabaabac";
  Decoded text({"aabac", ""});
  EXPECT_EQ(text.add(whole), "aab aab");
  EXPECT_EQ(text.stop(), "aabac");
}

TEST(IncrementalDecoderTest, HoldsRunsOfByteTokens) {
  const auto made = BpeTokenizer::of(
      R"({"decoder":{"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Fuse"},
          {"type":"Strip","content":" ","start":1,"stop":0}]},
          "model":{"vocab":{"<0xC3>":0,"<0xA9>":1,"a":2," b":3},"merges":[]}})",
      "f");
  ASSERT_TRUE(made) << made.error().text();
  IncrementalDecoder decoder(*made, {.stops = {}});
  EXPECT_EQ(decoder.add(3), "b") << "the first space is taken away";
  EXPECT_EQ(decoder.add(0), "");
  EXPECT_EQ(decoder.add(1), "");
  EXPECT_EQ(decoder.add(3), "\xc3\xa9 b");
  EXPECT_EQ(decoder.add(0), "");
  EXPECT_EQ(decoder.add(1), "");
  EXPECT_EQ(decoder.add(1), "");
  EXPECT_EQ(decoder.finish(), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

}  // namespace
}  // namespace orrery
