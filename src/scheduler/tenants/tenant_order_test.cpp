// The order of a tenant's jobs by their service, and which jobs overtake which.
#include <gtest/gtest.h>

#include <memory>

#include "base/numbers/rng.hpp"
#include "scheduler/place/cluster_test.hpp"

namespace orrery {
namespace {

const std::string kDefault = "hardware-aware";

JobRequest preemptible(const TestCluster& cluster, std::uint32_t devices, Duration estimate) {
  JobRequest request = cluster.job(devices, estimate);
  request.kind = JobKind::kTrain;
  request.preemptible = true;
  request.checkpoint_interval = Duration::minutes(30);
  return request;
}

JobId submit_of(TestCluster& cluster, const std::string& tenant, JobRequest request) {
  request.tenant = *cluster.tenants().find(tenant);
  return cluster.submit(std::move(request));
}

JobRequest without_estimate(const TestCluster& cluster, std::uint32_t devices) {
  JobRequest request = preemptible(cluster, devices, Duration::hours(1));
  request.estimate.reset();
  return request;
}

TEST(TenantOrder, TheJobOfTheLeastServiceStartsFirst) {
  TestCluster cluster;
  const JobId whole = cluster.submit(cluster.job(128, Duration::hours(1)));  // may not be stopped
  cluster.pass(kDefault);
  const JobId large = cluster.submit(cluster.job(128, Duration::hours(2)));
  const JobId small = cluster.submit(cluster.job(64, Duration::hours(3)));
  cluster.finish(whole);
  cluster.pass(kDefault);
  EXPECT_TRUE(cluster.runs(small));
  EXPECT_FALSE(cluster.runs(large));
}

TEST(TenantOrder, TheFirstVersionStartsWhoeverWasSubmittedFirst) {
  TestCluster cluster;
  const JobId whole = cluster.submit(cluster.job(128, Duration::hours(1)));
  cluster.pass("hardware-aware:version=1");
  const JobId large = cluster.submit(cluster.job(128, Duration::hours(2)));
  const JobId small = cluster.submit(cluster.job(64, Duration::hours(3)));
  cluster.finish(whole);
  cluster.pass("hardware-aware:version=1");
  EXPECT_TRUE(cluster.runs(large));
  EXPECT_FALSE(cluster.runs(small));
}

TEST(TenantOrder, AJobIsOvertakenOnceItsQuantumIsOverByOneOfHalfItsService) {
  TestCluster cluster;
  const JobId longest = cluster.submit(preemptible(cluster, 128, Duration::hours(9)));
  cluster.pass(kDefault);
  cluster.wait(Duration::minutes(9));
  const JobId shorter = cluster.submit(preemptible(cluster, 64, Duration::hours(1)));
  cluster.pass(kDefault);
  EXPECT_TRUE(cluster.runs(longest)) << "its 10 minutes are not over";
  cluster.wait(Duration::minutes(1));
  cluster.pass(kDefault);
  EXPECT_FALSE(cluster.runs(longest));
  cluster.pass(kDefault);
  EXPECT_TRUE(cluster.runs(shorter));
}

TEST(TenantOrder, NobodyIsOvertakenForLessThanTheRatio) {
  TestCluster cluster;
  const JobId longer = cluster.submit(preemptible(cluster, 128, Duration::hours(9)));
  cluster.pass(kDefault);
  cluster.wait(Duration::hours(1));
  cluster.submit(preemptible(cluster, 128, Duration::hours(5)));
  cluster.pass(kDefault);
  EXPECT_TRUE(cluster.runs(longer));
}

TEST(TenantOrder, AJobThatCannotGoOnLaterIsNotOvertaken) {
  TestCluster cluster;
  const JobId longest = cluster.submit(cluster.job(128, Duration::hours(9)));
  cluster.pass(kDefault);
  cluster.wait(Duration::hours(1));
  cluster.submit(preemptible(cluster, 8, Duration::hours(1)));
  cluster.pass(kDefault);
  EXPECT_TRUE(cluster.runs(longest));
}

TEST(TenantOrder, AJobThatWritesNoCheckpointsIsNotOvertaken) {
  TestCluster cluster;
  JobRequest request = preemptible(cluster, 128, Duration::hours(9));
  request.checkpoint_interval = Duration::max();
  const JobId longest = cluster.submit(request);
  cluster.pass(kDefault);
  cluster.wait(Duration::hours(1));
  cluster.submit(preemptible(cluster, 8, Duration::hours(1)));
  cluster.pass(kDefault);
  EXPECT_TRUE(cluster.runs(longest));
}

void pass_twice(TestCluster& cluster, const std::string& policy = kDefault) {
  cluster.pass(policy);  // one job leaves
  cluster.pass(policy);  // another starts in its place
}

/// Two jobs of unknown length that want all devices: `second` comes once `first` has had them for a
/// time.
struct TwoJobs {
  JobId first;
  JobId second;
};
TwoJobs submit_one_after_another(TestCluster& cluster, Duration had) {
  const JobId first = cluster.submit(without_estimate(cluster, 128));
  cluster.pass(kDefault);
  cluster.wait(had);
  const TwoJobs jobs{first, cluster.submit(without_estimate(cluster, 128))};
  pass_twice(cluster);
  return jobs;
}

TEST(TenantOrder, WhereNoLengthIsKnownTheJobThatHasHadLeastGoesFirst) {
  TestCluster cluster;
  const TwoJobs jobs = submit_one_after_another(cluster, Duration::hours(1));
  EXPECT_FALSE(cluster.runs(jobs.first));
  EXPECT_TRUE(cluster.runs(jobs.second));
}

// A job on 128 devices is in the class that ends at 36 device-hours from 169 s on, in the next one
// from 1,013 s on.
TEST(TenantOrder, JobsOfUnknownLengthTakeTurnsByTheClassOfWhatTheyHaveHad) {
  TestCluster cluster;
  const TwoJobs jobs = submit_one_after_another(cluster, Duration::minutes(10));
  ASSERT_TRUE(cluster.runs(jobs.second));
  cluster.wait(Duration::seconds(1012));
  pass_twice(cluster);
  EXPECT_TRUE(cluster.runs(jobs.second)) << "both are in one class";
  cluster.wait(Duration::seconds(1));
  for (const char* unrounded : {"hardware-aware:version=2", "hardware-aware:attained_step=1"}) {
    pass_twice(cluster, unrounded);
    EXPECT_TRUE(cluster.runs(jobs.second)) << "it has not had twice as much";
  }
  pass_twice(cluster);
  EXPECT_TRUE(cluster.runs(jobs.first));
}

/// A job of `a` has the fleet for 9 hours; after one of them `b` wants a node for ten minutes.
std::unique_ptr<TestCluster> two_tenants(const std::string& tenants) {
  auto made = std::make_unique<TestCluster>(small_h100(), tenants);
  TestCluster& cluster = *made;
  submit_of(cluster, "a", preemptible(cluster, 128, Duration::hours(9)));
  cluster.pass(kDefault);
  cluster.wait(Duration::hours(1));
  submit_of(cluster, "b", preemptible(cluster, 8, Duration::minutes(10)));
  cluster.pass(kDefault);
  cluster.pass(kDefault);
  return made;
}

TEST(TenantOrder, WhoHasHadMostYieldsToAJobThatHasHadNothing) {
  TestCluster cluster;
  const JobId first = cluster.submit(without_estimate(cluster, 64));
  cluster.pass(kDefault);
  cluster.wait(Duration::hours(3));
  const JobId second = cluster.submit(without_estimate(cluster, 64));
  cluster.pass(kDefault);
  cluster.wait(Duration::hours(1));
  cluster.submit(without_estimate(cluster, 64));
  cluster.pass(kDefault);
  EXPECT_FALSE(cluster.runs(first));
  EXPECT_TRUE(cluster.runs(second));
}

TEST(TenantOrder, ATenantThatHasLessOvertakesOneThatBorrows) {
  const auto cluster = two_tenants("- {name: a}\n- {name: b}\n");
  EXPECT_FALSE(cluster->runs(JobId(0)));
  EXPECT_TRUE(cluster->runs(JobId(1)));
}

// Between two tenants, training stays ahead of preemptible batch work; otherwise both would take
// turns.
TEST(TenantOrder, BatchWorkOvertakesNoTrainingOfAnotherTenant) {
  TestCluster cluster(small_h100(), "- {name: a}\n- {name: b}\n");
  const JobId longest = submit_of(cluster, "a", preemptible(cluster, 128, Duration::hours(9)));
  cluster.pass(kDefault);
  cluster.wait(Duration::hours(1));
  JobRequest batch = preemptible(cluster, 128, Duration::minutes(10));
  batch.kind = JobKind::kBatch;
  submit_of(cluster, "b", batch);
  cluster.pass(kDefault);
  EXPECT_TRUE(cluster.runs(longest));
}

TEST(TenantOrder, ALoweredLimitIsNotPassedByOvertaking) {
  TestCluster cluster(small_h100(), "- {name: a, limit: {h100: 32}}\n");
  const JobId longest = submit_of(cluster, "a", preemptible(cluster, 32, Duration::hours(9)));
  cluster.pass(kDefault);
  cluster.usage().apply(
      {*cluster.tenants().find("a"), cluster.gang(1).type, 0, 96});  // as if it held more
  cluster.wait(Duration::hours(1));
  submit_of(cluster, "a", preemptible(cluster, 32, Duration::minutes(10)));
  cluster.pass(kDefault);
  EXPECT_TRUE(cluster.runs(longest));
}

TEST(TenantOrder, WhatIsGuaranteedIsNotOvertakenByAnotherTenant) {
  const auto cluster = two_tenants("- {name: a, guarantee: {h100: 128}}\n- {name: b}\n");
  EXPECT_TRUE(cluster->runs(JobId(0)));
}

TEST(TenantOrder, ATenantThatHasMoreOvertakesNobodyElse) {
  TestCluster cluster(small_h100(), "- {name: a}\n- {name: b}\n");
  const JobId theirs = submit_of(cluster, "a", preemptible(cluster, 56, Duration::hours(9)));
  submit_of(cluster, "b", cluster.job(72, Duration::hours(9)));
  cluster.pass(kDefault);
  ASSERT_EQ(cluster.running().size(), 2u);
  cluster.wait(Duration::hours(1));
  submit_of(cluster, "b", preemptible(cluster, 8, Duration::minutes(10)));
  cluster.pass(kDefault);
  EXPECT_TRUE(cluster.runs(theirs));
}

TEST(TenantOrder, ATenantAtItsLimitOvertakesItself) {
  TestCluster cluster(small_h100(), "- {name: a, limit: {h100: 64}}\n");
  const JobId longest = submit_of(cluster, "a", preemptible(cluster, 64, Duration::hours(9)));
  cluster.pass(kDefault);
  cluster.wait(Duration::hours(1));
  const JobId shorter = submit_of(cluster, "a", preemptible(cluster, 64, Duration::hours(1)));
  const JobId too_large = submit_of(cluster, "a", preemptible(cluster, 72, Duration::minutes(10)));
  cluster.pass(kDefault);
  cluster.pass(kDefault);
  EXPECT_FALSE(cluster.runs(longest));
  EXPECT_TRUE(cluster.runs(shorter));
  EXPECT_FALSE(cluster.runs(too_large));
}

TEST(TenantOrder, BatchWorkIsBehindOthersByItsServiceAlone) {
  TestCluster cluster;
  const JobId whole = cluster.submit(cluster.job(128, Duration::hours(1)));
  cluster.pass(kDefault);
  JobRequest batch = preemptible(cluster, 128, Duration::hours(1));
  batch.kind = JobKind::kBatch;
  const JobId short_batch = cluster.submit(batch);
  const JobId long_training = cluster.submit(preemptible(cluster, 128, Duration::hours(3)));
  cluster.finish(whole);
  cluster.pass(kDefault);
  EXPECT_TRUE(cluster.runs(short_batch));
  cluster.wait(Duration::minutes(20));
  const JobId training = cluster.submit(preemptible(cluster, 128, Duration::minutes(70)));
  cluster.finish(short_batch);
  cluster.submit(batch);
  cluster.pass(kDefault);
  EXPECT_TRUE(cluster.runs(training)) << "an hour of batch counts for two";
  EXPECT_FALSE(cluster.runs(long_training));
}

TEST(TenantOrder, WhoHasWaitedLongGoesBeforeShorterJobs) {
  TestCluster cluster;
  const JobId large = cluster.submit(preemptible(cluster, 128, Duration::hours(9)));
  cluster.wait(Duration::hours(std::int64_t{24} * 300));
  const JobId small = cluster.submit(preemptible(cluster, 128, Duration::hours(1)));
  cluster.pass(kDefault);
  EXPECT_TRUE(cluster.runs(large));
  EXPECT_FALSE(cluster.runs(small));
}

// Jobs keep arriving; in any order, each preemptible job goes on in the end, and none is stopped
// within its quantum.
TEST(TenantOrder, EverybodyEndsAndNobodyIsStoppedWithinHisQuantum) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    TestCluster cluster;
    Rng rng = Rng::stream(seed, "tenant order");
    std::size_t submitted = 0;
    std::size_t ended = 0;
    for (int step = 0; step < 3000 && (step < 300 || ended < submitted); ++step) {
      if (step < 300 && rng.below(2) == 0) {
        const std::uint32_t devices = std::array{1U, 8U, 32U, 128U}[rng.below(4)];
        const auto minutes = static_cast<std::int64_t>(10 + rng.below(300));
        cluster.submit(preemptible(cluster, devices, Duration::minutes(minutes)));
        ++submitted;
      }
      std::vector<JobId> done;
      for (const RunningJob& job : cluster.running()) {
        if (job.expected_end <= cluster.now()) done.push_back(job.id);
      }
      for (const JobId id : done) cluster.finish(id);
      ended += done.size();
      const std::vector<RunningJob> before = cluster.running();
      const PassResult result =
          cluster.pass(kDefault, rng.below(4) == 0 ? PassKind::kFull : PassKind::kIncremental);
      for (const Decision& decision : result.decisions) {
        const auto* preempt = std::get_if<PreemptJob>(&decision);
        if (preempt == nullptr) continue;
        const auto victim = std::find_if(before.begin(), before.end(),
                                         [&](const auto& job) { return job.id == preempt->job; });
        ASSERT_NE(victim, before.end());
        EXPECT_GE(cluster.now() - victim->started, Duration::minutes(10));
      }
      cluster.wait(Duration::minutes(static_cast<std::int64_t>(1 + rng.below(15))));
    }
    EXPECT_EQ(ended, submitted) << "seed " << seed;
  }
}

