// executor/holds/job_holds_test.cpp - holds that serve one job each.
#include <gtest/gtest.h>

#include "executor/holds/hold_link_test.hpp"

namespace orrery {
namespace {

class JobHoldsTest : public HoldLinkTest {
 protected:
  void SetUp() override {
    begin({.holds_for = HoldsFor::kOneJob});
    wait(Duration::seconds(3));
  }
  JobId submit_limited(std::uint32_t devices, Duration limit) {
    Submission submission = cluster_.job(devices);
    submission.request.time_limit = limit;
    const JobId id = cluster_.submit(submission);
    cluster_.tick();
    return id;
  }
  [[nodiscard]] const Hold* hold_of(JobId job) const {
    for (const Hold& hold : link_->holds()) {
      if (hold.key.job == job.value()) return &hold;
    }
    return nullptr;
  }
  /// The manager grants the hold of a job, and agents join.
  void grant(JobId job, const std::string& id, const std::vector<std::uint32_t>& nodes) {
    std::vector<std::string> names;
    names.reserve(nodes.size());
    for (const std::uint32_t n : nodes) names.push_back(name(n));
    const Hold* hold = hold_of(job);
    ASSERT_NE(hold, nullptr);
    run(hold->key, id, std::move(names));
    wait(Duration::seconds(3));
    for (const std::uint32_t n : nodes) cluster_.send(NodeJoined{NodeId(n), 7});
    cluster_.tick();
  }
  [[nodiscard]] bool was_released(const std::string& id) const {
    const std::vector<ReleaseHold> orders = asked<ReleaseHold>();
    return std::any_of(orders.begin(), orders.end(),
                       [&](const ReleaseHold& order) { return order.id == id; });
  }
};

TEST_F(JobHoldsTest, WaitNoLongerWhereNothingIsToBeLent) {
  const JobId job = submit(8);
  wait(Duration::seconds(3));
  ASSERT_NE(hold_of(job), nullptr);
  holds_.push_back({.key = hold_of(job)->key, .id = "71", .reason = "Priority", .nodes = {}});
  wait(Duration::seconds(3));
  term_ = 4;
  most_ = 0;
  begin({.holds_for = HoldsFor::kOneJob});
  wait(Duration::seconds(5));
  EXPECT_TRUE(was_released("71"));
  EXPECT_EQ(asked<EnsureHold>().size(), 1u);
}

TEST_F(JobHoldsTest, AreAskedForOncePerJobWithItsNodesAndItsTime) {
  const JobId wide = submit_limited(16, Duration::hours(2));
  const JobId narrow = submit_limited(3, Duration::hours(1));
  wait(Duration::seconds(5));
  const std::vector<EnsureHold> orders = asked<EnsureHold>();
  ASSERT_EQ(orders.size(), 2u);
  EXPECT_EQ(orders[0].key.job, wide.value());
  EXPECT_EQ(orders[0].nodes, 2u);
  EXPECT_EQ(orders[0].time, Duration::hours(2) + Duration::minutes(6));
  EXPECT_EQ(orders[1].key.job, narrow.value());
  EXPECT_EQ(orders[1].nodes, 1u);
  EXPECT_FALSE(orders[0].tenant.empty());
}

TEST_F(JobHoldsTest, ServeNoOtherJob) {
  const JobId first = submit(8);
  const JobId second = submit(8);
  wait(Duration::seconds(2));
  grant(second, "72", {0});
  EXPECT_EQ(cluster_.phase(first), JobPhase::kQueued)
      << "it came first, and the node is not for it";
  EXPECT_EQ(cluster_.phase(second), JobPhase::kStarting);
  EXPECT_EQ(cluster_.nodes(second), std::vector<NodeId>{NodeId(0)});
}

TEST_F(JobHoldsTest, LeaveRoomForNobodyBesideTheirJob) {
  const JobId small = submit(3);
  wait(Duration::seconds(2));
  grant(small, "72", {0});
  ASSERT_EQ(cluster_.phase(small), JobPhase::kStarting);
  const JobId other = submit(2);
  EXPECT_EQ(cluster_.phase(other), JobPhase::kQueued);
}

TEST_F(JobHoldsTest, EndWithTheirJob) {
  const JobId job = submit(8);
  wait(Duration::seconds(2));
  grant(job, "72", {0});
  cluster_.up(job);
  wait(Duration::minutes(10));
  EXPECT_FALSE(was_released("72"));
  cluster_.end(job);
  cluster_.gone(job);
  wait(Duration::seconds(3));
  EXPECT_TRUE(was_released("72"));
}

TEST_F(JobHoldsTest, AreGivenBackIfTheirJobIsCancelledOrRunsElsewhere) {
  const JobId cancelled = submit(8);
  const JobId elsewhere = submit(8);
  wait(Duration::seconds(2));
  holds_.push_back({.key = hold_of(cancelled)->key, .id = "72"});
  holds_.push_back({.key = hold_of(elsewhere)->key, .id = "73"});
  wait(Duration::seconds(3));
  cluster_.send(CancelJob{cancelled});
  cluster_.send(NodeGranted{NodeId(3), {}, Instant::max(), {}});
  cluster_.send(NodeJoined{NodeId(3), 7});
  cluster_.tick();
  ASSERT_EQ(cluster_.phase(elsewhere), JobPhase::kStarting);
  link_->advance(cluster_.core(), cluster_.now() + Duration::seconds(1));
  settle();
  answer_lists();
  EXPECT_TRUE(was_released("72"));
  EXPECT_TRUE(was_released("73"));
}

TEST_F(JobHoldsTest, ServeTheNextAttemptOfTheirJob) {
  const JobId job = submit(8);
  wait(Duration::seconds(2));
  grant(job, "72", {0});
  cluster_.up(job);
  cluster_.send(RequeueJob{job, 1});
  cluster_.gone(job);
  ASSERT_EQ(cluster_.phase(job), JobPhase::kQueued);
  wait(Duration::minutes(2));
  EXPECT_FALSE(was_released("72"));
  EXPECT_EQ(cluster_.phase(job), JobPhase::kStarting);
  EXPECT_EQ(cluster_.nodes(job), std::vector<NodeId>{NodeId(0)});
}

TEST_F(JobHoldsTest, AreGivenBackIfTheirJobDoesNotStart) {
  const JobId job = submit(8);
  wait(Duration::seconds(2));
  cluster_.send(HoldJob{job});
  wait(Duration::seconds(2));
  EXPECT_TRUE(link_->holds().empty() || link_->holds()[0].state == HoldState::kReleasing);
}

TEST_F(JobHoldsTest, AreTakenOverByTheNextController) {
  const JobId job = submit(8);
  wait(Duration::seconds(2));
  grant(job, "72", {0});
  cluster_.up(job);
  ++term_;
  begin({.holds_for = HoldsFor::kOneJob});
  wait(Duration::minutes(1));
  EXPECT_EQ(cluster_.phase(job), JobPhase::kRunning);
  EXPECT_FALSE(was_released("72"));
  ASSERT_NE(hold_of(job), nullptr);
  EXPECT_EQ(hold_of(job)->nodes, std::vector<NodeId>{NodeId(0)});
}

TEST_F(JobHoldsTest, AreGivenBackIfTheNextControllerFindsThemAfterTheEndOfTheirJob) {
  const JobId job = submit(8);
  wait(Duration::seconds(2));
  ASSERT_NE(hold_of(job), nullptr);
  holds_.push_back({.key = hold_of(job)->key, .id = "72", .reason = "Priority", .nodes = {}});
  cluster_.send(CancelJob{job});
  ++term_;
  begin({.holds_for = HoldsFor::kOneJob});
  wait(Duration::seconds(20));
  EXPECT_TRUE(was_released("72"));
}

TEST_F(JobHoldsTest, AreNoMoreThanTheNodes) {
  for (int n = 0; n < 7; ++n) submit(8);
  wait(Duration::seconds(5));
  EXPECT_EQ(asked<EnsureHold>().size(), 4u);
}

TEST(HoldKeys, NameTheJobThatTheyServe) {
  const HoldKey key{.id = 7, .epoch = 3, .job = 41};
  EXPECT_EQ(text_of(key), "job-41-3-7");
  EXPECT_EQ(hold_key_of("job-41-3-7"), key);
  EXPECT_EQ(hold_key_of("pilot-3-7"), (HoldKey{.id = 7, .epoch = 3, .job = {}}));
  for (const char* wrong :
       {"job-41-3", "job--3-7", "job-41-3-7-1", "job-4294967295-3-7", "job-041-3-7"}) {
    EXPECT_EQ(hold_key_of(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace orrery
