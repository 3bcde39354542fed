#include "inference/engine/inference_engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "inference/engine/served_model_test.hpp"
#include "tokens/tokenizer.hpp"

namespace orrery {
namespace {

using Prompt = std::vector<std::int32_t>;

/// An engine of a small model, and what it generated.
class EngineForTest {
 public:
  explicit EngineForTest(TransformerFamily family, const EngineLimits& limits = {},
                         WeightFormat weights = WeightFormat::kF32)
      : model_(ServedModelForTest::tiny(family), {.weights = weights}),
        engine_(model_.packed(), bytes_, limits) {}

  GenerationId submit(const Prompt& prompt, std::int64_t tokens) {
    return engine_.submit({.prompt = prompt, .sampling = {.tokens = tokens, .temperature = 0}});
  }

  EngineStep step() {
    EngineStep step = engine_.step();
    for (const GenerationDelta& delta : step.deltas) {
      tokens_[delta.id].push_back(delta.token);
      texts_[delta.id] += delta.text;
      last_[delta.id] = delta;
    }
    EXPECT_TRUE(engine_.blocks().consistent());
    return step;
  }
  void finish() {
    for (int i = 0; i < 10'000 && !engine_.idle(); ++i) (void)step();
    EXPECT_TRUE(engine_.idle());
    EXPECT_EQ(engine_.blocks().used(), 0U);
  }

  [[nodiscard]] const Prompt& tokens(GenerationId id) { return tokens_[id]; }
  [[nodiscard]] const std::string& text(GenerationId id) { return texts_[id]; }
  [[nodiscard]] const GenerationDelta& last(GenerationId id) { return last_[id]; }
  [[nodiscard]] InferenceEngine& engine() { return engine_; }
  [[nodiscard]] const ServedModelForTest& model() const { return model_; }

 private:
  ServedModelForTest model_;
  ByteTokenizer bytes_;
  InferenceEngine engine_;
  std::map<GenerationId, Prompt> tokens_;
  std::map<GenerationId, std::string> texts_;
  std::map<GenerationId, GenerationDelta> last_;
};

constexpr TransformerFamily kGpt = TransformerFamily::kGpt;
constexpr TransformerFamily kLlama = TransformerFamily::kLlama;

TEST(InferenceEngine, GreedyTokensAreThoseOfTheTrainersGenerate) {
  for (const TransformerFamily family : {kGpt, kLlama}) {
    EngineForTest test(family);
    for (const std::size_t size : {1U, 2U, 15U, 16U, 17U, 33U, 60U}) {
      const Prompt prompt = ServedModelForTest::random_tokens(size, size);
      const GenerationId id = test.submit(prompt, 30);
      test.finish();
      EXPECT_EQ(test.tokens(id), test.model().generated(prompt, {.tokens = 30, .temperature = 0}))
          << size;
    }
  }
}

TEST(InferenceEngine, SampledTokensAreThoseOfTheTrainersGenerate) {
  EngineForTest test(kLlama);
  const Prompt prompt = ServedModelForTest::random_tokens(21, 5);
  const GenerateOptions options{.tokens = 40, .temperature = 0.7, .top_k = 20, .seed = 9};
  const GenerationId id = test.engine().submit({.prompt = prompt, .sampling = options});
  test.finish();
  EXPECT_EQ(test.tokens(id), test.model().generated(prompt, options));
}

/// Generates texts together and each alone, and compares them.
void check_together_and_alone(TransformerFamily family, WeightFormat weights) {
  // A prompt takes several steps beside the decoding of others.
  EngineForTest together(family, {.slots = 8, .step_tokens = 12}, weights);
  EngineForTest alone(family, {}, weights);
  std::vector<std::pair<GenerationId, GenerationId>> ids;
  for (std::size_t i = 0; i < 12; ++i) {
    const Prompt prompt = ServedModelForTest::random_tokens(1 + 7 * i, i);
    const auto tokens = static_cast<std::int64_t>(5 + 3 * i);
    ids.emplace_back(together.submit(prompt, tokens), alone.submit(prompt, tokens));
    alone.finish();
  }
  together.finish();
  for (const auto& [one, other] : ids) EXPECT_EQ(together.tokens(one), alone.tokens(other));
}

TEST(InferenceEngine, TextsGeneratedTogetherEqualTextsGeneratedAloneInEveryFormat) {
  for (const TransformerFamily family : {kGpt, kLlama}) {
    for (const WeightFormat weights :
         {WeightFormat::kF32, WeightFormat::kBf16, WeightFormat::kInt8}) {
      check_together_and_alone(family, weights);
    }
  }
}

/// The share of next tokens in which a format agrees with f32.
double agreeing(TransformerFamily family, WeightFormat weights) {
  EngineForTest exact(family);
  EngineForTest rounded(family, {}, weights);
  int equal = 0;
  constexpr int kPrompts = 200;
  for (std::uint64_t seed = 0; seed < kPrompts; ++seed) {
    const Prompt prompt = ServedModelForTest::random_tokens(20, seed);
    const GenerationId one = exact.submit(prompt, 1);
    const GenerationId other = rounded.submit(prompt, 1);
    exact.finish();
    rounded.finish();
    equal += exact.tokens(one) == rounded.tokens(other) ? 1 : 0;
  }
  return equal / static_cast<double>(kPrompts);
}

TEST(InferenceEngine, FormatsOfLessMemoryAgreeWithF32OnNearlyAllTokens) {
  for (const TransformerFamily family : {kGpt, kLlama}) {
    EXPECT_GE(agreeing(family, WeightFormat::kBf16), 0.95);
    EXPECT_GE(agreeing(family, WeightFormat::kInt8), 0.9);
  }
}

TEST(InferenceEngine, ATokenThatEndsTheTextIsItsLast) {
  EngineForTest test(kLlama);
  const Prompt prompt = ServedModelForTest::random_tokens(21, 5);
  const GenerationId whole = test.submit(prompt, 20);
  test.finish();
  const std::int32_t end = test.tokens(whole)[7];
  const auto at = std::ranges::find(test.tokens(whole), end) - test.tokens(whole).begin();
  const GenerationId cut = test.engine().submit(
      {.prompt = prompt, .sampling = {.tokens = 20, .temperature = 0}, .ends = {999, end}});
  test.finish();
  EXPECT_EQ(test.last(cut).finish, FinishReason::kStop);
  EXPECT_EQ(test.tokens(cut).size(), static_cast<std::size_t>(at) + 1);
}

TEST(InferenceEngine, AStepDecodesAllRunningTextsBesideAPartOfAPrompt) {
  EngineForTest test(kGpt, {.slots = 4, .step_tokens = 10});
  for (std::uint64_t i = 0; i < 3; ++i) test.submit(ServedModelForTest::random_tokens(3, i), 50);
  EXPECT_EQ(test.step().prefill_tokens, 9U);
  test.submit(ServedModelForTest::random_tokens(40, 9), 5);
  const EngineStep step = test.step();
  EXPECT_EQ(step.decode_sequences, 3U);
  EXPECT_EQ(step.prefill_tokens, 7U);
  EXPECT_EQ(step.context_tokens, 3U * 4 + 7);
  EXPECT_EQ(step.decode_context, 3U * 4);
  EXPECT_EQ(step.prefill_pairs, 7U * 8 / 2);
}

TEST(InferenceEngine, APromptThatBeginsLikeAnotherFindsItsBlocks) {
  EngineForTest test(kLlama);
  const Prompt prompt = ServedModelForTest::random_tokens(50, 1);
  const GenerationId first = test.submit(prompt, 20);
  test.finish();
  EXPECT_EQ(test.last(first).cached_tokens, 0U);
  const GenerationId second = test.submit(prompt, 20);
  test.finish();
  EXPECT_EQ(test.last(second).cached_tokens, 48U);
  EXPECT_EQ(test.tokens(first), test.tokens(second));
  Prompt longer = prompt;
  longer.insert(longer.end(), test.tokens(first).begin(), test.tokens(first).end());
  const GenerationId third = test.submit(longer, 3);
  test.finish();
  EXPECT_EQ(test.last(third).cached_tokens, 64U);
  EXPECT_EQ(test.engine().counters().prompt_tokens, 50U + 50 + 70);
  EXPECT_EQ(test.engine().counters().cached_tokens, 48U + 64);
  // The last token of a prompt is computed even if all of its blocks are known.
  const GenerationId whole = test.submit({prompt.begin(), prompt.begin() + 32}, 1);
  test.finish();
  EXPECT_EQ(test.last(whole).cached_tokens, 16U);
}

TEST(InferenceEngine, TextsThatLoseTheirBlocksEndTheSame) {
  EngineForTest scarce(kGpt, {.slots = 6, .step_tokens = 32, .blocks = 9});
  EngineForTest ample(kGpt);
  std::vector<std::pair<GenerationId, GenerationId>> ids;
  for (std::uint64_t i = 0; i < 6; ++i) {
    const Prompt prompt = ServedModelForTest::random_tokens(10 + i, i);
    ids.emplace_back(scarce.submit(prompt, 60), ample.submit(prompt, 60));
  }
  scarce.finish();
  ample.finish();
  EXPECT_GT(scarce.engine().counters().preemptions, 0U);
  EXPECT_EQ(ample.engine().counters().preemptions, 0U);
  for (const auto& [one, other] : ids) EXPECT_EQ(scarce.tokens(one), ample.tokens(other));
}

TEST(InferenceEngine, CancelledTextsFreeTheirBlocksAndLeaveTheOthersAlone) {
  Rng rng(3);
  EngineForTest test(kLlama, {.slots = 5, .step_tokens = 24, .blocks = 14});
  EngineForTest alone(kLlama);
  std::map<GenerationId, std::pair<Prompt, std::int64_t>> asked;
  std::vector<GenerationId> alive;
  for (int round = 0; round < 300; ++round) {
    if (rng.below(3) == 0) {
      // Few prompts, so that blocks are shared.
      const Prompt prompt = ServedModelForTest::random_tokens(1 + rng.below(5) * 19, rng.below(3));
      const auto tokens = static_cast<std::int64_t>(1 + rng.below(20));
      alive.push_back(test.submit(prompt, tokens));
      asked[alive.back()] = {prompt, tokens};
    }
    if (!alive.empty() && rng.below(6) == 0) {
      const std::size_t which = rng.below(alive.size());
      test.engine().cancel(alive[which]);
      asked.erase(alive[which]);
      alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(which));
      EXPECT_TRUE(test.engine().blocks().consistent());
    }
    const EngineStep step = test.step();
    EXPECT_LE(step.prefill_tokens + step.decode_sequences, 24U);
  }
  test.finish();
  EXPECT_GT(asked.size(), 20U);
  for (const auto& [id, request] : asked) {
    if (test.last(id).finish == FinishReason::kNone) continue;
    const GenerationId other = alone.submit(request.first, request.second);
    alone.finish();
    EXPECT_EQ(test.tokens(id), alone.tokens(other));
  }
}

TEST(InferenceEngine, ATextEndsBeforeAStopStringAndAtTheEndOfTheContext) {
  EngineForTest test(kGpt);
  const Prompt prompt = ServedModelForTest::random_tokens(8, 2);
  const GenerationId whole = test.submit(prompt, 1'000);
  test.finish();
  EXPECT_EQ(test.last(whole).finish, FinishReason::kLength);
  EXPECT_EQ(test.last(whole).tokens, 92U);
  // A stop string of the text itself, as far as its bytes are characters.
  const std::string& text = test.text(whole);
  std::size_t begin = 4;
  while (begin + 2 < text.size() && (text[begin] <= ' ' || text[begin + 1] <= ' ' ||
                                     text.find(text.substr(begin, 2)) < begin)) {
    ++begin;
  }
  const std::string stop = text.substr(begin, 2);
  const GenerationId stopped = test.engine().submit(
      {.prompt = prompt, .sampling = {.tokens = 1'000, .temperature = 0}, .stops = {stop}});
  test.finish();
  EXPECT_EQ(test.last(stopped).finish, FinishReason::kStop);
  EXPECT_EQ(test.text(stopped), text.substr(0, begin));
}

TEST(EngineLimits, ImpossibleLimitsAreRefused) {
  const TransformerConfig config = ServedModelForTest::tiny(kGpt);
  EXPECT_EQ(blocks_for_one(config), 7U);
  EXPECT_TRUE(check(EngineLimits{}, config));
  EXPECT_TRUE(check({.blocks = 7}, config));
  EXPECT_FALSE(check({.blocks = 6}, config));
  EXPECT_FALSE(check({.slots = 0}, config));
  EXPECT_FALSE(check({.slots = 9, .step_tokens = 8}, config));
}

}  // namespace
}  // namespace orrery