/// Jobs of a node start and end every 24 minutes, alternately of the tenants b and c; at the
/// beginning a job of tenant `a` arrives that needs the whole cluster for 20 minutes. Returns after
/// how many such times it starts, 60 if it does not start before.
int times_until_start(const std::string& policy) {
  constexpr std::int64_t kNodes = 16;
  const auto after = [](std::int64_t times) { return Duration::minutes(24 * times); };
  TestCluster cluster(small_h100(), "- {name: a}\n- {name: b}\n- {name: c}\n");
  std::size_t came = 0;
  const auto come = [&](Duration estimate) {
    submit_of(cluster, came++ % 2 == 0 ? "b" : "c", preemptible(cluster, 8, estimate));
  };
  for (std::int64_t node = 1; node <= kNodes; ++node) come(after(node));
  cluster.pass(policy, PassKind::kFull);
  const JobId whole = submit_of(cluster, "a", preemptible(cluster, 128, Duration::minutes(20)));
  for (int times = 0; times < 60; ++times) {
    cluster.wait(after(1));
    std::vector<JobId> ended;
    ended.reserve(cluster.running().size());
    for (const RunningJob& job : cluster.running()) {
      if (job.expected_end <= cluster.now()) ended.push_back(job.id);
    }
    for (const JobId job : ended) cluster.finish(job);
    come(after(kNodes));
    cluster.pass(policy, PassKind::kFull);
    cluster.pass(policy, PassKind::kFull);
    if (cluster.runs(whole)) return times;
  }
  return 60;
}

