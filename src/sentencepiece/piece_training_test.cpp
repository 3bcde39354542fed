#include "sentencepiece/piece_training.hpp"

#include "base/system/real_env.hpp"
#include "runtime/text/token_cache.hpp"
#include "runtime/training/trainer_rank.hpp"
#include "runtime/training/training_text.hpp"
#include "sentencepiece/small_model_test.hpp"

namespace orrery {
namespace {

class PieceTrainingTest : public DirectoryTest {
 protected:
  static TextCorpus corpus_of(const std::vector<std::string>& paths) {
    return must_have(TextCorpus::open({.paths = paths}));
  }
  std::string error_of(const std::string& text, std::int64_t kinds) const {
    const auto made = train_pieces(corpus_of({write("text", text)}), kinds);
    return made ? "" : made.error().text();
  }

  /// Returns a spec of two layers on the small text.
  TrainingSpec spec(const std::string& name) const {
    TrainingSpec spec;
    spec.model = {.layers = 2, .width = 32, .heads = 2, .vocab = kSmallKinds, .sequence = 16};
    spec.data.paths = small_text();
    spec.batch = {.sequences = 4, .shards = 2, .micro = 2};
    spec.checkpoint = {.directory = root_ / (name + "-saved"), .every = 5};
    spec.steps = 12;
    spec.output = root_ / name;
    return spec;
  }

  /// Runs one attempt, which is asked to end after `steps` steps; returns the summary of its text.
  std::string train(TrainingSpec spec, std::uint32_t attempt, int steps) const {
    const PieceTokenizer tokenizer = must_have(PieceTokenizer::of(small_model(), "small"));
    spec.data.tokenizer_identity = tokenizer.identity();
    const TrainingText text = must_have(open_training_text(spec, tokenizer, root_ / "cache"));
    const auto real = must_have(RealEnv::create());
    TrainingSeat seat{.attempt = attempt};
    seat.group.gang = spec.output;
    seat.group.world = 1;
    auto run = must_have(TrainerRank::start(spec, text.stream, real->env(), seat));
    const TrainingOutcome outcome = must_have(run->run([&] { return steps-- <= 0; }));
    EXPECT_EQ(outcome.end == TrainingOutcome::End::kDone, outcome.steps == spec.steps);
    return text.summary;
  }

  /// Returns the state hash of the last step.
  static std::string hash_of(const TrainingSpec& spec) {
    std::ifstream file(spec.output + "/events.jsonl");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t at = text.rfind("state_sha256");
    return at == std::string::npos ? "" : text.substr(at + 16, 64);
  }
};

TEST_F(PieceTrainingTest, MakesTheSameModelOfJustSoManyTokens) {
  const PieceTokenizer tokenizer = must_have(PieceTokenizer::of(small_model(), "small"));
  EXPECT_EQ(tokenizer.kinds(), kSmallKinds);
  EXPECT_EQ(must_have(train_pieces(corpus_of(small_text()), kSmallKinds)), small_model());
}

TEST_F(PieceTrainingTest, SaysWhatATextCannotGive) {
  EXPECT_EQ(error_of("a text\n", 1000),
            "this text gives a tokenizer of 273 tokens, too few for 1000: take more text or fewer "
            "tokens");
  EXPECT_EQ(error_of("a text\n", 261),
            "this text gives no tokenizer of 261 tokens: Vocabulary size is smaller than "
            "required_chars. 261 vs 265.");
  EXPECT_EQ(error_of("a text\n", 259), "a tokenizer of 259 tokens: expected 260 to 1048576");
  EXPECT_EQ(error_of("\xff\xfe\n", 300).find("this text gives no tokenizer of 300 tokens: "), 0u)
      << error_of("\xff\xfe\n", 300);
}

TEST_F(PieceTrainingTest, ATextHasTheTokensOfItsFiles) {
  const PieceTokenizer tokenizer = must_have(PieceTokenizer::of(small_model(), "small"));
  // A line of more than a slice, whose parts are encoded separately.
  std::string line;
  for (int i = 0; line.size() < 17 * Tokenizer::kLineMax; ++i) line += fmt::format("{} int ", i);
  const std::vector<std::string> files{"/usr/include/stdio.h", write("long", line + "\nend")};
  std::vector<std::int32_t> expected;
  for (const std::string& path : {files[1], files[0]}) {
    std::ifstream file(path, std::ios::binary);
    tokenizer.encode(std::string{std::istreambuf_iterator<char>(file), {}}, expected);
    expected.push_back(*tokenizer.end_of_text());
  }
  // Paths are sorted, whatever the directory for temporary files is.
  if (files[0] < files[1]) {
    const auto middle = std::ranges::find(expected, *tokenizer.end_of_text()) + 1;
    std::ranges::rotate(expected, middle);
  }
  const TokenizedText text = tokenize(corpus_of(files), tokenizer, "");
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(text.corpus.tokens()));
  text.corpus.read(0, tokens);
  EXPECT_EQ(tokens, expected);
}

TEST_F(PieceTrainingTest, ATrainingGoesOnExactlyWhereItWas) {
  const TrainingSpec whole = spec("whole");
  EXPECT_NE(train(whole, 1, 100).find("tokens of small (512 kinds; made now)"), std::string::npos);
  const TrainingSpec broken = spec("broken");
  EXPECT_NE(train(broken, 1, 4).find("found on this node"), std::string::npos);
  std::filesystem::remove_all(root_ / "cache");
  EXPECT_NE(train(broken, 2, 100).find("made now"), std::string::npos);
  EXPECT_EQ(hash_of(whole).size(), 64u);
  EXPECT_EQ(hash_of(broken), hash_of(whole));
}

TEST_F(PieceTrainingTest, ATrainingGoesOnWithNoOtherTokens) {
  const TrainingSpec begun = spec("begun");
  const PieceTokenizer tokenizer = must_have(PieceTokenizer::of(small_model(), "small"));
  EXPECT_TRUE(check_tokens_saved(begun, tokenizer));
  EXPECT_TRUE(check_tokens_saved(begun, ByteTokenizer()));
  (void)train(begun, 1, 100);
  EXPECT_TRUE(check_tokens_saved(begun, tokenizer));
  const Status bytes = check_tokens_saved(begun, ByteTokenizer());
  ASSERT_FALSE(bytes);
  EXPECT_NE(bytes.error().text().find("was trained on the tokenizer of SHA-256 " +
                                      tokenizer.identity() + ", this is bytes"),
            std::string::npos)
      << bytes.error().text();
}

TEST_F(PieceTrainingTest, AModelHasARowForEachToken) {
  TrainingSpec small = spec("small");
  const PieceTokenizer tokenizer = must_have(PieceTokenizer::of(small_model(), "small"));
  for (const std::int64_t vocab : {512, 600}) {
    small.model.vocab = vocab;
    EXPECT_TRUE(check_vocabulary(small, tokenizer));
  }
  small.model.vocab = 511;
  const Status fits = check_vocabulary(small, tokenizer);
  ASSERT_FALSE(fits);
  EXPECT_EQ(fits.error().text(),
            "model.vocab: expected at least 512, the tokens of small; found 511");
}

}  // namespace
}  // namespace orrery
