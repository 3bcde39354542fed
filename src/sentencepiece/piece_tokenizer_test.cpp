#include "sentencepiece/piece_tokenizer.hpp"

#include <sentencepiece_trainer.h>

#include "base/numbers/rng.hpp"
#include "sentencepiece/small_model_test.hpp"

namespace orrery {
namespace {

class PieceTokenizerTest : public DirectoryTest {
 protected:
  std::vector<std::int32_t> tokens_of(std::string_view text) const {
    std::vector<std::int32_t> tokens;
    tokenizer_.encode(text, tokens);
    return tokens;
  }
  std::string error_of(const std::string& name) const {
    const auto opened = PieceTokenizer::open(root_ / name);
    if (opened) return "";
    EXPECT_EQ(opened.error().kind, ErrorKind::kInput);
    std::string text = opened.error().text();
    for (std::size_t at = 0; (at = text.find(root_.string())) != std::string::npos;) {
      text.replace(at, root_.string().size(), "ROOT");
    }
    return text;
  }
  /// Trains a model with the library alone, from a text that it reads itself.
  std::string made_by_library(std::unordered_map<std::string, std::string> how) const {
    how.insert({{"input", "/usr/include/stdio.h"}, {"vocab_size", "400"}, {"minloglevel", "4"}});
    std::string model;
    const auto done = sentencepiece::SentencePieceTrainer::Train(how, nullptr, &model);
    EXPECT_TRUE(done.ok()) << done.ToString();
    return model;
  }

