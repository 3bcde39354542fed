#include "twin/serving/engine_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

constexpr EngineStepCost kCost = {.step_s = 5.003e-3,
                                  .sequence_s = 3.1e-5,
                                  .context_token_s = 4.7e-8,
                                  .prompt_token_s = 2.9e-5,
                                  .prompt_pair_s = 1.3e-9};

/// A request and when it comes.
struct Arrival {
  EngineRequest request;
  Picoseconds at = 0;
};

struct Times {
  Picoseconds first = 0;
  Picoseconds end = 0;
  friend bool operator==(const Times&, const Times&) = default;
};

/// Chains that the requests of a test borrow.
struct Chains {
  std::deque<std::vector<std::uint32_t>> all;
  std::uint32_t blocks = 0;
};

std::vector<Arrival> random_arrivals(Rng& rng, std::uint32_t count, Chains& chains) {
  std::vector<Arrival> arrivals;
  arrivals.reserve(count);
  Picoseconds at = 0;
  for (std::uint32_t id = 0; id < count; ++id) {
    at += static_cast<Picoseconds>(rng.uniform() * 60e9);
    const auto prompt = static_cast<std::uint32_t>(1 + rng.below(rng.below(4) == 0 ? 3000 : 600));
    std::vector<std::uint32_t>& chain = chains.all.emplace_back();
    if (!arrivals.empty() && rng.below(2) == 0) {
      // It begins as an earlier one does.
      chain = chains.all[rng.below(chains.all.size() - 1)];
      chain.resize(std::min<std::size_t>(chain.size(), 1 + rng.below(4)));
    }
    const std::uint32_t units = prompt / 512 + (prompt % 512 == 0 ? 0 : 1);
    chain.resize(std::min<std::size_t>(chain.size(), prompt / 512));
    while (chain.size() < units) chain.push_back(chains.blocks++);
    arrivals.push_back({.request = {.id = id,
                                    .prompt_tokens = prompt,
                                    .output_tokens = static_cast<std::uint32_t>(
                                        1 + rng.below(rng.below(3) == 0 ? 1 : 200)),
                                    .chain = chain},
                        .at = at});
  }
  return arrivals;
}

std::map<std::uint32_t, Times> play(EngineModel& engine, const std::vector<Arrival>& arrivals) {
  std::map<std::uint32_t, Times> times;
  std::size_t next = 0;
  while (next < arrivals.size() || engine.next() != kNeverPs) {
    const Picoseconds due = next < arrivals.size() ? arrivals[next].at : kNeverPs;
    if (due <= engine.next()) {
      engine.submit(arrivals[next++].request, due);
      continue;
    }
    for (const EngineEvent& event : engine.complete()) {
      Times& each = times[event.id];
      (event.kind == EngineEventKind::kFirst ? each.first : each.end) = event.time;
    }
    EXPECT_TRUE(engine.consistent());
  }
  return times;
}

EngineRules rules_of(EngineDiscipline discipline, std::uint32_t blocks) {
  return {.discipline = discipline,
          .sequences_max = 12,
          .step_tokens = 256,
          .kv_blocks = blocks,
          .context_max = 3300};
}

TEST(EngineModel, ARequestAloneTakesTheSumOfItsSteps) {
  EngineModel engine({.sequences_max = 4, .step_tokens = 256, .kv_blocks = 100}, kCost, 0);
  const auto times =
      play(engine, {{{.id = 7, .prompt_tokens = 300, .output_tokens = 3}, 1'000'000}});
  const auto seconds = [](const EngineStepWork& work) { return seconds_of(kCost, work); };
  const double first = seconds({.prompt = 256, .prompt_context = 256 * 257 / 2.0}) +
                       seconds({.prompt = 44, .prompt_context = 44 * 256 + 44 * 45 / 2.0});
  const double rest =
      seconds({.sequences = 1, .context = 301}) + seconds({.sequences = 1, .context = 302});
  EXPECT_NEAR(seconds_of_ps(times.at(7).first - 1'000'000), first, 1e-9);
  EXPECT_NEAR(seconds_of_ps(times.at(7).end - times.at(7).first), rest, 1e-9);
  EXPECT_EQ(engine.counters().generated_tokens, 3u);
}

