#include "scheduler/explain/explain.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/numbers/rng.hpp"
#include "scheduler/place/cluster_test.hpp"

namespace orrery {
namespace {

ExplainNames numbered() {
  return {.job = [](JobId id) { return fmt::format("job-{}", id.value()); }};
}

Explanation explained(const TestCluster& cluster, JobId job, const std::string& policy) {
  return explain(cluster.situation(), *policy_named(policy), job, numbered());
}

const Change* find(const Explanation& answer, ChangeKind kind) {
  for (const Change& change : answer.changes) {
    if (change.kind == kind) return &change;
  }
  return nullptr;
}

/// Whether the job alone starts in a fleet, with its own request or another.
bool starts(const TestCluster& cluster, const FleetView& fleet, const WaitingJob& job) {
  Situation alone = cluster.situation();
  alone.fleet = fleet;
  alone.waiting = std::span(&job, 1);
  alone.reserved = {};
  Scheduler fresh(cluster.tree());
  const PassResult result =
      fresh.decide(alone, *policy_named("fifo:blocking=false"), PassKind::kIncremental);
  return std::any_of(result.decisions.begin(), result.decisions.end(),
                     [](const Decision& d) { return std::holds_alternative<StartJob>(d); });
}

/// Carries the change out with nothing that explain() itself uses; returns whether the job starts.
bool holds(const TestCluster& cluster, const Change& change, WaitingJob job) {
  FleetOverlay fleet(cluster.situation().fleet);
  if (change.request) job.request = &*change.request;
  if (change.other)
    give_back(fleet, std::span<const PlacedGang>(cluster.find(*change.other)->gangs));
  take(fleet, std::span<const PlacedGang>(change.moved));
  return starts(cluster, fleet.view(), job);
}

bool starts_without(const TestCluster& cluster, const std::vector<JobId>& gone,
                    const WaitingJob& job) {
  FleetOverlay fleet(cluster.situation().fleet);
  for (const JobId id : gone) {
    give_back(fleet, std::span<const PlacedGang>(cluster.find(id)->gangs));
  }
  return starts(cluster, fleet.view(), job);
}

/// Starts random jobs, some of which end, so that free devices are scattered. No job waits.
void fill(TestCluster& cluster, Rng& rng) {
  for (int i = 0; i < 24; ++i) {
    cluster.submit(cluster.job(static_cast<std::uint32_t>(1 + rng.below(16)),
                               Duration::minutes(static_cast<std::int64_t>(5 + rng.below(200)))));
  }
  cluster.pass("fifo:blocking=false");
  while (!cluster.situation().waiting.empty()) {
    cluster.withdraw(cluster.situation().waiting.front().id);
  }
  for (int i = 0; i < 4; ++i) {
    cluster.finish(cluster.running()[rng.below(cluster.running().size())].id);
  }
}

TEST(Explain, EveryChangeShownStartsTheJobAndTheBlockingSetIsMinimal) {
  std::uint32_t changes = 0;
  std::uint32_t blocked = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    TestCluster cluster;
    Rng rng(seed);
    fill(cluster, rng);
    JobRequest wish = cluster.job(static_cast<std::uint32_t>(8 * (1 + rng.below(8))));
    if (rng.below(2) == 0) wish.roles[0].options[0].gang.required = TopologyLevel::kRack;
    const JobId id = cluster.submit(wish);
    const Situation now = cluster.situation();
    const WaitingJob job = now.waiting.back();
    const Explanation answer = explained(cluster, id, "fifo:blocking=false");
    for (const Change& change : answer.changes) {
      ++changes;
      EXPECT_TRUE(holds(cluster, change, job)) << "seed " << seed << ": " << answer.text();
    }
    if (answer.when) {
      EXPECT_LE(answer.when->median, answer.when->late);
    }
    if (answer.blocking.empty()) continue;
    ++blocked;
    EXPECT_TRUE(starts_without(cluster, answer.blocking, job)) << "seed " << seed;
    for (std::size_t left_out = 0; left_out < answer.blocking.size(); ++left_out) {
      std::vector<JobId> fewer = answer.blocking;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(left_out));
      EXPECT_FALSE(starts_without(cluster, fewer, job)) << "seed " << seed;
    }
  }
  EXPECT_GT(changes, 20u);
  EXPECT_GT(blocked, 10u);
}

