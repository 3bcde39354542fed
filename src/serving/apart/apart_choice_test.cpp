// serving/apart/apart_choice_test.cpp - when prompts are computed elsewhere, in single cases and as
// properties of random states.
#include "serving/apart/apart_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

Instant at(double seconds) { return Instant() + Duration::from_seconds(1000 + seconds); }

/// Replicas of these duties, jobs from 1, with 8 slots: 1000 prompt tokens a second, a step in 10
/// ms. A token's cache goes from one to another in 20 us.
RouteTable table_of(const std::vector<ReplicaDuty>& duties) {
  RouteTable table;
  table.services.push_back({.id = 1, .name = "chat", .model = "m"});
  for (std::uint64_t job = 1; job <= duties.size(); ++job) {
    table.services[0].replicas.push_back({.job = job,
                                          .attempt = 1,
                                          .endpoint = "h:1",
                                          .slots = 8,
                                          .pace = {1000, 0.010, 0.010},
                                          .duty = duties[job - 1],
                                          .transfer = RoutedTransfer{2e5, 1e10}});
  }
  return table;
}

constexpr ReplicaDuty kP = ReplicaDuty::kPrefill;
constexpr ReplicaDuty kD = ReplicaDuty::kDecode;
constexpr ReplicaDuty kB = ReplicaDuty::kBoth;

RouteQuery query_of(std::uint64_t prompt) {
  return {.prompt_tokens = prompt,
          .output_tokens = 100,
          .now = at(0),
          .prompt_places = PromptPlaces::kAny};
}

/// A request that is answered already has so many tokens left.
RouteCharge put_answer(RouterState& state, std::uint32_t slot, std::uint64_t tokens) {
  return state.charge(slot, {.work = {.prompt_tokens = 0, .output_tokens = tokens}}, {}, at(0));
}

RouteCharge put_prompt(RouterState& state, std::uint32_t slot, std::uint64_t tokens) {
  return state.charge(slot, {.work = {.prompt_tokens = tokens}}, {}, at(0));
}

TEST(ApartChoice, AnIdleReplicaComputesItsPromptItself) {
  RouterState state({});
  state.set_table(table_of({kP, kD}));
  const RouteDecision decision = choose(state, query_of(2000));
  ASSERT_EQ(decision.outcome, RouteOutcome::kReplica);
  EXPECT_FALSE(decision.remote);
  EXPECT_EQ(state.replica(decision.slot).key.job, 2u) << "a prefill replica answers nobody";
  EXPECT_EQ(decision.candidates[0].verdict, CandidateVerdict::kOnlyPrefill);
  EXPECT_NEAR(decision.candidates[0].expected.ttft_s, 2.010, 1e-9);
}

TEST(ApartChoice, PromptsThatQueueAreComputedElsewhere) {
  RouterState state({});
  state.set_table(table_of({kP, kD}));
  put_prompt(state, state.slots_of(0)[1], 3000);
  const RouteDecision decision = choose(state, query_of(2000));
  ASSERT_TRUE(decision.remote);
  EXPECT_EQ(state.replica(decision.slot).key.job, 2u);
  EXPECT_EQ(state.replica(decision.remote->slot).key.job, 1u);
  EXPECT_EQ(decision.candidates[0].verdict, CandidateVerdict::kPrefill);
  EXPECT_EQ(decision.candidates[1].verdict, CandidateVerdict::kChosen);
  EXPECT_EQ(decision.load.work, (RequestWork{0, 100}));
  EXPECT_EQ(decision.remote->load.work, (RequestWork{2000, 1}));
  EXPECT_EQ(decision.remote->otherwise.work, (RequestWork{2000, 100}));
  EXPECT_NEAR(decision.remote->transfer_s, 0.04, 1e-9);
  EXPECT_NEAR(decision.remote->local.ttft_s, 5.010, 1e-9);
  EXPECT_FALSE(choose(state, {.prompt_tokens = 2000, .now = at(0)}).remote)
      << "the query does not let it";
}

