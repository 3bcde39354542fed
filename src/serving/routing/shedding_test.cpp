#include "serving/routing/shedding.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Instant at(double seconds) { return Instant() + Duration::from_seconds(1000 + seconds); }

/// Two full replicas of one slot, which compute 1000 prompt tokens a second and 100 others.
RouterState full_state() {
  RouteTable table;
  table.services.push_back({.id = 1, .name = "chat", .model = "m"});
  for (std::uint64_t job = 1; job <= 2; ++job) {
    table.services[0].replicas.push_back(
        {.job = job, .attempt = 1, .endpoint = "h:1", .slots = 1, .pace = {1000, 0.01, 0.01}});
  }
  RouterState state({});
  state.set_table(table);
  for (const std::uint32_t slot : state.slots_of(0)) {
    while (state.replica(slot).work.own.in_flight < state.replica(slot).in_flight_max) {
      state.charge(slot, {.work = {.prompt_tokens = 0, .output_tokens = 100}}, {}, at(0));
    }
  }
  return state;
}

RouteDecision decision_in(const RouterState& state, std::span<const ReplicaKey> excluded = {}) {
  return choose(state,
                {.prompt_tokens = 490, .output_tokens = 50, .excluded = excluded, .now = at(0)});
}

TEST(Shedding, TheQueueIsPartOfWhatIsPredicted) {
  const RouterState state = full_state();
  const RouteDecision decision = decision_in(state);
  ASSERT_EQ(decision.outcome, RouteOutcome::kWait);
  // Two requests of a second each are before it at a replica; its prompt takes half a second.
  EXPECT_NEAR(predicted_ttft(state, decision, 0), 2.5, 1e-9);
  // A request takes a second, and there are two replicas.
  EXPECT_NEAR(predicted_ttft(state, decision, 8), 6.5, 1e-9);
  const std::vector<ReplicaKey> one{{1, 1}};
  EXPECT_NEAR(predicted_ttft(state, decision_in(state, one), 8), 10.5, 1e-9);
}

TEST(Shedding, NothingIsPredictedWithoutAPace) {
  RouteTable table;
  table.services.push_back({.id = 1, .name = "chat", .model = "m"});
  table.services[0].replicas.push_back({.job = 1, .attempt = 1, .endpoint = "h:1", .slots = 1});
  RouterState state({});
  state.set_table(table);
  EXPECT_EQ(predicted_ttft(state, decision_in(state), 100), 0);
  EXPECT_EQ(predicted_ttft(state, {}, 100), 0);
}

TEST(Shedding, TheLaterTheMoreOften) {
  EXPECT_EQ(shed_chance(2, 2), 0);
  EXPECT_EQ(shed_chance(4, 2), 0.5);
  EXPECT_EQ(shed_chance(20, 2), 0.9);
  EXPECT_EQ(shed_chance(1000, 0), 0);
}

}  // namespace
}  // namespace orrery
