// serving/routing/router_test.cpp - choices in single cases, and properties over random runs.
#include "serving/routing/router.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/numbers/rng.hpp"
#include "serving/routing/route_history.hpp"

namespace orrery {
namespace {

Instant at(double seconds) { return Instant() + Duration::from_seconds(1000 + seconds); }

RouteTable table_of(const std::vector<std::uint64_t>& jobs, std::uint32_t slots = 0) {
  RouteTable table;
  table.services.push_back({.id = 1, .name = "chat", .model = "m"});
  for (const std::uint64_t job : jobs) {
    table.services[0].replicas.push_back(
        {.job = job, .attempt = 1, .endpoint = "h:1", .slots = slots});
  }
  return table;
}

/// A request of some tokens, none of which is cached.
RouteCharge put(RouterState& state, std::uint32_t slot, std::uint64_t tokens, double time) {
  return state.charge(slot, {.work = {.prompt_tokens = tokens}}, {}, at(time));
}

std::uint64_t job_of(const RouterState& state, const RouteDecision& decision) {
  return state.replica(decision.slot).key.job;
}

TEST(Router, ChoosesTheLowestJobAmongEquals) {
  RouterState state({});
  state.set_table(table_of({7, 3, 5}));
  const RouteDecision decision = choose(state, {.prompt_tokens = 10, .now = at(0)});
  ASSERT_EQ(decision.outcome, RouteOutcome::kReplica);
  EXPECT_EQ(job_of(state, decision), 3u);
  ASSERT_EQ(decision.candidates.size(), 3u);
  EXPECT_EQ(decision.candidates[0].verdict, CandidateVerdict::kChosen);
  EXPECT_EQ(decision.candidates[1].verdict, CandidateVerdict::kSlower);
}

/// Replicas 1 and 2 of revision 1, replica 3 of the canary.
RouteTable table_of_canary(double share, std::uint32_t slots = 0) {
  RouteTable table = table_of({1, 2, 3}, slots);
  for (RoutedReplica& each : table.services[0].replicas) each.revision = each.job == 3 ? 2 : 1;
  table.services[0].canary = RoutedCanary{2, share};
  return table;
}

TEST(Router, ACanaryGetsItsShareOfTheRequests) {
  RouterState state({});
  state.set_table(table_of_canary(0.1));
  Rng rng(7);
  std::map<std::uint64_t, int> chosen;
  constexpr int kRequests = 10'000;
  for (int i = 0; i < kRequests; ++i) {
    const RouteDecision decision =
        choose(state, {.prompt_tokens = 10, .draw = rng.uniform(), .now = at(0)});
    ASSERT_EQ(decision.outcome, RouteOutcome::kReplica);
    ++chosen[job_of(state, decision)];
  }
  EXPECT_NEAR(chosen[3], 0.1 * kRequests, 150);
  const RouteDecision other = choose(state, {.prompt_tokens = 10, .draw = 0.5, .now = at(0)});
  EXPECT_EQ(other.candidates[2].verdict, CandidateVerdict::kOtherRevision);
  EXPECT_EQ(other.candidates[2].revision, 2u);
}

TEST(Router, OthersTakeWhatACanaryCannot) {
  RouterState state({});
  state.set_table(table_of_canary(0.1, 1));
  const std::uint32_t canary = state.slots_of(0)[2];
  const auto of_canary = [&] {
    return choose(state, {.prompt_tokens = 10, .draw = 0.05, .now = at(0)});
  };
  EXPECT_EQ(job_of(state, of_canary()), 3u);
  RouteCharge last;
  while (state.replica(canary).work.own.in_flight < state.replica(canary).in_flight_max) {
    last = put(state, canary, 10, 0);
  }
  EXPECT_EQ(job_of(state, of_canary()), 1u);
  // Others do not go to the canary where theirs are merely full.
  for (const std::uint32_t slot : {state.slots_of(0)[0], state.slots_of(0)[1]}) {
    while (state.replica(slot).work.own.in_flight < state.replica(slot).in_flight_max) {
      put(state, slot, 10, 0);
    }
  }
  state.credit(last, {}, at(0));
  EXPECT_EQ(choose(state, {.prompt_tokens = 10, .draw = 0.5, .now = at(0)}).outcome,
            RouteOutcome::kWait);
  EXPECT_EQ(job_of(state, of_canary()), 3u);
}

TEST(Router, ACanaryThatWasGivenUpServesOnlyWhereNoOtherCan) {
  RouterState state({});
  state.set_table(table_of_canary(0));
  const auto choice = [&](double draw, std::span<const ReplicaKey> excluded) {
    return job_of(
        state,
        choose(state, {.prompt_tokens = 1, .excluded = excluded, .draw = draw, .now = at(0)}));
  };
  EXPECT_EQ(choice(0, {}), 1u);
  const std::vector<ReplicaKey> one{{1, 1}};
  EXPECT_EQ(choice(0, one), 2u);
  const std::vector<ReplicaKey> both{{1, 1}, {2, 1}};
  EXPECT_EQ(choice(0.9, both), 3u);
}

TEST(Router, AFullCanaryIsWaitedForWhereNoOtherMayBeTried) {
  RouterState state({});
  state.set_table(table_of_canary(1, 1));
  const std::uint32_t canary = state.slots_of(0)[2];
  while (state.replica(canary).work.own.in_flight < state.replica(canary).in_flight_max) {
    put(state, canary, 10, 0);
  }
  const std::vector<ReplicaKey> others{{1, 1}, {2, 1}};
  EXPECT_EQ(
      choose(state, {.prompt_tokens = 1, .excluded = others, .draw = 0.5, .now = at(0)}).outcome,
      RouteOutcome::kWait);
}

TEST(Router, ChoosesTheLeastChargedAndThenTheFaster) {
  RouterState state({});
  state.set_table(table_of({1, 2}));
  const std::uint32_t first = state.slots_of(0)[0];
  const std::uint32_t second = state.slots_of(0)[1];
  const RouteCharge of_first = put(state, first, 100, 0);
  EXPECT_EQ(job_of(state, choose(state, {.prompt_tokens = 1, .now = at(0)})), 2u);
  // The first computes a token in 0.01 s, the second in 0.1 s.
  state.credit(of_first, {.tokens = 100}, at(1));
  state.credit(put(state, second, 100, 0), {.tokens = 100}, at(10));
  put(state, first, 50, 10);
  const RouteDecision decision = choose(state, {.prompt_tokens = 10, .now = at(10)});
  EXPECT_EQ(job_of(state, decision), 1u);
  EXPECT_NEAR(decision.candidates[0].expected.wait_s, 0.6, 1e-9);
  EXPECT_NEAR(decision.candidates[1].expected.wait_s, 1.0, 1e-9);
}

TEST(Router, WaitsAndSheds) {
  RouterState state({.queue_max = 2});
  state.set_table(table_of({1}, 1));
  const std::uint32_t slot = state.slots_of(0)[0];
  put(state, slot, 1, 0);
  EXPECT_EQ(choose(state, {.waiting = 1, .now = at(0)}).outcome, RouteOutcome::kWait);
  put(state, slot, 1, 0);
  EXPECT_EQ(choose(state, {.now = at(0)}).outcome, RouteOutcome::kWait);
  EXPECT_EQ(choose(state, {.waiting = 2, .now = at(0)}).outcome, RouteOutcome::kShed);
  state.set_table(table_of({}));
  EXPECT_EQ(choose(state, {.now = at(0)}).outcome, RouteOutcome::kNone);
}

TEST(Router, LeavesFailingReplicasOutForLongerAndLonger) {
  RouterState state({.backoff_min = Duration::seconds(1), .backoff_max = Duration::seconds(3)});
  state.set_table(table_of({1}));
  const std::uint32_t slot = state.slots_of(0)[0];
  const auto outcome = [&](double time) { return choose(state, {.now = at(time)}).outcome; };
  state.note_failure(slot, at(0));
  EXPECT_EQ(outcome(0), RouteOutcome::kReplica);
  state.note_failure(slot, at(0));
  EXPECT_EQ(outcome(0.9), RouteOutcome::kNone);
  EXPECT_EQ(outcome(1), RouteOutcome::kReplica);
  state.note_failure(slot, at(1));
  EXPECT_EQ(outcome(2.9), RouteOutcome::kNone);
  for (int i = 0; i < 100; ++i) state.note_failure(slot, at(3));
  EXPECT_EQ(outcome(5.9), RouteOutcome::kNone);
  EXPECT_EQ(outcome(6), RouteOutcome::kReplica);
  state.note_success(slot);
  state.note_failure(slot, at(7));
  EXPECT_EQ(outcome(7), RouteOutcome::kReplica);
}

TEST(Router, KeepsChargesOfAReplicaThatATableLacks) {
  RouterState state({});
  state.set_table(table_of({1}));
  const std::uint32_t slot = state.slots_of(0)[0];
  const RouteCharge charge = put(state, slot, 10, 0);
  state.set_table(table_of({2}));
  EXPECT_NE(state.slots_of(0)[0], slot);
  EXPECT_EQ(state.replica(slot).work.own.in_flight, 1u);
  state.set_table(table_of({1, 2}));
  EXPECT_EQ(state.slots_of(0)[0], slot);
  state.set_table(table_of({2}));
  state.credit(charge, {.tokens = 10}, at(1));
  EXPECT_EQ(state.replica(slot).work.own.in_flight, 0u);
}

/// A run of random tables, choices, ends and failures that keeps its own accounts.
class RandomRun {
 public:
  explicit RandomRun(std::uint64_t seed) : rng_(seed), state_({.in_flight_max = 4}) {}