/// A busy decode replica beside an idle one of duty prefill, held to a time between tokens.
RouterState busy_state(double tpot_s) {
  RouteTable table = table_of({kP, kD});
  table.services[0].tpot_p99_s = tpot_s;
  RouterState state({});
  state.set_table(table);
  for (int i = 0; i < 4; ++i) put_answer(state, state.slots_of(0)[1], 100);
  return state;
}

TEST(ApartChoice, APromptThatWouldDelayAnswersTooMuchIsComputedElsewhere) {
  // Two seconds of a prompt add 20 ms to each of 100 tokens of those beside it.
  EXPECT_TRUE(choose(busy_state(0.025), query_of(2000)).remote);
  EXPECT_FALSE(choose(busy_state(0.050), query_of(2000)).remote);
  EXPECT_FALSE(choose(busy_state(0.025), query_of(100)).remote) << "a short one stays";
  EXPECT_FALSE(choose(busy_state(0), query_of(2000)).remote) << "nothing is to be kept";
}

TEST(ApartChoice, ABusyPrefillReplicaIsNotWaitedFor) {
  RouterState state = busy_state(0.025);
  put_prompt(state, state.slots_of(0)[0], 1000);
  EXPECT_TRUE(choose(state, query_of(2000)).remote) << "no first token is to be kept";
  RouteTable table = table_of({kP, kD});
  table.services[0].tpot_p99_s = 0.025;
  table.services[0].ttft_p99_s = 3;
  state.set_table(table);
  EXPECT_FALSE(choose(state, query_of(2000)).remote) << "3.06 s are beyond four fifths of 3 s";
}

TEST(ApartChoice, ASlowTransferIsLearnedFromTheAnswers) {
  RouterState state = busy_state(0.025);
  RouteTable table = table_of({kP, kD});
  table.services[0].tpot_p99_s = 0.025;
  table.services[0].ttft_p99_s = 2.7;
  table.services[0].replicas[0].transfer->bytes_s = 4e9;  // 2000 tokens in 0.1 s
  state.set_table(table);
  const RouteDecision first = choose(state, query_of(2000));
  ASSERT_TRUE(first.remote);
  const double ratio = state.replica(first.slot).speed.ttft.value();
  for (int i = 0; i < 100; ++i) {
    RouteCharge charge = state.charge(first.slot, first.load, {}, at(0));
    state.begin(charge, at(0.5));
    state.credit(charge, {}, at(0.5));
  }
  EXPECT_GT(state.replica(first.slot).speed.received.value(), 4);
  EXPECT_EQ(state.replica(first.slot).speed.ttft.value(), ratio) << "prompts are as fast as before";
  EXPECT_FALSE(choose(state, query_of(2000)).remote);
}

/// Random replicas, loads and failures.
class RandomState {
 public:
  RandomState(std::uint64_t seed, const std::vector<ReplicaDuty>& duties) : rng_(seed), state_({}) {
    const std::size_t replicas = 1 + rng_.below(6);
    std::vector<ReplicaDuty> drawn(replicas);
    for (ReplicaDuty& each : drawn) each = duties[rng_.below(duties.size())];
    RouteTable table = table_of(drawn);
    if (rng_.below(2) == 0) table.services[0].ttft_p99_s = 0.5 + 4 * rng_.uniform();
    if (rng_.below(2) == 0) table.services[0].tpot_p99_s = 0.012 + 0.05 * rng_.uniform();
    for (RoutedReplica& each : table.services[0].replicas) {
      each.transfer->bytes_s = 1e9 * (1 + static_cast<double>(rng_.below(50)));
      each.pace.prefill_tokens_s = 500 + 3000 * rng_.uniform();
      each.revision = static_cast<std::uint32_t>(rng_.below(2));
    }
    state_.set_table(table);
    for (const std::uint32_t slot : state_.slots_of(0)) fill(slot);
  }

  [[nodiscard]] RouteQuery query() {
    RouteQuery made = query_of(1 + rng_.below(8000));
    if (rng_.below(4) == 0) excluded_ = {{1 + rng_.below(6), 1}};
    made.excluded = excluded_;
    return made;
  }
  [[nodiscard]] const RouterState& state() const { return state_; }

