#include "scheduler/pass/refusal_memo.hpp"

#include <gtest/gtest.h>

#include "scheduler/place/cluster_test.hpp"

namespace orrery {
namespace {

constexpr ClassId kClass{3};
constexpr Refusal kFull{RejectionKind::kBusy, TopologyLevel::kRack, 5};

class RefusalMemoTest : public testing::Test {
 protected:
  RefusalMemoTest() {
    begin_pass();
    memo_.remember_class(kClass, kFull);
    memo_.remember_placement_class(kClass, kFull);
  }

  void begin_pass() {
    Situation s = cluster_.situation();
    s.changes = changes_;
    memo_.begin(s);
  }
  [[nodiscard]] bool holds_for_class() const { return memo_.of_class(kClass) != nullptr; }
  [[nodiscard]] bool holds_for_placement_class() const {
    return memo_.of_placement_class(kClass) != nullptr;
  }

  TestCluster cluster_;
  Changes changes_{.freed = 7, .plans = 2, .limits = 4, .links = 1};
  RefusalMemo memo_;
};

TEST_F(RefusalMemoTest, ARefusalIsThatOfItsClassAlone) {
  ASSERT_TRUE(holds_for_class());
  EXPECT_EQ(*memo_.of_class(kClass), kFull);
  ASSERT_TRUE(holds_for_placement_class());
  EXPECT_EQ(*memo_.of_placement_class(kClass), kFull);
  for (const ClassId other : {ClassId(2), ClassId(4), ClassId()}) {
    EXPECT_EQ(memo_.of_class(other), nullptr);
    EXPECT_EQ(memo_.of_placement_class(other), nullptr);
  }
}

TEST_F(RefusalMemoTest, EquivalenceClassesAndPlacementClassesHaveIdsOfTheirOwn) {
  memo_.remember_class(ClassId(5), kFull);
  EXPECT_EQ(memo_.of_placement_class(ClassId(5)), nullptr);
  memo_.remember_placement_class(ClassId(6), kFull);
  EXPECT_EQ(memo_.of_class(ClassId(6)), nullptr);
}

TEST_F(RefusalMemoTest, ARefusalHoldsInLaterPassesUntilDevicesComeFree) {
  begin_pass();
  EXPECT_TRUE(holds_for_class());
  ++changes_.limits;
  begin_pass();
  EXPECT_TRUE(holds_for_class());
  ++changes_.freed;
  begin_pass();
  EXPECT_FALSE(holds_for_class());
  EXPECT_FALSE(holds_for_placement_class());
}

TEST_F(RefusalMemoTest, ANewPlanEndsARefusal) {
  ++changes_.plans;
  begin_pass();
  EXPECT_FALSE(holds_for_class());
  EXPECT_FALSE(holds_for_placement_class());
}

TEST_F(RefusalMemoTest, AChangeOfLinksEndsTheRefusalOfAnEquivalenceClassOnly) {
  ++changes_.links;
  begin_pass();
  EXPECT_FALSE(holds_for_class());
  EXPECT_TRUE(holds_for_placement_class());
}

TEST_F(RefusalMemoTest, ForgettingDropsEveryRefusal) {
  memo_.forget();
  EXPECT_FALSE(holds_for_class());
  EXPECT_FALSE(holds_for_placement_class());
}

}  // namespace
}  // namespace orrery
