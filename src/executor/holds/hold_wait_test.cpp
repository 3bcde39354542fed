// executor/holds/hold_wait_test.cpp - when nodes are likely to be lent for a job.
#include "executor/holds/hold_wait.hpp"

#include "executor/holds/hold_link_test.hpp"

namespace orrery {
namespace {

class HoldWaitTest : public HoldLinkTest {
 protected:
  [[nodiscard]] std::vector<LikelyStart> starts(JobId job) const {
    return lent_starts(*link_, cluster_.state(), job, cluster_.now());
  }
  /// The manager lists a hold that waits.
  void list_waiting(const HoldKey& key, const std::string& id, std::optional<Duration> starts_in) {
    holds_.push_back(
        {.key = key, .id = id, .reason = "Priority", .nodes = {}, .starts_in = starts_in});
  }
};

TEST_F(HoldWaitTest, NothingIsKnownBeforeTheFirstHold) {
  begin();
  EXPECT_TRUE(starts(submit(8)).empty());
}

TEST_F(HoldWaitTest, TheManagersEstimatesAreForTheJobsInTheirOrder) {
  begin();
  const JobId job = submit(8);
  (void)submit(8);
  wait(Duration::seconds(3));
  const std::vector<EnsureHold> orders = asked<EnsureHold>();
  ASSERT_EQ(orders.size(), 2u);
  list_waiting(orders[0].key, "71", Duration::minutes(40));
  list_waiting(orders[1].key, "72", Duration::minutes(20));
  wait(Duration::seconds(3));
  const std::vector<LikelyStart> found = starts(job);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].median, Duration::minutes(20));
  EXPECT_EQ(found[1].median, Duration::minutes(40));
  EXPECT_EQ(found[0].late, Duration::max()) << "an estimate says nothing of nine holds in ten";
}

TEST_F(HoldWaitTest, WithoutAnEstimateTheHoldsBeforeTell) {
  begin();
  (void)submit(8);
  wait(Duration::seconds(100));
  const std::vector<EnsureHold> orders = asked<EnsureHold>();
  ASSERT_GE(orders.size(), 1u);
  run(orders[0].key, "71", {name(0)});
  wait(Duration::seconds(3));
  const std::optional<LikelyStart> usual = usual_wait(link_->manager(0));
  ASSERT_TRUE(usual);
  EXPECT_GE(usual->median, Duration::seconds(90));
  const JobId next = submit(8);
  const std::vector<LikelyStart> found = starts(next);
  ASSERT_FALSE(found.empty());
  EXPECT_LE(found[0].median, usual->median);
  EXPECT_LE(found[0].median, found[0].late);
}

TEST_F(HoldWaitTest, AHoldOfAnotherJobTellsNothing) {
  begin({.holds_for = HoldsFor::kOneJob});
  const JobId first = submit(8);
  const JobId second = submit(8);
  wait(Duration::seconds(3));
  const std::vector<EnsureHold> orders = asked<EnsureHold>();
  ASSERT_EQ(orders.size(), 2u);
  list_waiting(orders[0].key, "71", Duration::minutes(40));
  wait(Duration::seconds(3));
  EXPECT_EQ(starts(first).size(), 1u);
  EXPECT_TRUE(starts(second).empty());
}

TEST_F(HoldWaitTest, AManagerThatCannotBeAskedTellsNothing) {
  begin();
  const JobId job = submit(8);
  wait(Duration::seconds(3));
  list_waiting(asked<EnsureHold>().at(0).key, "71", Duration::minutes(40));
  wait(Duration::seconds(3));
  ASSERT_EQ(starts(job).size(), 1u);
  complete_ = false;
  trouble_ = "Unable to contact slurm controller";
  wait(Duration::seconds(10));
  EXPECT_TRUE(starts(job).empty());
}

}  // namespace
}  // namespace orrery