  void step() {
    time_ += 0.01;
    switch (rng_.below(4)) {
      case 0:
        if (rng_.below(8) == 0) change_table();
        break;
      case 1:
        end();
        break;
      default:
        ask();
    }
    check();
  }

 private:
  struct Charge {
    ReplicaKey key;
    RouteCharge charge;
  };

  void change_table() {
    RouteTable table;
    routed_.clear();
    for (std::uint64_t service = 0; service < 2; ++service) {
      table.services.push_back({.id = service, .name = "s", .model = "m"});
      for (std::uint64_t job = 0; job < 6; ++job) {
        if (rng_.below(2) == 0) continue;
        const auto attempt = static_cast<std::uint32_t>(rng_.below(2));
        const ReplicaKey key{service * 10 + job, attempt};
        table.services.back().replicas.push_back(
            {.job = key.job, .attempt = attempt, .endpoint = "h:1"});
        routed_.emplace(key, service);
      }
    }
    state_.set_table(table);
  }

  void ask() {
    if (state_.services() == 0) return;
    const auto service = static_cast<std::uint32_t>(rng_.below(2));
    std::vector<ReplicaKey> excluded;
    for (const auto& [key, of] : routed_) {
      if (rng_.below(4) == 0) excluded.push_back(key);
    }
    const std::uint64_t tokens = 1 + rng_.below(1000);
    const RouteDecision decision = choose(state_, {.service = service,
                                                   .prompt_tokens = tokens,
                                                   .output_tokens = rng_.below(100),
                                                   .excluded = excluded,
                                                   .now = at(time_)});
    if (decision.outcome != RouteOutcome::kReplica) return;
    const RouterReplica& chosen = state_.replica(decision.slot);
    ASSERT_TRUE(routed_.contains(chosen.key));
    ASSERT_EQ(routed_.at(chosen.key), service);
    ASSERT_EQ(std::ranges::count(excluded, chosen.key), 0);
    ASSERT_LT(chosen.work.own.in_flight, 4u);
    ASSERT_GE(at(time_), chosen.failing.out_until);
    charges_.push_back({chosen.key, state_.charge(decision.slot, decision.load, {}, at(time_))});
  }