TEST(Explain, SaysWhoIsInTheWayAndWhenItIsOver) {
  TestCluster cluster;
  cluster.submit(cluster.job(96, Duration::hours(2)));
  cluster.pass("fifo");
  const JobId id = cluster.submit(cluster.job(64));
  const Explanation answer = explained(cluster, id, "fifo");
  ASSERT_EQ(answer.blocking.size(), 1u);
  EXPECT_EQ(answer.blocking[0], JobId(0));
  ASSERT_TRUE(answer.when);
  EXPECT_EQ(answer.when->median, Duration::hours(2));
  const Change* smaller = find(answer, ChangeKind::kSize);
  ASSERT_NE(smaller, nullptr);
  EXPECT_EQ(smaller->start.gangs[0].allocation.devices(), 32u);
}

TEST(Explain, AJobThatTheFleetCanNeverRunHasNoLikelyStart) {
  TestCluster cluster;
  cluster.submit(cluster.job(96, Duration::hours(2)));
  cluster.pass("fifo");
  Explanation answer = explained(cluster, cluster.submit(cluster.job(64)), "fifo");
  ASSERT_TRUE(answer.when);
  answer.set_never("never: role \"a\": types: the fleet has no h200");
  const std::string text = answer.text();
  EXPECT_NE(text.find(": never\n  why         role \"a\": types: the fleet has no h200\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("likely      never on this fleet\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("blocked by"), std::string::npos) << text;
}

TEST(Explain, AWiderLevelHelpsAGangThatNoRackHolds) {
  TestCluster cluster;
  for (int i = 0; i < 4; ++i) cluster.submit(cluster.job(8));
  cluster.pass("fifo");
  JobRequest wish = cluster.job(64);
  wish.roles[0].options[0].gang.required = TopologyLevel::kRack;
  const JobId id = cluster.submit(wish);
  EXPECT_NE(find(explained(cluster, id, "fifo"), ChangeKind::kLevel), nullptr);
}

TEST(Explain, AQuotaIsRaisedByNoMoreThanTheJobLacks) {
  TestCluster cluster(small_h100(), "- {name: a, limit: {h100: 16}}\n");
  JobRequest wish = cluster.job(24);
  wish.tenant = *cluster.tenants().find("a");
  const JobId id = cluster.submit(wish);
  const Explanation answer = explained(cluster, id, "capacity");
  const Change* more = find(answer, ChangeKind::kQuota);
  ASSERT_NE(more, nullptr) << answer.text();
  EXPECT_EQ(more->devices, 8);
  EXPECT_EQ(answer.blocked_by.size(), 1u);
}

TEST(Explain, ALaterJobOfABlockedQueueFitsAndSaysSo) {
  TestCluster cluster;
  cluster.submit(cluster.job(96));
  cluster.pass("fifo");
  cluster.submit(cluster.job(64));
  const JobId id = cluster.submit(cluster.job(8));
  const Explanation answer = explained(cluster, id, "fifo");
  EXPECT_FALSE(answer.refusal);
  EXPECT_EQ(answer.ahead, 1u);
  EXPECT_TRUE(answer.changes.empty());
}

TEST(Explain, SaysWhetherTheDeadlineCanBeMet) {
  TestCluster cluster;
  cluster.submit(cluster.job(128, Duration::hours(5)));
  cluster.pass("hardware-aware:estimate_sigma=0");
  const auto told = [&](Duration from_now) {
    JobRequest request = cluster.job(128, Duration::hours(2));
    request.deadline = cluster.now() + from_now;
    const JobId job = cluster.submit(std::move(request));
    const std::string text = explained(cluster, job, "hardware-aware:estimate_sigma=0").text();
    cluster.withdraw(job);
    return text.substr(std::min(text.size(), text.find("  deadline")));
  };
  EXPECT_TRUE(
      told(Duration::hours(9))
          .starts_with(
              "  deadline    to meet its deadline it has to start within 7 h, and is likely to\n"));
  EXPECT_TRUE(told(Duration::hours(6))
                  .starts_with("  deadline    to meet its deadline it has to start within 4 h; as "
                               "things are it will be "
                               "about 1 h late\n"));
  EXPECT_TRUE(
      told(Duration::hours(1))
          .starts_with("  deadline    it will be at least 1 h late for its deadline; at its "
                       "quickest, on 128 nvidia-h100-sxm5-80g, it takes 2 h; a deadline of "));
}

}  // namespace
}  // namespace orrery
