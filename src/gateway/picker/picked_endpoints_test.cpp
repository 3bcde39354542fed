// gateway/picker/picked_endpoints_test.cpp - the endpoints of a choice and their order.
#include "gateway/picker/picked_endpoints.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

RouterState state_of(const std::vector<std::string>& endpoints) {
  RouteTable table;
  table.services.push_back({.id = 1, .name = "s", .model = "m", .tenant = {}, .replicas = {}});
  std::uint64_t job = 1;
  for (const std::string& each : endpoints) {
    table.services[0].replicas.push_back(
        {.job = job++, .attempt = 1, .endpoint = each, .slots = 1});
  }
  RouterState state({});
  state.set_table(table);
  return state;
}

RouteQuery query() {
  RouteQuery query;
  query.prompt_tokens = 10;
  return query;
}

TEST(PickedEndpoints, NamesFourOfManyWithTheLeastLoadedFirst) {
  RouterState state =
      state_of({"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1", "10.0.0.4:1", "10.0.0.5:1", "[::1]:1"});
  for (std::uint32_t slot = 0; slot < 5; ++slot) {
    state.charge(slot, {.work = {std::uint64_t{10} * (5 - slot), 0}}, {}, Instant());
  }
  EXPECT_EQ(pick_endpoints(state, query(), {}).text(), "[::1]:1,10.0.0.5:1,10.0.0.4:1,10.0.0.3:1");
}

TEST(PickedEndpoints, LeavesOutFullReplicasNamesAndWhatTheSubsetLacks) {
  RouterState state = state_of({"10.0.0.1:1", "host:1", "10.0.0.3:1", "10.0.0.4:1"});
  state.charge(0, {.work = {10, 0}}, {}, Instant());
  state.charge(0, {.work = {10, 0}}, {}, Instant());
  const PickedEndpoints any = pick_endpoints(state, query(), {});
  EXPECT_EQ(any.text(), "10.0.0.3:1,10.0.0.4:1");
  EXPECT_EQ(any.decision.slot, 2u);
  const std::vector<std::string> subset = {"10.0.0.1:1", "host:1"};
  const PickedEndpoints full = pick_endpoints(state, query(), subset);
  EXPECT_EQ(full.decision.outcome, RouteOutcome::kWait);
  EXPECT_TRUE(full.any_eligible);
  EXPECT_TRUE(full.endpoints.empty());
  const std::vector<std::string> named = {"host:1"};
  const PickedEndpoints none = pick_endpoints(state, query(), named);
  EXPECT_EQ(none.decision.outcome, RouteOutcome::kNone);
  EXPECT_FALSE(none.any_eligible);
}

}  // namespace
}  // namespace orrery