  void end() {
    if (charges_.empty()) return;
    const std::size_t which = rng_.below(charges_.size());
    if (rng_.below(2) == 0) return state_.begin(charges_[which].charge, at(time_));
    const RouteCharge charge = charges_[which].charge;
    charges_.erase(charges_.begin() + static_cast<std::ptrdiff_t>(which));
    const bool failed = rng_.below(3) == 0;
    if (failed) state_.note_failure(charge.slot, at(time_));
    state_.credit(charge, {.tokens = failed ? 0 : charge.load.work.prompt_tokens}, at(time_));
  }

  void check() {
    std::map<ReplicaKey, ReplicaWork> expected;
    for (const auto& [key, charge] : charges_) {
      ASSERT_EQ(state_.replica(charge.slot).key, key);
      ReplicaWork& work = expected[key];
      ++work.in_flight;
      const std::uint64_t prompt = charge.begun ? 0 : charge.load.work.prompt_tokens;
      work.prompt_tokens += prompt;
      work.tokens += prompt + charge.load.work.output_tokens;
    }
    std::uint64_t in_flight = 0;
    for (const RouterReplica& replica : state_.replicas()) {
      in_flight += replica.work.own.in_flight;
      const bool idle = replica.work.own.in_flight == 0;
      const ReplicaWork work = idle ? ReplicaWork() : expected[replica.key];
      ASSERT_EQ(replica.work.own.in_flight, work.in_flight);
      ASSERT_EQ(replica.work.own.tokens, work.tokens);
      ASSERT_EQ(replica.work.own.prompt_tokens, work.prompt_tokens);
    }
    ASSERT_EQ(in_flight, charges_.size());
  }

  Rng rng_;
  RouterState state_;
  double time_ = 0;
  std::map<ReplicaKey, std::uint64_t> routed_;
  std::vector<Charge> charges_;
};

TEST(Router, ChargesBalanceAndNoChoiceBreaksARule) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    RandomRun run(seed);
    for (int i = 0; i < 1000 && !::testing::Test::HasFatalFailure(); ++i) run.step();
    ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "seed " << seed;
  }
}

TEST(RouteHistory, KeepsTheNewest) {
  RouteHistory history(3);
  for (const char* id : {"a", "b", "a", "c"}) {
    history.add(id, {.service = 1, .time = at(static_cast<double>(*id))});
  }
  EXPECT_EQ(history.find("a").size(), 1u);
  EXPECT_EQ(history.find("b").size(), 1u);
  ASSERT_EQ(history.find("c").size(), 1u);
  history.add("c", {.service = 2});
  ASSERT_EQ(history.find("c").size(), 2u);
  EXPECT_EQ(history.find("c")[1]->service, 2u);
  EXPECT_TRUE(history.find("b").empty());
}

}  // namespace
}  // namespace orrery
