#include "gateway/prompt/prompt_tokenizer.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace orrery {
namespace {

/// A tokenizer of four letters and "ab", in a directory of its own.
class PromptTokenizerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_prompt_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    write("tokenizer.json",
          R"({"version":"1.0","added_tokens":[],"normalizer":null,"pre_tokenizer":null,)"
          R"("post_processor":null,"decoder":null,"model":{"type":"BPE","dropout":null,)"
          R"("unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,)"
          R"("fuse_unk":false,"byte_fallback":false,"ignore_merges":false,)"
          R"("vocab":{"a":0,"b":1,"c":2,":":3,"ab":4},"merges":["a b"]}})");
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void write(const char* name, const std::string& text) const {
    std::ofstream(directory_ + "/" + name) << text;
  }
  [[nodiscard]] std::shared_ptr<const PromptTokenizer> open() const {
    auto opened = PromptTokenizer::open(directory_);
    EXPECT_TRUE(opened) << opened.error().text();
    return opened ? *opened : nullptr;
  }

  using Tokens = std::optional<std::vector<std::int32_t>>;
  std::string directory_;
};

TEST_F(PromptTokenizerTest, ATextAListWithOneAndTokensAreTokens) {
  const auto tokenizer = open();
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->tokens_of(R"("abca")", 0), (Tokens{{4, 2, 0}}));
  EXPECT_EQ(tokenizer->tokens_of(R"(["abc"])", 0), (Tokens{{4, 2}}));
  EXPECT_EQ(tokenizer->tokens_of("[7, 0, 2147483647]", 0), (Tokens{{7, 0, 2147483647}}));
  EXPECT_EQ(tokenizer->tokens_of(R"("\u0061b")", 0), (Tokens{{4}})) << "an escape in JSON";
  for (const char* other : {R"(["a","b"])", "[[1,2],[3]]", "[1,-2]", "[1,2147483648]", "[]", "",
                            "{}", "7", R"("ab)", R"([{"content":3}])", R"([{"content":"a"},4])"}) {
    EXPECT_FALSE(tokenizer->tokens_of(other, 0)) << other;
  }
}

TEST_F(PromptTokenizerTest, APromptThatWouldHoldUpTheGatewayIsNotRead) {
  const auto tokenizer = open();
  ASSERT_NE(tokenizer, nullptr);
  const std::string most(PromptTokenizer::kJsonMax - 2, 'a');
  EXPECT_EQ(tokenizer->tokens_of('"' + most + '"', 0)->size(), most.size());
  EXPECT_FALSE(tokenizer->tokens_of('"' + most + "a\"", 0));
}

TEST_F(PromptTokenizerTest, AChatIsWrittenByTheTemplate) {
  write("tokenizer_config.json",
        R"({"chat_template":"{% for m in messages %}{{ m.role }}:{{ m.content }}{% endfor %})"
        R"({% if add_generation_prompt %}c:{% endif %}"})");
  const auto tokenizer = open();
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->tokens_of(R"([{"role":"b","content":"ab"}])", 0), (Tokens{{1, 3, 4, 2, 3}}));
  EXPECT_EQ(tokenizer->tokens_of(R"([{"role":"b","content":[{"type":"text","text":"a"},)"
                                 R"({"type":"text","text":"b"}]}])",
                                 0),
            (Tokens{{1, 3, 4, 2, 3}}));
  EXPECT_FALSE(tokenizer->tokens_of(
      R"([{"role":"b","content":[{"type":"image_url","image_url":{"url":"x"}}]}])", 0));
  const std::string deep = std::string(200, '[') + std::string(200, ']');
  EXPECT_FALSE(tokenizer->tokens_of(R"([{"role":"b","content":"a","x":)" + deep + "}]", 0));
}

TEST_F(PromptTokenizerTest, AChatWithoutTemplateIsItsContents) {
  const auto bytes = PromptTokenizer::open("bytes");
  ASSERT_TRUE(bytes);
  EXPECT_EQ((*bytes)->tokens_of(R"([{"role":"user","content":"a"},{"role":"x","content":"b"}])", 0),
            (Tokens{{'a', '\n', 'b', '\n'}}));
}

TEST_F(PromptTokenizerTest, ErrorsNameTheFile) {
  EXPECT_EQ(PromptTokenizer::open("/none").error().text().substr(0, 32),
            "tokenizer \"/none/tokenizer.json\"");
  write("tokenizer_config.json", "[]");
  const auto opened = PromptTokenizer::open(directory_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().text(), directory_ + "/tokenizer_config.json: expected a JSON object");
}

}  // namespace
}  // namespace orrery
