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
  [[nodiscard]] std::string why_not(JobId job) const {
    return why_not_asked(*link_, 0, {cluster_.state(), job, cluster_.now()});
  }
  [[nodiscard]] std::vector<std::string> notes(JobId job) const {
    return hold_notes(*link_, 0, {cluster_.state(), job, cluster_.now()});
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

TEST_F(HoldWaitTest, AHoldThatHasWaitedLongerThanMostHasNoEstimate) {
  begin();
  (void)submit(8);
  wait(Duration::seconds(100));
  run(asked<EnsureHold>().at(0).key, "71", {name(0)});
  wait(Duration::seconds(3));
  cluster_.send(NodeJoined{NodeId(0), 7});
  cluster_.tick();
  const std::size_t before = asked<EnsureHold>().size();
  const JobId next = submit(8);
  wait(Duration::seconds(3));
  ASSERT_EQ(asked<EnsureHold>().size(), before + 1);
  list_waiting(asked<EnsureHold>().back().key, "72", std::nullopt);
  wait(Duration::seconds(3));
  EXPECT_EQ(starts(next).size(), 1u);
  wait(Duration::minutes(10));
  EXPECT_TRUE(starts(next).empty());
}

TEST_F(HoldWaitTest, WhereAllIsLentPastWaitsTellNothing) {
  most_ = 1;
  begin();
  (void)submit(8);
  wait(Duration::seconds(100));
  run(asked<EnsureHold>().at(0).key, "71", {name(0)});
  wait(Duration::seconds(3));
  ASSERT_TRUE(usual_wait(link_->manager(0)));
  EXPECT_TRUE(starts(submit(8)).empty());
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

TEST_F(HoldWaitTest, AJobThatNoHoldIsAskedForIsToldWhy) {
  most_ = 3;
  begin();
  EXPECT_EQ(why_not(submit(24)), "");
  EXPECT_EQ(why_not(submit(32)), "it needs 4 nodes, and slurm lends at most 3");
  Submission longer = cluster_.job(8);
  longer.request.estimate.reset();
  longer.request.time_limit = Duration::hours(20);
  EXPECT_EQ(why_not(cluster_.submit(longer)), "");
  longer.request.time_limit = Duration::hours(47);
  EXPECT_EQ(why_not(cluster_.submit(longer)),
            "it takes 1 d 23 h, and a hold of slurm lasts 1 d less 6 min");
  most_ = 0;
  begin();
  EXPECT_EQ(why_not(submit(8)), "slurm is to lend no nodes");
  begin({.use = PoolUse::kShared});
  EXPECT_EQ(why_not(submit(8)), "");
}

TEST_F(HoldWaitTest, DrainedNodesAreNotAskedFor) {
  begin();
  const JobId all = submit(32);
  const JobId part = submit(4);
  wait(Duration::seconds(3));
  EXPECT_EQ(why_not(all), "");
  cluster_.send(DrainNode{NodeId(0), false, "disk"});
  EXPECT_EQ(why_not(all), "it needs 4 of the 4 nodes of slurm, and 1 are drained");
  EXPECT_EQ(why_not(part), "");
  for (std::uint32_t n = 1; n < 4; ++n) cluster_.send(DrainNode{NodeId(n), false, "disk"});
  EXPECT_EQ(why_not(part), "it needs 1 of the 4 nodes of slurm, and 4 are drained");
}

TEST(HoldWait, NodesOfAnotherTypeAreNotAskedFor) {
  ScriptedCluster cluster({.fleet = two_types(), .nodes_begin = NodeHealth::kJoining});
  HoldPool pool{.manager = "slurm", .nodes = {NodeId(2), NodeId(3)}};
  pool.lent = {.nodes = pool.nodes, .most = 2, .time = Duration::hours(24)};
  const HoldLink link({.pools = {pool}}, cluster.state(), cluster.now());
  const JobId job = cluster.submit(cluster.job(8));
  EXPECT_EQ(why_not_asked(link, 0, {cluster.state(), job, cluster.now()}),
            "none of the nodes of slurm is of a type that it can use");
}

TEST_F(HoldWaitTest, PilotsThatWaitAreNamedUpToFour) {
  begin();
  const JobId job = submit(8);
  for (int other = 0; other < 3; ++other) (void)submit(8);
  wait(Duration::seconds(3));
  EXPECT_EQ(notes(job), (std::vector<std::string>{"pilot-3-1 asked", "pilot-3-2 asked",
                                                  "pilot-3-3 asked", "pilot-3-4 asked"}));
  hear(HoldAnswer{.key = asked<EnsureHold>().at(0).key,
                  .id = {},
                  .refused = HoldRefusal::kBusy,
                  .text = "the queue is full"});
  EXPECT_EQ(notes(job).back(), "slurm refused a hold: the queue is full");
}

TEST_F(HoldWaitTest, TheHoldsAndRefusalsOfOtherJobsAreNotTold) {
  begin({.holds_for = HoldsFor::kOneJob});
  const JobId own = submit(8);
  const JobId other = submit(8);
  const JobId third = submit(8);
  wait(Duration::seconds(3));
  const std::vector<EnsureHold> orders = asked<EnsureHold>();
  ASSERT_EQ(orders.size(), 3u);
  EXPECT_EQ(notes(own),
            (std::vector<std::string>{text_of(orders[0].key) + " asked", "2 more wait"}));
  hear(HoldAnswer{.key = orders[1].key,
                  .id = {},
                  .refused = HoldRefusal::kAuth,
                  .text = "Invalid account ai-secret"});
  EXPECT_EQ(notes(own),
            (std::vector<std::string>{text_of(orders[0].key) + " asked", "1 more wait"}));
  const std::vector<std::string> refused = notes(other);
  ASSERT_EQ(refused.size(), 2u);
  EXPECT_EQ(refused[0], "2 more wait");
  EXPECT_TRUE(refused[1].starts_with(
      "slurm refused a hold of this job: auth: Invalid account ai-secret; the next request is in "))
      << refused[1];
  EXPECT_EQ(notes(third).size(), 2u);
}

}  // namespace
}  // namespace orrery