TEST(EngineModel, AnAnswerOfOneTokenEndsWithItsPrompt) {
  EngineModel engine({.sequences_max = 4, .step_tokens = 256, .kv_blocks = 100}, kCost, 0);
  const auto times = play(engine, {{{.id = 1, .prompt_tokens = 10, .output_tokens = 1}, 5}});
  EXPECT_EQ(times.at(1).first, times.at(1).end);
  EXPECT_EQ(engine.counters().steps, 1u);
}

TEST(EngineModel, AnArrivalJoinsAtTheEndOfTheStepThatRuns) {
  constexpr EngineStepCost kEven = {.step_s = 1e-3};
  EngineModel engine({.sequences_max = 4, .step_tokens = 256, .kv_blocks = 100}, kEven, 0);
  constexpr Picoseconds kMs = 1'000'000'000;
  const auto times = play(engine, {{{.id = 0, .prompt_tokens = 8, .output_tokens = 100}, 0},
                                   {{.id = 1, .prompt_tokens = 8, .output_tokens = 2}, 5 * kMs / 2},
                                   {{.id = 2, .prompt_tokens = 8, .output_tokens = 1}, 7 * kMs}});
  EXPECT_EQ(times.at(1).first, 4 * kMs);
  EXPECT_EQ(times.at(1).end, 5 * kMs);
  EXPECT_EQ(times.at(2).first, 8 * kMs) << "a step that begins at that time takes it along";
  EXPECT_EQ(times.at(0).end, 100 * kMs);
}

TEST(EngineModel, ManyStepsAtOnceEndAsOneByOne) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    Chains chains;
    const std::vector<Arrival> arrivals = random_arrivals(rng, 60, chains);
    const auto blocks = static_cast<std::uint32_t>(207 + rng.below(400));
    for (const auto& entry : enum_words(EngineDiscipline{})) {
      EngineRules rules = rules_of(entry.value, blocks);
      EngineModel skipping(rules, kCost, chains.blocks);
      rules.steps = EngineRules::Steps::kEach;
      EngineModel each(rules, kCost, chains.blocks);
      const auto skipped = play(skipping, arrivals);
      EXPECT_EQ(skipped, play(each, arrivals)) << entry.word;
      EXPECT_EQ(skipped.size(), arrivals.size()) << "each request ends";
      EXPECT_EQ(skipping.counters().steps, each.counters().steps);
      EXPECT_EQ(skipping.counters().cached_tokens, each.counters().cached_tokens);
      EXPECT_EQ(skipping.counters().preemptions, each.counters().preemptions);
      EXPECT_LT(skipping.counters().events, each.counters().events);
    }
  }
}

/// vLLM's rules once more, a step at a time, without prefixes and as plainly as can be.
class PlainEngine {
 public:
  PlainEngine(const EngineRules& rules, std::vector<Arrival> arrivals)
      : rules_(rules), arrivals_(std::move(arrivals)) {}

  std::map<std::uint32_t, Times> play() {
    while (next_ < arrivals_.size() || !running_.empty() || !waiting_.empty()) {
      if (running_.empty() && waiting_.empty()) now_ = std::max(now_, arrivals_[next_].at);
      while (next_ < arrivals_.size() && arrivals_[next_].at <= now_) {
        waiting_.push_back({.request = arrivals_[next_++].request});
      }
      step();
    }
    return times_;
  }
  std::uint64_t preemptions = 0;

 private:
  struct Text {
    EngineRequest request;
    std::uint32_t computed = 0;
    std::uint32_t planned = 0;
    std::uint32_t generated = 0;
  };

