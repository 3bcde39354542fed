#include "scheduler/pass/usage_edits.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "scheduler/place/cluster_test.hpp"

namespace orrery {
namespace {

/// A tenant that may have 16 of 128 devices.
class UsageEditsTest : public testing::Test {
 protected:
  [[nodiscard]] JobRequest job_of_a(std::uint32_t devices) const {
    JobRequest job = cluster_.job(devices);
    job.tenant = a_;
    return job;
  }
  [[nodiscard]] std::int64_t used(const TenantUsage& usage) const { return usage.used(a_, h100_); }

  TestCluster cluster_{small_h100(), "- {name: a, limit: {h100: 16}}\n- {name: b}\n"};
  TenantId a_ = *cluster_.tenants().find("a");
  FleetTypeId h100_ = *cluster_.tree().topology().find_type("h100");
  Policy quotas_ = *policy_named("capacity");
  std::vector<PlacedGang> gang_{1};
};

TEST_F(UsageEditsTest, AJobIsCountedWithoutAChangeOfTheSituation) {
  UsageEdits edits(cluster_.situation(), quotas_);
  const JobRequest job = job_of_a(8);
  edits.count(job, gang_, UsageEdits::Held::kMore);
  EXPECT_EQ(used(edits.now()), 8);
  EXPECT_EQ(used(cluster_.usage()), 0);
  EXPECT_EQ(edits.changes(), 1u);
  edits.count(job, gang_, UsageEdits::Held::kLess);
  EXPECT_EQ(used(edits.now()), 0);
  EXPECT_EQ(edits.changes(), 2u) << "answers from before the changes are not valid again";
}

TEST_F(UsageEditsTest, ChangedTenantsAreNamedUntilTheyAreForgotten) {
  UsageEdits edits(cluster_.situation(), quotas_);
  EXPECT_TRUE(edits.changed().empty());
  edits.apply({a_, h100_, 0, 8});
  ASSERT_EQ(edits.changed().size(), 1u);
  EXPECT_EQ(edits.changed().front(), a_);
  edits.forget_changed();
  EXPECT_TRUE(edits.changed().empty());
  EXPECT_EQ(edits.changes(), 1u);
}

TEST_F(UsageEditsTest, LiveUsageShowsLaterChanges) {
  UsageEdits edits(cluster_.situation(), quotas_);
  const TenantUsage& live = edits.live();
  edits.apply({a_, h100_, 0, 8});
  EXPECT_EQ(used(live), 8);
  EXPECT_EQ(&live, &edits.now());
  EXPECT_EQ(used(cluster_.usage()), 0);
}

TEST_F(UsageEditsTest, QuotasMustLetAJobHaveEachOfItsOptions) {
  UsageEdits edits(cluster_.situation(), quotas_);
  JobRequest either = job_of_a(8);
  either.roles.front().options.push_back({cluster_.gang(16), 1.9, std::nullopt});
  EXPECT_TRUE(edits.may_take_any(either));
  edits.apply({a_, h100_, 0, 8});
  EXPECT_FALSE(edits.may_take_any(either));
  EXPECT_TRUE(edits.may_take_any(job_of_a(8)));
  EXPECT_FALSE(edits.may_take_any(job_of_a(16)));
}

TEST_F(UsageEditsTest, APolicyThatIgnoresQuotasLetsAJobHaveAll) {
  const Policy fifo = *policy_named("fifo");
  const UsageEdits edits(cluster_.situation(), fifo);
  EXPECT_TRUE(edits.may_take_any(job_of_a(64)));
}

TEST_F(UsageEditsTest, WithoutUsageNothingIsCounted) {
  Situation s = cluster_.situation();
  s.usage = nullptr;
  UsageEdits edits(s, quotas_);
  edits.count(job_of_a(8), gang_, UsageEdits::Held::kMore);
  EXPECT_EQ(edits.changes(), 0u);
  EXPECT_TRUE(edits.changed().empty());
}

}  // namespace
}  // namespace orrery
