#include "inference/gguf/gguf_tokenizer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "inference/formats/model_writer_test.hpp"

namespace orrery {
namespace {

/// Reads the tokens of a file; an error ends the test with its text.
class GgufTokensForTest {
 public:
  explicit GgufTokensForTest(const GgufForTest& file)
      : bytes_(file.bytes()), file_(GgufFile::parse(bytes_, "m.gguf").value()), fields_(file_) {}

  [[nodiscard]] GgufText text() {
    Result<GgufText> text = read_gguf_text(fields_);
    if (!text) throw std::runtime_error(text.error().text());
    return *std::move(text);
  }
  [[nodiscard]] std::string refusal() {
    const Result<GgufText> text = read_gguf_text(fields_);
    return text ? "" : text.error().text();
  }

 private:
  std::string bytes_;
  GgufFile file_;
  GgufFields fields_;
};

using Tokens = std::vector<std::int32_t>;

Tokens encoded(const GgufText& text, const std::string& prompt) {
  Tokens tokens;
  text.tokenizer.encode_whole(prompt, tokens);
  return tokens;
}

GgufForTest merged(const std::string& pattern) {
  std::vector<std::string> names = byte_token_names();
  names.insert(names.end(), {"12", "ab", "\u0120ab"});
  std::vector<float> kinds(names.size(), 1);
  kinds[kBeginToken] = 3;
  kinds[kEndToken] = 3;
  GgufForTest file;
  file.text("tokenizer.ggml.model", "gpt2")
      .text("tokenizer.ggml.pre", pattern)
      .texts("tokenizer.ggml.tokens", names)
      .numbers("tokenizer.ggml.token_type", kinds)
      .texts("tokenizer.ggml.merges", {"1 2", "a b", "\u0120 ab"})
      .whole("tokenizer.ggml.bos_token_id", kBeginToken)
      .whole("tokenizer.ggml.eos_token_id", kEndToken);
  return file;
}

TEST(GgufTokenizerTest, PatternsDivideWordsAndNumbers) {
  const Tokens words{259, 260};
  EXPECT_EQ(encoded(GgufTokensForTest(merged("gpt-2")).text(), "ab ab"), words);
  EXPECT_EQ(encoded(GgufTokensForTest(merged("gpt-2")).text(), "12"), Tokens{258});
  EXPECT_EQ(encoded(GgufTokensForTest(merged("smollm")).text(), "12"), (Tokens{'1', '2'}))
      << "each digit is a word";
  EXPECT_EQ(encoded(GgufTokensForTest(merged("llama-bpe")).text(), "ab ab"),
            (Tokens{kBeginToken, 259, 260}))
      << "texts of Llama 3 begin with a token";
  const GgufText text = GgufTokensForTest(merged("gpt-2")).text();
  EXPECT_EQ(text.tokenizer.decode(Tokens{259, 260, kEndToken}), "ab ab");
  EXPECT_EQ(text.ends, Tokens{kEndToken});
}

TEST(GgufTokenizerTest, EndsOfTurnsEndAText) {
  GgufForTest file = merged("gpt-2");
  file.whole("tokenizer.ggml.eot_token_id", 65);
  EXPECT_EQ(GgufTokensForTest(file).text().ends, (Tokens{kEndToken, 65}));
}

/// Tokens as SentencePiece stores them: scores of merges are less the later they are.
GgufForTest scored() {
  std::vector<std::string> names{"<unk>", "<s>", "</s>"};
  std::vector<float> kinds{2, 3, 3};
  std::vector<float> scores{0, 0, 0};
  const auto add = [&](const std::string& name, float kind, float score) {
    names.push_back(name);
    kinds.push_back(kind);
    scores.push_back(score);
  };
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), 6, 0);
  for (const char* each : {"\u2581", "a", "b", "c"}) add(each, 1, -100);  // 259 to 262
  add("bc", 1, -1);                                                       // 263
  add("ab", 1, -2);
  add("\u2581a", 1, -3);  // 265
  GgufForTest file;
  file.text("tokenizer.ggml.model", "llama")
      .texts("tokenizer.ggml.tokens", names)
      .numbers("tokenizer.ggml.token_type", kinds)
      .numbers("tokenizer.ggml.scores", scores)
      .whole("tokenizer.ggml.bos_token_id", 1)
      .whole("tokenizer.ggml.eos_token_id", 2)
      .whole("tokenizer.ggml.unknown_token_id", 0);
  return file;
}

TEST(GgufTokenizerTest, TheHighestScoreIsMergedFirst) {
  const GgufText text = GgufTokensForTest(scored()).text();
  EXPECT_EQ(encoded(text, "abc"), (Tokens{1, 265, 263})) << "bc goes before ab";
  EXPECT_EQ(encoded(text, "\n"), (Tokens{1, 259, 3 + 10})) << "bytes stand for what has no token";
  EXPECT_EQ(text.tokenizer.decode(Tokens{1, 265, 263, 259, 261}), "abc b");
  EXPECT_EQ(text.ends, Tokens{2});
}

TEST(GgufTokenizerTest, WhatIsNotKnownIsNamed) {
  EXPECT_NE(GgufTokensForTest(merged("tekken"))
                .refusal()
                .find("tokenizer.ggml.pre (byte 68) is \"tekken\", expected one of gpt-2"),
            std::string::npos);
  EXPECT_NE(
      GgufTokensForTest(
          GgufForTest().text("tokenizer.ggml.model", "t5").texts("tokenizer.ggml.tokens", {"a"}))
          .refusal()
          .find("is \"t5\", expected \"gpt2\" or \"llama\""),
      std::string::npos);
  EXPECT_NE(GgufTokensForTest(GgufForTest()).refusal().find("tokenizer.ggml.tokens is not there"),
            std::string::npos);
  for (const char* name : {"a", "\xFF"}) {
    EXPECT_NE(GgufTokensForTest(GgufForTest().texts("tokenizer.ggml.tokens", {"a", name}))
                  .refusal()
                  .find("token 1 is"),
              std::string::npos);
  }
  EXPECT_NE(GgufTokensForTest(GgufForTest()
                                  .texts("tokenizer.ggml.tokens", {"a", "b"})
                                  .numbers("tokenizer.ggml.token_type", {1}))
                .refusal()
                .find("expected 2 numbers, one for each token"),
            std::string::npos);
  EXPECT_NE(GgufTokensForTest(GgufForTest()
                                  .texts("tokenizer.ggml.tokens", {"a"})
                                  .numbers("tokenizer.ggml.token_type", {1e12F}))
                .refusal()
                .find("expected numbers from 0 to 6"),
            std::string::npos);
  GgufForTest beyond = merged("gpt-2");
  beyond.whole("tokenizer.ggml.eot_token_id", 261);
  EXPECT_NE(
      GgufTokensForTest(beyond).refusal().find("is 261, expected a whole number from 0 to 260"),
      std::string::npos);
}

}  // namespace
}  // namespace orrery
