#include "scheduler/plans/plan_table.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

PlanEntry entry_of(double seconds) { return std::vector<PlannedWork>{{.step_seconds = seconds}}; }

TEST(PlanTable, TellsWhatNobodyPlannedFromWhatHasNoPlan) {
  PlanTable table;
  const PlanKey key{WorkId(3), FleetTypeId(0), 64};
  EXPECT_EQ(table.find(key), nullptr);
  table.put(key, tl::unexpected(Rejection{RejectionKind::kMemory, {}, "too large"}));
  const PlanEntry* none = table.find(key);
  ASSERT_NE(none, nullptr);
  ASSERT_FALSE(*none);
  EXPECT_EQ(none->error().kind, RejectionKind::kMemory);
  EXPECT_EQ(table.find({WorkId(3), FleetTypeId(0), 32}), nullptr);
  EXPECT_EQ(table.find({WorkId(3), FleetTypeId(1), 64}), nullptr);
  EXPECT_EQ(table.find({WorkId(2), FleetTypeId(0), 64}), nullptr);
}

TEST(PlanTable, IsAMapInOrderWhateverTheOrderOfItsFilling) {
  PlanTable table;
  std::map<PlanKey, double> reference;
  Rng rng(5);
  for (int i = 0; i < 2000; ++i) {
    const PlanKey key{WorkId(static_cast<std::uint32_t>(rng.below(40))),
                      FleetTypeId(static_cast<std::uint32_t>(rng.below(4))),
                      std::uint32_t{1} << rng.below(8)};
    table.put(key, entry_of(i));
    reference[key] = i;
  }
  EXPECT_EQ(table.size(), reference.size());
  std::vector<std::pair<PlanKey, double>> seen;
  table.for_each([&](const PlanKey& key, const PlanEntry& entry) {
    seen.emplace_back(key, entry->front().step_seconds);
  });
  EXPECT_TRUE(std::equal(
      seen.begin(), seen.end(), reference.begin(), reference.end(),
      [](const auto& a, const auto& b) { return a.first == b.first && a.second == b.second; }));
  for (const auto& [key, seconds] : reference) {
    ASSERT_NE(table.find(key), nullptr);
    EXPECT_EQ((*table.find(key))->front().step_seconds, seconds);
  }
}

TEST(PlanTable, AServiceRunsAlikeWhereverItsInstancesStayTogether) {
  const PlannedWork service{.devices = 8,
                            .step_seconds = 0.02,
                            .how = PlannedService{.layout = {.tp = 4, .replicas = 2}}};
  const std::optional<Repriced> near = reprice(service, {.domain_ranks = 4});
  ASSERT_TRUE(near);
  EXPECT_EQ(near->step_seconds, 0.02);
  EXPECT_EQ(near->ratio, 1);
  EXPECT_FALSE(reprice(service, {.domain_ranks = 2})) << "an instance over two domains";
}

}  // namespace
}  // namespace orrery