  PieceTokenizer tokenizer_ = must_have(PieceTokenizer::of(small_model(), "small"));
};

TEST_F(PieceTokenizerTest, GivesBackEveryFileToTheByte) {
  std::size_t files = 0;
  std::size_t bytes = 0;
  std::size_t tokens = 0;
  std::error_code failed;
  for (std::filesystem::recursive_directory_iterator at("/usr/include", failed), end;
       !failed && at != end && files < 100; at.increment(failed)) {
    if (!at->is_regular_file() || at->file_size() > 50'000) continue;
    std::ifstream file(at->path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::vector<std::int32_t> encoded = tokens_of(text);
    ASSERT_EQ(tokenizer_.decode(encoded), text) << at->path();
    ++files;
    bytes += text.size();
    tokens += encoded.size();
  }
  EXPECT_GT(files, 10u);
  EXPECT_LT(tokens, bytes * 2 / 3) << "pieces are longer than bytes";
}

TEST_F(PieceTokenizerTest, ATextHasAtLeastTheTokensThatItsBytesNeed) {
  std::size_t longest = 0;
  for (std::int32_t token = 0; token < tokenizer_.kinds(); ++token) {
    longest = std::max(longest, tokenizer_.decode(std::array{token}).size());
  }
  ASSERT_GT(longest, 3u);
  EXPECT_EQ(tokenizer_.least_tokens(std::string(7 * longest, 'x')), 7u);
  EXPECT_EQ(tokenizer_.least_tokens(std::string(7 * longest + 1, 'x')), 8u);
}

TEST_F(PieceTokenizerTest, GivesBackWhatPiecesCannotSay) {
  std::vector<std::string> texts{
      "",
      " ",
      "   two  and\tthree   \r\n\n\n  ",
      "\xe2\x96\x81 is no space, \xe2\x96\x81\xe2\x96\x81",
      "Gr\xc3\xbc\xc3\x9f dich \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x8c\x8d",
      "<unk> <s> </s> <0x41> \xe2\x96\x85 \xef\xbf\xbd \xe2\x81\x87",
      std::string("a\0b\0", 4),
      "cut \xe4\xbd",
      "\xed\xa0\x80 \xc0\x80 \xff\xfe",
      std::string(70'000, ' '),
      std::string(70'001, '\xe4'),
      std::string(3 * Tokenizer::kLineMax + 5, 'x') + "\ny"};
  Rng rng(5);
  for (int i = 0; i < 50; ++i) {
    std::string text;
    for (std::uint64_t size = rng.below(3'000); size > 0; --size) {
      text.push_back(static_cast<char>(rng.next_u64() >> 56));
    }
    texts.push_back(std::move(text));
  }
  for (const std::string& text : texts) {
    const std::vector<std::int32_t> tokens = tokens_of(text);
    ASSERT_EQ(tokenizer_.decode(tokens), text);
    for (const std::int32_t token : tokens) {
      ASSERT_TRUE(token >= 0 && token < tokenizer_.kinds()) << token;
    }
  }
}

TEST_F(PieceTokenizerTest, EncodesTheSameWhereverATextIsCutBehindALineEnd) {
  std::ifstream file("/usr/include/stdio.h");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  text.resize(5'000);
  const std::vector<std::int32_t> whole = tokens_of(text);
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
    std::vector<std::int32_t> parts = tokens_of(text.substr(0, at + 1));
    tokenizer_.encode(text.substr(at + 1), parts);
    ASSERT_EQ(parts, whole) << at;
  }
}

TEST_F(PieceTokenizerTest, DecodesNothingOfTokensWithoutText) {
  ASSERT_TRUE(tokenizer_.end_of_text());
  const std::int32_t end = *tokenizer_.end_of_text();
  std::vector<std::int32_t> tokens{-1, 0, end, 512, 1 << 30};
  EXPECT_EQ(tokenizer_.decode(tokens), "");
  tokenizer_.encode("int", tokens);
  EXPECT_EQ(tokenizer_.decode(tokens), "int");
}

TEST_F(PieceTokenizerTest, SaysWhatIsNoModel) {
  EXPECT_EQ(error_of("lost.model"),
            "tokenizer \"ROOT/lost.model\": expected a SentencePiece model: No such file or "
            "directory");
  write("empty.model", "");
  EXPECT_EQ(error_of("empty.model"),
            "tokenizer \"ROOT/empty.model\": expected a SentencePiece model, the file is empty");
  const std::string refused = "expected a SentencePiece model, and the library refuses it: ";
  write("text.model", "this is a text\n");
  EXPECT_EQ(error_of("text.model").find("tokenizer \"ROOT/text.model\": " + refused), 0u)
      << error_of("text.model");
  write("cut.model", std::string_view(small_model()).substr(0, small_model().size() / 2));
  EXPECT_EQ(error_of("cut.model").find("tokenizer \"ROOT/cut.model\": " + refused), 0u)
      << error_of("cut.model");
  // Another message in the same wire format: field 2 a number, field 9 a text.
  write("other.model", std::string_view("\x10\x07\x4a\x05hello", 9));
  EXPECT_EQ(error_of("other.model").find("tokenizer \"ROOT/other.model\": " + refused), 0u)
      << error_of("other.model");
  write("pieces.model", made_by_library({{"model_type", "unigram"}}));
  EXPECT_EQ(error_of("pieces.model"),
            "tokenizer \"ROOT/pieces.model\": 256 of 256 bytes have no token, expected a model "
            "that was made with byte_fallback");
  EXPECT_EQ(error_of("").substr(0, 20), "tokenizer \"ROOT/\": e") << "a directory";
}

TEST_F(PieceTokenizerTest, LeavesOutHowAModelNormalises) {
  for (const char* type : {"unigram", "bpe", "char"}) {
    const std::string model = made_by_library({{"model_type", type},
                                               {"byte_fallback", "true"},
                                               {"normalization_rule_name", "nmt_nfkc_cf"},
                                               {"user_defined_symbols", "<mask>,a b"}});
    const PieceTokenizer other = must_have(PieceTokenizer::of(model, type));
    const std::string text = "  Full\xef\xbc\xb7idth,  <mask> a b \tTwo\n";
    std::vector<std::int32_t> tokens;
    other.encode(text, tokens);
    EXPECT_EQ(other.decode(tokens), text) << type;
  }
}

TEST_F(PieceTokenizerTest, OpensNoArbitraryBytesWithoutAnErrorOrAWholeTokenizer) {
  Rng rng(11);
  int opened = 0;
  const std::string text = "int main(void) { return 0; }\n";
  for (int i = 0; i < 500; ++i) {
    std::string model = small_model();
    const auto place = [&] { return rng.below(model.size()); };
    for (std::uint64_t edits = 1 + rng.below(2); edits > 0; --edits) {
      const std::uint64_t at = place();
      switch (rng.below(6)) {
        case 0:
          model.resize(1 + at);
          break;
        case 1:
          model.erase(at, 1 + rng.below(20));
          break;
        case 2:
          model.insert(at, 1 + rng.below(8), static_cast<char>(rng.next_u64() >> 56));
          break;
        default:
          model[at] = static_cast<char>(model[at] ^ (1 << rng.below(8)));
      }
      if (model.empty()) model = "x";
    }
    const auto tokenizer = PieceTokenizer::of(model, "mutated");
    if (!tokenizer) {
      ASSERT_EQ(tokenizer.error().text().find("tokenizer \"mutated\": "), 0u);
      continue;
    }
    ++opened;
    std::vector<std::int32_t> tokens;
    tokenizer->encode(text, tokens);
    ASSERT_EQ(tokenizer->decode(tokens), text) << "of mutation " << i;
  }
  EXPECT_GT(opened, 50) << "some mutations leave a model";
}

}  // namespace
}  // namespace orrery