  [[nodiscard]] std::uint32_t used() const {
    std::uint32_t blocks = 0;
    for (const Text& each : running_) blocks += kv_blocks_of(each.computed + each.planned);
    return blocks;
  }
  void preempt() {
    Text text = running_.back();
    running_.pop_back();
    text.computed = text.planned = 0;
    waiting_.push_front(text);
    ++preemptions;
  }

  void step() {
    std::uint32_t budget = rules_.step_tokens;
    bool preempted = false;
    for (std::size_t i = 0; i < running_.size(); ++i) {
      Text& text = running_[i];
      text.planned = std::min(budget, text.request.prompt_tokens + text.generated - text.computed);
      while (i < running_.size() && used() > rules_.kv_blocks) {
        preempt();
        preempted = true;
      }
      if (i < running_.size()) budget -= running_[i].planned;
    }
    while (!preempted && !waiting_.empty() && running_.size() < rules_.sequences_max &&
           budget > 0) {
      Text text = waiting_.front();
      text.planned = std::min(budget, text.request.prompt_tokens + text.generated);
      if (used() + kv_blocks_of(text.planned) > rules_.kv_blocks) break;
      waiting_.pop_front();
      running_.push_back(text);
      budget -= text.planned;
    }
    now_ += length();
    finish();
  }

  [[nodiscard]] Picoseconds length() const {
    Picoseconds sum = picoseconds(kCost.step_s);
    for (const Text& each : running_) {
      const auto n = static_cast<Picoseconds>(each.planned);
      const auto before = static_cast<Picoseconds>(each.computed);
      const bool answers = each.generated > 0 && each.computed >= each.request.prompt_tokens;
      if (answers && n == 1) {
        sum += picoseconds(kCost.sequence_s) + (before + 1) * picoseconds(kCost.context_token_s);
      } else {
        sum += n * picoseconds(kCost.prompt_token_s) +
               (n * before + n * (n + 1) / 2) * picoseconds(kCost.prompt_pair_s);
      }
    }
    return sum;
  }

  void finish() {
    for (Text& each : running_) {
      each.computed += each.planned;
      each.planned = 0;
      if (each.computed < each.request.prompt_tokens + each.generated) continue;
      if (++each.generated == 1) times_[each.request.id].first = now_;
      if (each.generated == each.request.output_tokens) times_[each.request.id].end = now_;
    }
    std::erase_if(running_,
                  [](const Text& each) { return each.generated == each.request.output_tokens; });
  }

  EngineRules rules_;
  std::vector<Arrival> arrivals_;
  std::size_t next_ = 0;
  Picoseconds now_ = 0;
  std::deque<Text> waiting_;
  std::vector<Text> running_;
  std::map<std::uint32_t, Times> times_;
};

TEST(EngineModel, EndsEachRequestWhenThePlainEngineDoes) {
  std::uint64_t preemptions = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    Chains chains;
    const std::vector<Arrival> arrivals = random_arrivals(rng, 50, chains);
    EngineRules rules =
        rules_of(EngineDiscipline::kVllm, static_cast<std::uint32_t>(210 + rng.below(300)));
    rules.prefixes = EngineRules::Prefixes::kIgnored;
    EngineModel engine(rules, kCost, chains.blocks);
    PlainEngine plain(rules, arrivals);
    EXPECT_EQ(play(engine, arrivals), plain.play());
    EXPECT_EQ(engine.counters().preemptions, plain.preemptions);
    preemptions += plain.preemptions;
  }
  EXPECT_GT(preemptions, 100u) << "the rule is put to the test";
}