 private:
  void fill(std::uint32_t slot) {
    for (std::uint64_t i = rng_.below(12); i > 0; --i) {
      if (rng_.below(2) == 0) {
        put_prompt(state_, slot, rng_.below(3000));
      } else {
        put_answer(state_, slot, rng_.below(300));
      }
    }
    if (rng_.below(8) == 0) {
      state_.note_failure(slot, at(0));
      state_.note_failure(slot, at(0));
    }
  }

  Rng rng_;
  RouterState state_;
  std::vector<ReplicaKey> excluded_;
};

double late_of(const PredictedRequest& expected, const RouteTargets& targets) {
  constexpr double kMargin = 0.8;
  const double ttft = targets.ttft_s > 0 ? expected.ttft_s / (kMargin * targets.ttft_s) : 0;
  const double tpot = targets.tpot_s > 0 ? expected.tpot_s / (kMargin * targets.tpot_s) : 0;
  return std::max(ttft, tpot);
}

/// That both replicas may be chosen, and that the way over both is sooner, or keeps the targets.
void expect_sound(const RouterState& state, const RouteQuery& query,
                  const RouteDecision& decision) {
  const RouterReplica& answer = state.replica(decision.slot);
  const RouterReplica& prompt = state.replica(decision.remote->slot);
  ASSERT_EQ(prompt.part.duty, kP);
  ASSERT_EQ(answer.part.duty, kD);
  ASSERT_EQ(prompt.revision, answer.revision);
  for (const RouterReplica* each : {&answer, &prompt}) {
    ASSERT_EQ(std::ranges::count(query.excluded, each->key), 0);
    ASSERT_GE(query.now, each->failing.out_until);
    ASSERT_FALSE(state.is_full(*each));
  }
  const auto chosen =
      std::ranges::find(decision.candidates, CandidateVerdict::kChosen, &RouteCandidate::verdict);
  ASSERT_EQ(chosen->slot, decision.slot);
  const bool sooner = chosen->expected.ttft_s * 1.1 <= decision.remote->local.ttft_s + 1e-9;
  ASSERT_TRUE(sooner || late_of(chosen->expected, state.targets_of(0)) <= 1 + 1e-9);
  if (chosen->expected.ttft_s > decision.remote->local.ttft_s) {
    ASSERT_TRUE(state.targets_of(0).tpot_s > 0) << "later only to keep the time between tokens";
  }
}

TEST(ApartChoice, BothReplicasMayBeChosenAndTheWayOverThemIsBetter) {
  int apart = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    RandomState random(seed, {kP, kD, kB});
    const RouteQuery query = random.query();
    const RouteDecision decision = choose(random.state(), query);
    if (!decision.remote) continue;
    ++apart;
    expect_sound(random.state(), query, decision);
    ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "seed " << seed;
  }
  EXPECT_GT(apart, 100);
}

TEST(ApartChoice, WithoutAPrefillReplicaEachDecisionIsAsBefore) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    RandomState random(seed, seed % 2 == 0 ? std::vector{kB} : std::vector{kB, kD});
    RouteQuery query = random.query();
    const RouteDecision any = choose(random.state(), query);
    query.prompt_places = PromptPlaces::kAnswering;
    const RouteDecision here = choose(random.state(), query);
    ASSERT_FALSE(any.remote) << "seed " << seed;
    ASSERT_EQ(any.outcome, here.outcome);
    ASSERT_EQ(any.slot, here.slot);
    for (std::size_t i = 0; i < any.candidates.size(); ++i) {
      ASSERT_EQ(any.candidates[i].verdict, here.candidates[i].verdict);
      ASSERT_EQ(any.candidates[i].expected.ttft_s, here.candidates[i].expected.ttft_s);
    }
  }
}

TEST(ApartChoice, WhoComputesOnlyPromptsAnswersNobody) {
  RouterState state({});
  state.set_table(table_of({kP, kP}));
  EXPECT_EQ(choose(state, query_of(100)).outcome, RouteOutcome::kNone);
  RouteTable table = table_of({kP, kD});
  table.services[0].replicas[0].transfer.reset();
  state.set_table(table);
  put_prompt(state, state.slots_of(0)[1], 5000);
  EXPECT_FALSE(choose(state, query_of(2000)).remote) << "how long a transfer takes is unknown";
}

}  // namespace
}  // namespace orrery
