#include "control/core/plan_digest.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

std::string printed(const PlanEntry* entry) { return print_digest(digest_of(entry)); }

TEST(PlanDigest, HoldsTheNumberOfPlansAndTheTimeOfTheFirst) {
  PlannedWork best;
  best.step_seconds = 1.5;
  PlannedWork other;
  other.step_seconds = 2;
  const PlanEntry found = std::vector<PlannedWork>{best, other};
  EXPECT_EQ(digest_of(&found), PlanDigest(PlansFound{2, 1.5}));
  EXPECT_EQ(printed(&found), "2 plans, the best of 1.5 s a step");
  const PlanEntry none = std::vector<PlannedWork>{};
  EXPECT_EQ(digest_of(&none), PlanDigest(PlansFound{0, 0}));
}

TEST(PlanDigest, TellsARefusalFromAMissingEntry) {
  const PlanEntry refused =
      tl::unexpected(Rejection{.kind = RejectionKind::kMemory, .reason = "too large"});
  EXPECT_EQ(printed(&refused), "no plan (memory)");
  EXPECT_EQ(printed(nullptr), "nothing");
  EXPECT_NE(digest_of(&refused), digest_of(nullptr));
}

}  // namespace
}  // namespace orrery
