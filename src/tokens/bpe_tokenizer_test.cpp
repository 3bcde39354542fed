#include "tokens/bpe_tokenizer.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "tokens/incremental_decoder.hpp"

namespace orrery {
namespace {

using Around = BpeTokenizer::Encoding::Around;
using nlohmann::json;

json fixture(const std::string& name) {
  const auto path = std::filesystem::path(ORRERY_SOURCE_DIR) / "tests/tokens/fixtures" / name;
  std::ifstream file(path);
  return json::parse(file);
}

std::string joined(const BpeTokenizer& tokenizer, const std::vector<std::int32_t>& tokens) {
  IncrementalDecoder decoder(tokenizer, {.stops = {}});
  std::string text;
  for (const std::int32_t token : tokens) text += decoder.add(token);
  return text + decoder.finish();
}

class FamilyTest : public testing::TestWithParam<const char*> {};

TEST_P(FamilyTest, GivesTheTokensAndTextsOfTheReferenceLibrary) {
  const json fixed = fixture(std::string(GetParam()) + ".json");
  const auto tokenizer = BpeTokenizer::of(fixed["tokenizer"].dump(), GetParam());
  ASSERT_TRUE(tokenizer) << tokenizer.error().text();
  ASSERT_GT(fixed["cases"].size(), 50u);
  for (const json& each : fixed["cases"]) {
    const auto text = each["text"].get<std::string>();
    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> framed;
    tokenizer->encode(text, tokens);
    tokenizer->encode_with(text, {.around = Around::kAdded}, framed);
    EXPECT_EQ(tokens, each["ids"].get<std::vector<std::int32_t>>()) << each["text"];
    EXPECT_EQ(framed, each["framed"].get<std::vector<std::int32_t>>()) << each["text"];
    EXPECT_EQ(tokenizer->decode(framed), each["decoded"].get<std::string>());
    EXPECT_EQ(joined(*tokenizer, framed), each["decoded"].get<std::string>());
    EXPECT_EQ(tokenizer->decode_with(framed, TokenUse::Special::kShown),
              each["shown"].get<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyTest,
                         testing::Values("gpt2_spaced", "llama3", "qwen2", "deepseek", "smollm",
                                         "llama2", "mistral", "metaspace", "gemma", "unknown"));

TEST_P(FamilyTest, ThreadsThatShareATokenizerGetItsTokens) {
  const json fixed = fixture(std::string(GetParam()) + ".json");
  const auto tokenizer = BpeTokenizer::of(fixed["tokenizer"].dump(), GetParam());
  ASSERT_TRUE(tokenizer) << tokenizer.error().text();
  std::atomic<int> wrong{0};
  const auto work = [&](std::size_t first) {
    const std::size_t count = fixed["cases"].size();
    for (std::size_t i = 0; i < 2 * count; ++i) {
      const json& each = fixed["cases"][(first + i) % count];
      std::vector<std::int32_t> tokens;
      tokenizer->encode(each["text"].get<std::string>(), tokens);
      if (tokens != each["ids"].get<std::vector<std::int32_t>>()) ++wrong;
    }
  };
  {
    const std::jthread one(work, 0);
    const std::jthread two(work, 20);
    const std::jthread three(work, 40);
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(FamilyTest, ATextHasAtLeastTheTokensThatItsBytesNeed) {
  const json fixed = fixture(std::string(GetParam()) + ".json");
  const auto tokenizer = BpeTokenizer::of(fixed["tokenizer"].dump(), GetParam());
  ASSERT_TRUE(tokenizer) << tokenizer.error().text();
  const std::set<std::string> unbound{"gpt2_spaced", "metaspace", "unknown"};
  const std::size_t least = tokenizer->least_tokens(std::string(100'000, 'a'));
  ASSERT_EQ(least > 0, !unbound.contains(GetParam()));
  for (const json& each : fixed["cases"]) {
    const auto text = each["text"].get<std::string>();
    EXPECT_LE(tokenizer->least_tokens(text), each["ids"].size()) << each["text"];
  }
}

/// Returns how many bytes a token holds at most; `vocab` has all tokens, the rest is put into the
/// file.
std::optional<std::size_t> bytes_of_a_token(const json& vocab, const std::string& more,
                                            const std::string& of_model = "") {
  const auto made = BpeTokenizer::of(
      R"({"model":{"vocab":)" + vocab.dump() + R"(,"merges":[])" + of_model + "}" + more + "}",
      "f");
  EXPECT_TRUE(made) << made.error().text();
  constexpr std::size_t kBytes = 720'720;  // a multiple of all bounds below
  const std::size_t least = made ? made->least_tokens(std::string(kBytes, 'a')) : 0;
  return least > 0 ? std::optional(kBytes / least) : std::nullopt;
}

TEST(BpeTokenizer, KnowsHowManyBytesATokenHoldsUnlessATextCanLoseBytes) {
  json bytes = json::object();
  for (int byte = 0; byte < 256; ++byte) bytes[fmt::format("<0x{:02X}>", byte)] = byte;
  const json few{{"a", 0}, {"u", 1}, {"abcdefgh", 2}};
  const std::string fallback = R"(,"byte_fallback":true)";
  EXPECT_EQ(bytes_of_a_token(bytes, "", fallback), 6u) << "the longest name";
  EXPECT_EQ(bytes_of_a_token(few, "", R"(,"unk_token":"u")"), 8u);
  EXPECT_FALSE(bytes_of_a_token(few, "")) << "characters without a token are left out";
  EXPECT_FALSE(bytes_of_a_token(few, "", fallback)) << "their bytes have none either";
  EXPECT_FALSE(bytes_of_a_token(few, "", R"(,"unk_token":"u","fuse_unk":true)"));
  const auto normalized = [&](const std::string& step) {
    return bytes_of_a_token(bytes, R"(,"normalizer":)" + step, fallback);
  };
  EXPECT_EQ(normalized(R"({"type":"NFC"})"), 24u);
  EXPECT_EQ(normalized(R"({"type":"Lowercase"})"), 18u);
  EXPECT_EQ(normalized(R"({"type":"Replace","pattern":{"String":"abc"},"content":"de"})"), 12u);
  EXPECT_EQ(normalized(R"({"type":"Replace","pattern":{"String":"a"},"content":"bcd"})"), 6u);
  EXPECT_FALSE(normalized(R"({"type":"Replace","pattern":{"String":"a"},"content":""})"));
  EXPECT_FALSE(normalized(R"({"type":"Replace","pattern":{"Regex":"a+"},"content":"b"})"));
  EXPECT_FALSE(bytes_of_a_token(
      bytes, R"(,"pre_tokenizer":{"type":"Split","pattern":{"String":" "},"behavior":"Removed"})",
      fallback));
  for (const char* side : {"lstrip", "rstrip"}) {
    const std::string added =
        fmt::format(R"(,"added_tokens":[{{"id":256,"content":"<a-long-name>","{}":true}}])", side);
    EXPECT_FALSE(bytes_of_a_token(bytes, added, fallback)) << side;
  }
  EXPECT_EQ(bytes_of_a_token(bytes, R"(,"added_tokens":[{"id":256,"content":"<a-long-name>"}])",
                             fallback),
            13u);
}

/// A model of three tokens; `more` is put into the file.
std::string small(const std::string& more) {
  return R"({"model":{"vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]})" + more + "}";
}

std::string error_of(const std::string& text) {
  const auto made = BpeTokenizer::of(text, "f");
  if (made) return "";
  EXPECT_EQ(made.error().kind, ErrorKind::kInput);
  return made.error().text();
}

std::vector<std::int32_t> tokens_of(const std::string& file, std::string_view text) {
  const auto made = BpeTokenizer::of(file, "f");
  EXPECT_TRUE(made) << made.error().text();
  std::vector<std::int32_t> tokens;
  if (made) made->encode(text, tokens);
  return tokens;
}

TEST(BpeTokenizerTest, MergesPairsAndLeavesOutWhatHasNoToken) {
  EXPECT_EQ(tokens_of(small(""), "abba?b"), (std::vector<std::int32_t>{2, 1, 2}));
  EXPECT_EQ(tokens_of(small(""), ""), std::vector<std::int32_t>{});
}

TEST(BpeTokenizerTest, RefusesWhatItDoesNotKnowByName) {
  EXPECT_EQ(error_of(small(R"(,"normalizer":{"type":"Nmt"})")),
            "tokenizer \"f\": normalizer: the normalizer \"Nmt\" is not supported, expected NFC, "
            "NFD, NFKC, NFKD, Lowercase, Prepend, Replace, ByteLevel or Sequence");
  EXPECT_EQ(
      error_of(small(R"(,"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"X"}]})")),
      "tokenizer \"f\": pre_tokenizer.pretokenizers[0]: the pre-tokenizer \"X\" is not "
      "supported, expected ByteLevel, Split, Digits, Metaspace or Sequence");
  EXPECT_EQ(error_of(R"({"model":{"type":"Unigram"}})"),
            "tokenizer \"f\": model: expected a model of type BPE, got \"Unigram\"");
  EXPECT_EQ(error_of(small(R"(,"version":"2.0")")),
            "tokenizer \"f\": expected version \"1.0\", got \"2.0\"");
  EXPECT_EQ(error_of("{}"), "tokenizer \"f\": model: expected a value");
}

TEST(BpeTokenizerTest, RefusesMergesOfTextsThatAreNoTokens) {
  EXPECT_EQ(error_of(R"({"model":{"vocab":{"a":0,"b":1},"merges":["a b"]}})"),
            "tokenizer \"f\": model.merges[0]: \"a\" and \"b\" and what they make must be tokens");
  EXPECT_EQ(error_of(R"({"model":{"vocab":{"a":-1},"merges":[]}})"),
            "tokenizer \"f\": model.vocab: token \"a\" has no number from 0 to 16777215");
}

TEST(BpeTokenizerTest, RefusesPatternsThatTheTwoLibrariesReadDifferently) {
  const auto with = [](const std::string& pattern) {
    return error_of(
        small(R"(,"pre_tokenizer":{"type":"Split","behavior":"Isolated","pattern":{"Regex":")" +
              pattern + "\"}}"));
  };
  EXPECT_EQ(with(R"(\\p{L}+|[^\\s\\p{N}]|\\s+(?!\\S))"), "");
  for (const char* pattern : {R"(\\h)", R"(\\w)", "a{2}+", "[a[b]]", "[a&&b]", R"(\\p{Greek})"}) {
    EXPECT_NE(with(pattern).find("which is not supported"), std::string::npos) << pattern;
  }
}

TEST(BpeTokenizerTest, LeavesSpecialTokensOutOfTextUnlessTheyAreShown) {
  const auto made = BpeTokenizer::of(
      small(R"(,"added_tokens":[{"content":"<e>","special":true}],"decoder":{"type":"Fuse"})"),
      "f");
  ASSERT_TRUE(made);
  std::vector<std::int32_t> tokens;
  made->encode("a<e>b", tokens);
  EXPECT_EQ(tokens, (std::vector<std::int32_t>{0, 3, 1}));
  EXPECT_EQ(made->decode(tokens), "ab");
  EXPECT_EQ(made->decode_with(tokens, TokenUse::Special::kShown), "a<e>b");
  EXPECT_EQ(made->named("<e>"), 3);
  EXPECT_EQ(made->kinds(), 4);
  tokens.clear();
  made->encode_with("a<e>b", {.special = BpeTokenizer::Encoding::Special::kText}, tokens);
  EXPECT_EQ(tokens, std::vector<std::int32_t>{2}) << "its characters have no tokens";
}

TEST(BpeTokenizerTest, EncodesBytesThatAreNotUtf8) {
  const json fixed = fixture("llama3.json");
  const auto tokenizer = BpeTokenizer::of(fixed["tokenizer"].dump(), "llama3");
  ASSERT_TRUE(tokenizer);
  std::vector<std::int32_t> tokens;
  tokenizer->encode("a\xff\xc3 b", tokens);
  EXPECT_EQ(tokenizer->decode(tokens), "a\xef\xbf\xbd\xef\xbf\xbd b");
}

TEST(BpeTokenizer, BytesWithoutATokenDoNotCount) {
  const std::string file =
      R"({"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":false},)"
      R"("model":{"vocab":{"a":0,"b":1,"abab":2},"merges":[]}})";
  const auto tokenizer = BpeTokenizer::of(file, "f");
  ASSERT_TRUE(tokenizer) << tokenizer.error().text();
  EXPECT_EQ(tokenizer->least_tokens("abba"), 1u);
  EXPECT_EQ(tokenizer->least_tokens("abbab"), 2u);
  EXPECT_EQ(tokenizer->least_tokens("\x04"
                                    "abba\x04\x04\x04"),
            1u);
  EXPECT_EQ(tokens_of(file, "\x04\x04"), std::vector<std::int32_t>());
}

TEST(BpeTokenizer, ATokenMaySpanALineEndAndATextMayNotComeBack) {
  const std::string file = R"({"model":{"vocab":{"\n":0,"a":1,"\n\n":2},"merges":[["\n","\n"]]}})";
  const auto tokenizer = BpeTokenizer::of(file, "f");
  ASSERT_TRUE(tokenizer) << tokenizer.error().text();
  EXPECT_FALSE(tokenizer->keeps_lines());
  std::vector<std::int32_t> cut;
  tokenizer->encode("a\n", cut);
  tokenizer->encode("\na", cut);
  const std::vector<std::int32_t> whole = tokens_of(file, "a\n\na");
  EXPECT_EQ(whole, (std::vector<std::int32_t>{1, 2, 1}));
  EXPECT_NE(cut, whole);
  EXPECT_NE(tokenizer->decode(whole), "a\n\na") << "without a decoder, spaces join tokens";
  EXPECT_TRUE(ByteTokenizer().keeps_lines());
}

}  // namespace
}  // namespace orrery