TEST(EngineModel, FindsAPromptAgainUntilItsBlocksAreNeeded) {
  const std::vector<std::uint32_t> chain = {0, 1, 2};
  const std::vector<std::uint32_t> other = {3, 4, 5, 6};
  EngineModel engine({.sequences_max = 4, .step_tokens = 4096, .kv_blocks = 160}, kCost, 7);
  const auto cached = [&](const EngineRequest& request) {
    const std::uint64_t before = engine.counters().cached_tokens;
    const Picoseconds now = engine.counters().busy + 1;
    engine.submit(request, now);
    while (engine.next() != kNeverPs) (void)engine.complete();
    EXPECT_TRUE(engine.consistent());
    return engine.counters().cached_tokens - before;
  };
  const EngineRequest three{.id = 0, .prompt_tokens = 1400, .output_tokens = 2, .chain = chain};
  EXPECT_EQ(cached(three), 0u);
  EXPECT_EQ(cached(three), 1392u) << "all full blocks";
  EngineRequest even = three;
  even.prompt_tokens = 1024;
  even.chain = std::span(chain).first(2);
  EXPECT_EQ(cached(even), 1008u) << "the last token is computed in any case";
  // 88 of 160 blocks are of the first prompt; 127 are needed, so it loses its end.
  EXPECT_EQ(cached({.id = 1, .prompt_tokens = 2000, .output_tokens = 32, .chain = other}), 0u);
  const std::uint64_t left = cached(three);
  EXPECT_GT(left, 0u);
  EXPECT_LT(left, 640u);
  EXPECT_EQ(left % 16, 0u);
}

TEST(EngineModel, ASlotKeepsThePromptThatItComputedLast) {
  const std::vector<std::uint32_t> a = {0, 1, 2};
  const std::vector<std::uint32_t> b = {3, 4, 5};
  EngineModel engine({.discipline = EngineDiscipline::kSlots,
                      .sequences_max = 1,
                      .step_tokens = 4096,
                      .context_max = 4096},
                     kCost, 6);
  EXPECT_FALSE(engine.fits(4000, 97));
  std::vector<std::uint32_t> found;
  Picoseconds now = 0;
  for (const auto& chain : {a, a, b, a}) {
    engine.submit({.id = 0, .prompt_tokens = 1500, .output_tokens = 4, .chain = chain}, now);
    while (engine.next() != kNeverPs) {
      now = engine.next();
      for (const EngineEvent& event : engine.complete()) {
        if (event.kind == EngineEventKind::kFirst) found.push_back(event.cached_tokens);
      }
    }
  }
  EXPECT_EQ(found, (std::vector<std::uint32_t>{0, 1499, 0, 0}));
}

TEST(EngineModel, ACrashReturnsWhatWasGenerated) {
  constexpr EngineStepCost kEven = {.step_s = 1e-3};
  EngineModel engine({.sequences_max = 1, .step_tokens = 64, .kv_blocks = 100}, kEven, 0);
  constexpr Picoseconds kMs = 1'000'000'000;
  engine.submit({.id = 3, .prompt_tokens = 16, .output_tokens = 50}, 0);
  engine.submit({.id = 4, .prompt_tokens = 16, .output_tokens = 50}, 0);
  while (engine.next() <= kMs) (void)engine.complete();
  const std::vector<EngineRequest> lost = engine.fail(5 * kMs + 1);
  ASSERT_EQ(lost.size(), 2u);
  EXPECT_EQ(lost[0].id, 3u);
  EXPECT_EQ(lost[0].generated, 5u) << "one with the prompt, four steps";
  EXPECT_EQ(lost[1].generated, 0u);
  EXPECT_EQ(engine.next(), kNeverPs);
  EXPECT_TRUE(engine.consistent());
  // The rest of the answer, elsewhere: a prompt of 21 tokens, then 44 steps.
  engine.submit(lost[0], 10 * kMs);
  Picoseconds end = 0;
  while (engine.next() != kNeverPs) {
    end = engine.next();
    for (const EngineEvent& event : engine.complete()) {
      EXPECT_EQ(event.kind, EngineEventKind::kEnd) << "its first token was seen before";
    }
  }
  EXPECT_EQ(end, 55 * kMs);
}

}  // namespace
}  // namespace orrery
