// serving/routing/route_policy_test.cpp - what is predicted of replicas with a pace, what each
// policy makes of it, and what is learned.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/numbers/rng.hpp"
#include "serving/routing/router.hpp"

namespace orrery {
namespace {

using Chain = std::vector<std::uint64_t>;

Instant at(double seconds) { return Instant() + Duration::from_seconds(1000 + seconds); }

/// Replicas 1, 2 .. of one service, with 8 slots: 1000 prompt tokens a second, a step in 10 ms
/// alone and in 17 ms with all slots.
RouteTable paced_table(std::size_t replicas) {
  RouteTable table;
  table.services.push_back({.id = 1, .name = "chat", .model = "m"});
  for (std::uint64_t job = 1; job <= replicas; ++job) {
    table.services[0].replicas.push_back(
        {.job = job, .attempt = 1, .endpoint = "h:1", .slots = 8, .pace = {1000, 0.010, 0.017}});
  }
  return table;
}

RouterState state_of(const RouteTable& table, RouterOptions options = {}) {
  RouterState state(options);
  state.set_table(table);
  return state;
}

/// Leading blocks of 64 tokens of a prompt.
Chain chain_of(std::size_t blocks, std::uint64_t prompt = 7) {
  Chain chain;
  chain.reserve(blocks);
  for (std::uint64_t i = 0; i < blocks; ++i) chain.push_back(prompt * 1000 + i);
  return chain;
}

RouteQuery query_of(const Chain& chain, std::uint64_t output = 10) {
  return {
      .prompt_tokens = chain.size() * 64, .output_tokens = output, .blocks = chain, .now = at(0)};
}

std::uint64_t job_of(const RouterState& state, const RouteDecision& decision) {
  EXPECT_EQ(decision.outcome, RouteOutcome::kReplica);
  return state.replica(decision.slot).key.job;
}

/// Charges what was decided.
RouteCharge send(RouterState& state, const RouteDecision& decision, const RouteQuery& query) {
  return state.charge(decision.slot, decision.load, query.blocks, query.now);
}

/// Fills a replica's queue with the prompt of another request.
RouteCharge load(RouterState& state, std::uint32_t slot, std::uint64_t prompt,
                 std::uint64_t output = 0) {
  return state.charge(slot, {.work = {prompt, output}}, {}, at(0));
}

TEST(RoutePolicy, PredictsFromThePaceAndTheWork) {
  RouterState state = state_of(paced_table(1));
  const Chain chain = chain_of(10);
  const RouteDecision idle = choose(state, query_of(chain, 100));
  ASSERT_EQ(idle.candidates.size(), 1u);
  // 640 tokens of the prompt and a step; the step has one sequence.
  EXPECT_NEAR(idle.candidates[0].expected.ttft_s, 0.650, 1e-9);
  EXPECT_NEAR(idle.candidates[0].expected.tpot_s, 0.010, 1e-9);
  EXPECT_NEAR(idle.candidates[0].expected.wait_s, 1.650, 1e-9);
  RouteCharge first = send(state, idle, query_of(chain, 100));
  const RouteDecision second = choose(state, query_of(chain_of(10, 8), 100));
  EXPECT_NEAR(second.candidates[0].expected.ttft_s, 1.291, 1e-9);
  EXPECT_NEAR(second.candidates[0].expected.tpot_s, 0.011, 1e-9);
  // Half the prompt of the first is computed by then; all of it once its answer begins.
  const Chain other = chain_of(10, 8);
  RouteQuery later = query_of(other, 100);
  later.now = at(0.32);
  EXPECT_NEAR(choose(state, later).candidates[0].expected.ttft_s, 0.971, 1e-9);
  state.begin(first, at(0.650));
  later.now = at(0.5);
  EXPECT_NEAR(choose(state, later).candidates[0].expected.ttft_s, 0.651, 1e-9);
  // The cache has the first prompt, but for its last token.
  const RouteDecision again = choose(state, query_of(chain, 100));
  EXPECT_EQ(again.candidates[0].cached_tokens, 639u);
  EXPECT_NEAR(again.candidates[0].expected.ttft_s, 0.012, 1e-9);
}

TEST(RoutePolicy, ARequestBehindFullSlotsWaitsForOne) {
  RouterState state = state_of(paced_table(1));
  for (int i = 0; i < 8; ++i) {
    RouteCharge charge = load(state, 0, 10, 100);
    state.begin(charge, at(0));
  }
  const RouteDecision decision = choose(state, query_of(chain_of(1)));
  // An eighth of the hundred steps of a full replica, its own prompt and a step.
  EXPECT_NEAR(decision.candidates[0].expected.ttft_s,
              (12.5 * 0.017 + 0.064 + 0.017) * state.replica(0).speed.ttft.value(), 1e-9);
}

TEST(RoutePolicy, GoesWhereThePromptIsCachedUntilThatIsSaturated) {
  RouteTable table = paced_table(3);
  table.services[0].ttft_p99_s = 1;
  RouterState state = state_of(table);
  const Chain chain = chain_of(10);
  const RouteQuery query = query_of(chain);
  state.index().store(state.slots_of(0)[1], chain);
  load(state, state.slots_of(0)[1], 400);
  const RouteDecision sticky = choose(state, query);
  EXPECT_EQ(job_of(state, sticky), 2u);
  EXPECT_EQ(sticky.candidates[0].verdict, CandidateVerdict::kFewerBlocks);
  EXPECT_EQ(sticky.load.work.prompt_tokens, 1u);
  load(state, state.slots_of(0)[1], 400);
  const RouteDecision spread = choose(state, query);
  EXPECT_EQ(job_of(state, spread), 1u);
  EXPECT_EQ(spread.candidates[1].verdict, CandidateVerdict::kLate);
  EXPECT_EQ(spread.candidates[2].verdict, CandidateVerdict::kSlower);
  // The replica that computes it now has it as soon as an idle one would, and for nothing.
  send(state, spread, query);
  EXPECT_EQ(job_of(state, choose(state, query)), 1u);
}

TEST(RoutePolicy, TakesTheCheapestThatIsInTime) {
  RouteTable table = paced_table(2);
  table.services[0].ttft_p99_s = 1;
  table.services[0].tpot_p99_s = 0.1;
  table.services[0].replicas[0].usd_s = 0.003;
  table.services[0].replicas[1].usd_s = 0.001;
  table.services[0].replicas[1].pace = {800, 0.015, 0.017};
  RouterState state = state_of(table);
  const Chain chain = chain_of(5);
  const RouteDecision cheap = choose(state, query_of(chain));
  EXPECT_EQ(job_of(state, cheap), 2u);
  EXPECT_EQ(cheap.candidates[0].verdict, CandidateVerdict::kDearer);
  EXPECT_GT(cheap.candidates[0].usd, cheap.candidates[1].usd);
  load(state, state.slots_of(0)[1], 400);
  EXPECT_EQ(job_of(state, choose(state, query_of(chain))), 1u);
  // Beyond what is to be kept everywhere, the one that misses it least, whatever it costs.
  load(state, state.slots_of(0)[0], 5000);
  load(state, state.slots_of(0)[1], 2000);
  const RouteDecision late = choose(state, query_of(chain));
  EXPECT_EQ(job_of(state, late), 2u);
  EXPECT_EQ(late.candidates[0].verdict, CandidateVerdict::kLate);
}

TEST(RoutePolicy, EachPolicyHasItsRule) {
  const Chain chain = chain_of(4);
  const auto choice = [&](RoutePolicy policy) {
    RouterState state = state_of(paced_table(3), {.policy = policy});
    load(state, state.slots_of(0)[0], 300);
    load(state, state.slots_of(0)[1], 10);
    load(state, state.slots_of(0)[1], 10);
    state.index().store(state.slots_of(0)[0], chain);
    return job_of(state, choose(state, query_of(chain)));
  };
  EXPECT_EQ(choice(RoutePolicy::kRoundRobin), 1u) << "three requests have gone before";
  EXPECT_EQ(choice(RoutePolicy::kLeastRequests), 3u);
  EXPECT_EQ(choice(RoutePolicy::kLeastWait), 3u);
  EXPECT_EQ(choice(RoutePolicy::kPrefix), 1u);
  EXPECT_EQ(choice(RoutePolicy::kCost), 1u);
  RouterState state = state_of(paced_table(3), {.policy = RoutePolicy::kRandom});
  Rng rng(5);
  std::map<std::uint64_t, int> chosen;
  for (int i = 0; i < 3000; ++i) {
    RouteQuery query = query_of(chain);
    query.draw = rng.uniform();
    ++chosen[job_of(state, choose(state, query))];
  }
  for (const auto& [job, count] : chosen) EXPECT_NEAR(count, 1000, 120) << job;
  EXPECT_EQ(chosen.size(), 3u);
}

TEST(RoutePolicy, LearnsHowMuchLongerThingsTake) {
  RouterState state = state_of(paced_table(1));
  const Chain chain = chain_of(10);
  for (int i = 0; i < 200; ++i) {
    const RouteQuery query = query_of({}, 10);
    RouteQuery one = query;
    one.prompt_tokens = 640;
    one.now = at(10 * i);
    RouteCharge charge = send(state, choose(state, one), one);
    state.begin(charge, at(10 * i + 1.3));  // twice as long as predicted
    state.credit(charge, {.tokens = 650, .tpot_s = 0.005}, at(10 * i + 2));
  }
  const RouteDecision decision = choose(state, query_of(chain));
  EXPECT_NEAR(decision.candidates[0].expected.ttft_s, 1.3, 0.05);
  EXPECT_NEAR(decision.candidates[0].expected.tpot_s, 0.005, 0.0005);
  LearnedRatio hung;
  hung.add(0.1, 3600);
  for (int i = 0; i < 100; ++i) hung.add(0.1, 100);
  EXPECT_EQ(hung.value(), 5);
  for (int i = 0; i < 200; ++i) hung.add(0.1, 0.001);
  EXPECT_EQ(hung.value(), 0.2);
}

TEST(RoutePolicy, AnEngineThatHasNotWhatWasBelievedIsNotBelieved) {
  RouterState state = state_of(paced_table(1));
  const Chain old = chain_of(20, 3);
  const Chain chain = chain_of(10);
  state.index().store(0, old);
  state.index().store(0, chain);
  const RouteQuery query = query_of(chain);
  const RouteCharge charge = send(state, choose(state, query), query);
  EXPECT_EQ(charge.load.cached_tokens, 639u);
  state.note_cached(charge, 639);
  EXPECT_EQ(state.index().blocks_of(0), 30u);
  EXPECT_EQ(state.replica(0).hit_ratio, 1);
  state.note_cached(charge, 64);
  // What was used longest ago is gone as well; the prompt itself has just been computed.
  EXPECT_EQ(state.index().blocks_of(0), 15u);
  EXPECT_LT(state.replica(0).hit_ratio, 0.95);
  // A request right behind that of its own beginning shows little.
  const RouteCharge behind = send(state, choose(state, query), query);
  const double before = state.replica(0).hit_ratio;
  state.note_cached(behind, 0);
  EXPECT_EQ(state.index().blocks_of(0), 15u);
  EXPECT_GT(state.replica(0).hit_ratio, before - 0.03);
  for (int i = 0; i < 100; ++i) state.note_cached(charge, 0);
  EXPECT_LT(state.replica(0).hit_ratio, 0.01) << "it caches nothing";
  state.index().store(0, chain);
  EXPECT_LT(choose(state, query).candidates[0].cached_tokens, 5u);
}

TEST(RoutePolicy, AReplicaThatIsGoneLeavesNothingInTheIndex) {
  RouterState state = state_of(paced_table(2));
  const std::uint32_t gone = state.slots_of(0)[1];
  state.index().store(gone, chain_of(5));
  const RouteCharge charge = load(state, gone, 10);
  state.set_table(paced_table(1));
  EXPECT_EQ(state.index().blocks(), 0u);
  state.credit(charge, {}, at(1));
  // The next replica gets its slot and an empty cache of the size that it tells.
  RouteTable table = paced_table(2);
  table.services[0].replicas[1].attempt = 2;
  table.services[0].replicas[1].kv_tokens = 128;
  state.set_table(table);
  EXPECT_EQ(state.slots_of(0)[1], gone);
  EXPECT_EQ(choose(state, query_of(chain_of(5))).candidates[1].cached_tokens, 0u);
  state.index().store(gone, chain_of(5));
  EXPECT_EQ(state.index().blocks_of(gone), 2u);
}

}  // namespace
}  // namespace orrery
