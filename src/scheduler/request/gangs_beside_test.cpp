// The price of a job of several gangs: its time counts once, and all its gangs are held until it
// ends.
#include <gtest/gtest.h>

#include "scheduler/place/cluster_test.hpp"

namespace orrery {
namespace {

/// 4 nodes of H100 and 4 of A100.
std::string two_types() {
  return one_hall(
      "    - racks:\n      - cooling: in-row-or-dense-air\n        nodes: [{type: dgx-h100, count: "
      "2}, {type: dgx-a100-80g, count: 2}]\n");
}

JobRequest either(const TestCluster& cluster, std::uint32_t gangs, std::uint32_t devices) {
  JobRequest request = cluster.job(devices, Duration::hours(10));
  request.roles[0].options.push_back(
      {cluster.gang(devices, "nvidia-a100-sxm4-80g"), 0.4, std::nullopt});
  request.roles[0].gangs = gangs;
  return request;
}

Price price_of_start(const PassResult& result) {
  const auto* start =
      result.decisions.empty() ? nullptr : std::get_if<StartJob>(&result.decisions.front());
  EXPECT_NE(start, nullptr);
  return start == nullptr ? Price() : start->price.value_or(Price());
}

TEST(GangsBeside, TheOwnersTimeCountsOnceHoweverManyGangs) {
  TestCluster one(two_types());
  one.submit(either(one, 1, 8));
  TestCluster eight(two_types());
  eight.submit(either(eight, 8, 1));
  const Price whole = price_of_start(one.pass("hardware-aware"));
  const Price parts = price_of_start(eight.pass("hardware-aware"));
  EXPECT_GT(whole[PriceTerm::kTime], 0);
  EXPECT_NEAR(static_cast<double>(parts[PriceTerm::kTime]),
              static_cast<double>(whole[PriceTerm::kTime]), 10);
  EXPECT_NEAR(static_cast<double>(parts[PriceTerm::kHire]),
              static_cast<double>(whole[PriceTerm::kHire]), 10);
}

TEST(GangsBeside, AGangIsHeldUntilTheSlowestRoleIsDone) {
  TestCluster cluster(two_types());
  JobRequest request = cluster.job(8, Duration::hours(6));
  RoleRequest quick = request.roles[0];
  quick.devices_min = quick.devices_max = 4;
  quick.options = {{cluster.gang(4, "nvidia-a100-sxm4-80g"), 1, std::nullopt},
                   {cluster.gang(4), 6, std::nullopt}};
  request.roles.push_back(quick);
  const JobId id = cluster.submit(request);
  const Price both = price_of_start(cluster.pass("hardware-aware"));
  ASSERT_TRUE(cluster.runs(id));
  // No price is published here, so each device counts a dollar an hour: 12 devices for 6 hours.
  EXPECT_NEAR(static_cast<double>(both[PriceTerm::kHire]), 72e6, 100);
}

TEST(GangsBeside, ASlowerTypeForOneGangIsPaidByAllOthers) {
  TestCluster cluster(two_types());
  // 20 gangs: 16 fit on the H100, so some must go to the slower A100 and all are held for 25 hours.
  const JobId id = cluster.submit(either(cluster, 20, 1));
  const Price price = price_of_start(cluster.pass("hardware-aware"));
  ASSERT_TRUE(cluster.runs(id));
  EXPECT_NEAR(static_cast<double>(price[PriceTerm::kHire]), 20 * 25e6, 1000);
}

// Two gangs for 10 hours on H100 cost $160 here, for 25 hours on A100 $400: no price is published.
TEST(GangsBeside, ABudgetIsThatOfAllGangs) {
  const auto runs = [](double budget) {
    TestCluster cluster(two_types());
    JobRequest request = either(cluster, 2, 8);
    request.budget = Dollars(budget);
    const JobId id = cluster.submit(request);
    (void)cluster.pass("hardware-aware");
    return cluster.runs(id);
  };
  EXPECT_TRUE(runs(165));
  EXPECT_FALSE(runs(155)) << "each gang alone costs but $80";
}

TEST(GangsBeside, SoManyPlacesOfEachOptionArePriced) {
  const auto priced = [](const std::string& policy) {
    TestCluster cluster;
    for (std::uint32_t n = 0; n < 4; ++n) cluster.fleet().set_free(NodeId(n), 0xffU >> n);
    cluster.submit(cluster.job(4));
    return cluster.pass(policy).candidates;
  };
  EXPECT_LT(priced("hardware-aware:offers=1"), priced("hardware-aware"));
}

TEST(GangsBeside, AServiceIsPricedForTheSameTimeBySizeAndType) {
  TestCluster cluster(two_types());
  JobRequest request = cluster.job(8);
  request.kind = JobKind::kServe;
  request.estimate.reset();
  request.goal = JobGoal::kCost;
  RoleRequest& role = request.roles[0];
  role.devices_min = 1;
  role.options = {{cluster.gang(8), 1, std::nullopt},
                  {cluster.gang(4), 0.5, std::nullopt},
                  {cluster.gang(1), 0.125, std::nullopt}};
  const JobId id = cluster.submit(request);
  cluster.pass("hardware-aware");
  ASSERT_TRUE(cluster.runs(id));
  EXPECT_EQ(cluster.find(id)->devices(), 1u);
}

}  // namespace
}  // namespace orrery
