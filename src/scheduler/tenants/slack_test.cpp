// Which jobs let a job with a deadline pass, and when.
#include "scheduler/tenants/slack.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "base/numbers/rng.hpp"
#include "scheduler/place/cluster_test.hpp"

namespace orrery {
namespace {

Policy newest() { return *policy_named("hardware-aware"); }

JobRequest with_deadline(const TestCluster& cluster, Duration estimate, Duration from_now) {
  JobRequest request = cluster.job(128, estimate);
  request.deadline = cluster.now() + from_now;
  return request;
}

std::vector<std::uint32_t> order_of(const TestCluster& cluster) {
  return in_order(cluster.situation(), newest());
}

TEST(Slack, IsWhatIsLeftOfTheTimeToTheDeadline) {
  TestCluster cluster;
  cluster.submit(with_deadline(cluster, Duration::hours(20), Duration::hours(30)));
  cluster.submit(cluster.job(8));
  const Situation s = cluster.situation();
  const std::optional<Slack> slack = slack_of(s.waiting[0], newest(), s);
  ASSERT_TRUE(slack);
  EXPECT_EQ(slack->left, Duration::hours(10));
  EXPECT_EQ(slack->margin, Duration::hours(2));
  EXPECT_EQ(slack->spare(), Duration::hours(8));
  EXPECT_FALSE(slack_of(s.waiting[1], newest(), s)) << "it has no deadline";
}

TEST(Slack, TheMarginIsNoLessThanTheTimeBetweenFullPasses) {
  TestCluster cluster;
  cluster.submit(with_deadline(cluster, Duration::minutes(20), Duration::hours(1)));
  const Situation s = cluster.situation();
  EXPECT_EQ(slack_of(s.waiting[0], newest(), s)->margin, Duration::minutes(10));
}

TEST(Slack, AJobPassesOnlyThoseAfterWhomItWouldBeLate) {
  TestCluster cluster;
  cluster.submit(cluster.job(8, Duration::hours(2)));
  cluster.submit(cluster.job(8, Duration::hours(7)));
  cluster.submit(cluster.job(8, Duration::hours(8)));
  cluster.submit(with_deadline(cluster, Duration::hours(10), Duration::hours(17)));
  EXPECT_EQ(order_of(cluster), (std::vector<std::uint32_t>{0, 3, 1, 2})) << "it may wait 6 h";
  cluster.wait(Duration::hours(5));
  EXPECT_EQ(order_of(cluster), (std::vector<std::uint32_t>{3, 0, 1, 2})) << "it may wait 1 h";
  cluster.wait(Duration::hours(3));
  EXPECT_EQ(order_of(cluster), (std::vector<std::uint32_t>{0, 1, 2, 3})) << "it will be late";
}

TEST(Slack, OfTwoWithDeadlinesTheOneThatHasToStartFirstGoesFirst) {
  TestCluster cluster;
  cluster.submit(cluster.job(8, Duration::hours(9)));
  cluster.submit(with_deadline(cluster, Duration::hours(1), Duration::hours(9)));
  cluster.submit(with_deadline(cluster, Duration::hours(2), Duration::hours(6)));
  EXPECT_EQ(order_of(cluster), (std::vector<std::uint32_t>{2, 1, 0}));
}

TEST(Slack, NobodyPassesAHigherPriorityOrAnotherTenant) {
  TestCluster cluster(small_h100(), "- {name: a}\n- {name: b}\n");
  JobRequest first = cluster.job(8, Duration::hours(9));
  first.tenant = *cluster.tenants().find("a");
  cluster.submit(first);
  first.tenant = *cluster.tenants().find("b");
  first.priority = 1;
  cluster.submit(first);
  JobRequest pressed = with_deadline(cluster, Duration::hours(10), Duration::hours(12));
  pressed.tenant = first.tenant;
  cluster.submit(pressed);
  const std::vector<std::uint32_t> order = order_of(cluster);
  const auto at = [&](std::uint32_t job) { return std::find(order.begin(), order.end(), job); };
  EXPECT_LT(at(1), at(2));
  EXPECT_LT(at(0), at(2));
}

TEST(Slack, TheFirstVersionKnowsNoDeadlines) {
  TestCluster cluster;
  cluster.submit(cluster.job(8, Duration::hours(9)));
  cluster.submit(with_deadline(cluster, Duration::hours(10), Duration::hours(12)));
  const Policy first = *policy_named("hardware-aware:version=1");
  EXPECT_EQ(in_order(cluster.situation(), first), (std::vector<std::uint32_t>{0, 1}));
}

// The place of each job by the definition, one pair after the other.
TEST(Slack, RandomQueuesAreInTheOrderOfTheDefinition) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng = Rng::stream(seed, "slack");
    TestCluster cluster;
    const std::uint64_t jobs = 1 + rng.below(24);
    for (std::uint64_t i = 0; i < jobs; ++i) {
      const Duration run = Duration::hours(static_cast<std::int64_t>(1 + rng.below(20)));
      JobRequest request = cluster.job(8, run);
      const auto slack = Duration::minutes(static_cast<std::int64_t>(rng.below(1800)));
      if (rng.below(2) == 0) request.deadline = cluster.now() + run + slack;
      cluster.submit(std::move(request));
    }
    const Situation s = cluster.situation();
    std::vector<std::uint32_t> plain(jobs);
    for (std::uint32_t i = 0; i < jobs; ++i) plain[i] = i;
    std::sort(plain.begin(), plain.end(), [&](std::uint32_t a, std::uint32_t b) {
      return key_of(s.waiting[a], newest(), s) < key_of(s.waiting[b], newest(), s);
    });
    const auto spare = [&](std::uint32_t job) {
      const auto slack = slack_of(s.waiting[job], newest(), s);
      return slack ? slack->spare() : Duration::max();
    };
    using Key = std::tuple<std::size_t, bool, Duration, std::size_t>;
    std::vector<std::pair<Key, std::uint32_t>> wanted;
    for (std::size_t place = 0; place < jobs; ++place) {
      const std::uint32_t job = plain[place];
      std::size_t target = 0;
      while (target < place && (spare(job) >= spare(plain[target]) ||
                                spare(job) >= *s.waiting[plain[target]].request->estimate)) {
        ++target;
      }
      const bool stays = target == place;
      wanted.push_back({{target, stays, stays ? Duration() : spare(job), place}, job});
    }
    std::sort(wanted.begin(), wanted.end());
    std::vector<std::uint32_t> order;
    order.reserve(jobs);
    for (const auto& [key, job] : wanted) order.push_back(job);
    EXPECT_EQ(order_of(cluster), order) << "seed " << seed;
  }
}

}  // namespace
}  // namespace orrery