// The job may not overtake jobs of tenants that hold no more than its own would hold with it.
TEST(TenantOrder, ASlotLetsALargeJobStartBesideAStreamOfJobsThatItMayNotOvertake) {
  EXPECT_LE(times_until_start(kDefault), 16);
  EXPECT_EQ(times_until_start("hardware-aware:reserve_jobs=0"), 60);
}

TEST(PolicyVersion, ATextThatStatesNoneGetsTheNewestOrTheOneOfItsRecord) {
  EXPECT_EQ(policy_named("hardware-aware")->version, 3u);
  EXPECT_EQ(policy_named("hardware-aware", 1)->version, 1u);
  EXPECT_EQ(policy_named("hardware-aware", 1)->inside, TenantOrder::kSubmitted);
  EXPECT_EQ(policy_named("hardware-aware:version=2", 1)->inside, TenantOrder::kService);
  EXPECT_EQ(policy_named("hardware-aware", 2)->attained_step, 1);
  EXPECT_EQ(policy_named("hardware-aware")->attained_step, 6);
  EXPECT_EQ(policy_named("fifo")->version, 1u);
  for (const char* rounds : {"las", "srtf"}) {
    EXPECT_EQ(policy_named(rounds)->version, 2u);
    EXPECT_EQ(policy_named(rounds)->min_run, Seconds{360});
    EXPECT_EQ(policy_named(rounds, 1)->min_run, Seconds{0});
  }
  EXPECT_EQ(policy_named("srsf")->min_run, Seconds{0});
  EXPECT_EQ(policy_named("fifo:version=2").error().message,
            "version: expected 1 to 1 of fifo, found 2");
  EXPECT_EQ(policy_named("hardware-aware:version=4").error().message,
            "version: expected 1 to 3 of hardware-aware, found 4");
  EXPECT_EQ(policy_named("hardware-aware:yield_ratio=0.5").error().message,
            "yield_ratio: expected 0 or 1 to 1000");
  for (const char* step : {"0.5", "1.0001", "1001", "nan"}) {
    EXPECT_FALSE(policy_named(std::string("hardware-aware:attained_step=") + step)) << step;
  }
  EXPECT_EQ(policy_named("hardware-aware:attained_step=0.5").error().message,
            "attained_step: expected 1 or 2 to 1000");
  EXPECT_EQ(policy_named("hardware-aware", 2)->max_stretch, 0);
  EXPECT_EQ(policy_named("hardware-aware")->max_stretch, 100);
  for (const char* stretch : {"0.5", "-1", "2e6"}) {
    const Result<Policy> policy =
        policy_named(std::string("hardware-aware:max_stretch=") + stretch);
    ASSERT_FALSE(policy) << stretch;
    EXPECT_EQ(policy.error().message, "max_stretch: expected 0 or 1 to 1000000");
  }
}

}  // namespace
}  // namespace orrery
