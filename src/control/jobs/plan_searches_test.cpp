#include "control/jobs/plan_searches.hpp"

#include <gtest/gtest.h>

#include "control/scripted_cluster_test.hpp"

namespace orrery {
namespace {

class PlanSearchesTest : public ::testing::Test {
 protected:
  /// Returns the searches that the requests have begun so far.
  [[nodiscard]] std::size_t begun() const { return recorder_.outcome().actions.size(); }
  [[nodiscard]] std::size_t found() const { return recorder_.outcome().events.size(); }

  const PlanKey key_{WorkId(1), FleetTypeId(0), 8};
  ScriptedCluster cluster_;
  Recorder recorder_{cluster_.setup()};
  PlanSearches searches_{recorder_};
};

TEST_F(PlanSearchesTest, APlanIsSearchedForOnceAtATime) {
  searches_.request(key_);
  searches_.request(key_);
  ASSERT_EQ(begun(), 1U);
  EXPECT_EQ(std::get<SearchPlan>(recorder_.outcome().actions.front()).key, key_);
  PlanKey larger = key_;
  larger.devices = 16;
  searches_.request(larger);
  EXPECT_EQ(begun(), 2U);
  searches_.forget();
  searches_.request(key_);
  EXPECT_EQ(begun(), 3U);
}

TEST_F(PlanSearchesTest, AResultIsKeptOnce) {
  const PlanReady ready{key_, cluster_.setup().plans(key_)};
  searches_.request(key_);
  searches_.on(ready);
  EXPECT_EQ(found(), 1U);
  EXPECT_NE(recorder_.state().plans().find(key_), nullptr);
  searches_.on(ready);
  EXPECT_EQ(found(), 1U) << "it is known already";
  searches_.request(key_);
  EXPECT_EQ(begun(), 2U) << "the first search is over";
}

}  // namespace
}  // namespace orrery
