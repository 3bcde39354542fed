// Slots let a large gang start beside a stream of jobs that it may not overtake.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "scheduler/cluster_test.hpp"

namespace orrery {
namespace {

const std::string kDefault = "hardware-aware";
constexpr std::uint32_t kAll = 128;  ///< devices of the cluster

JobRequest resuming(const TestCluster& cluster, std::uint32_t devices, Duration estimate) {
  JobRequest request = cluster.job(devices, estimate);
  request.kind = JobKind::kTrain;
  request.preemptible = true;
  request.checkpoint_interval = Duration::minutes(30);
  return request;
}

/// Every 24 minutes a job of a node ends and another comes, of the tenants in turn. Steps until the
/// gang starts, at most 60.
int steps_until_start(TestCluster& cluster, const std::vector<std::string>& tenants,
                      JobRequest gang, const std::string& policy) {
  std::size_t came = 0;
  const auto submit = [&](Duration estimate) {
    JobRequest request = resuming(cluster, 8, estimate);
    request.tenant = *cluster.tenants().find(tenants[came++ % tenants.size()]);
    cluster.submit(std::move(request));
  };
  for (std::int64_t node = 1; node <= 16; ++node) submit(Duration::minutes(24 * node));
  cluster.pass(policy, PassKind::kFull);
  const JobId id = cluster.submit(std::move(gang));
  for (int step = 0; step < 60; ++step) {
    cluster.wait(Duration::minutes(24));
    while (true) {
      const auto& running = cluster.running();
      const auto ended = std::ranges::find_if(
          running, [&](const RunningJob& job) { return job.expected_end <= cluster.now(); });
      if (ended == running.end()) break;
      cluster.finish(JobId(ended->id));
    }
    submit(Duration::minutes(std::int64_t{24} * 16));
    cluster.pass(policy, PassKind::kFull);
    cluster.pass(policy, PassKind::kFull);
    if (cluster.runs(id)) return step;
  }
  return 60;
}

// 42 device-hours are before the 51 of each job that comes, and too many to overtake those.
TEST(KeptSlots, AGangStartsBesideAStreamOfJobsOfSomewhatMoreService) {
  const std::vector<std::string> tenants{"a"};
  const auto steps = [&](const std::string& policy) {
    TestCluster cluster(small_h100(), "- {name: a}\n");
    JobRequest gang = resuming(cluster, kAll, Duration::minutes(20));
    gang.tenant = *cluster.tenants().find("a");
    return steps_until_start(cluster, tenants, gang, policy);
  };
  EXPECT_LE(steps(kDefault), 16);
  EXPECT_EQ(steps("hardware-aware:reserve_jobs=0"), 60);
}

TEST(KeptSlots, AGangStartsBesideTheStreamsOfOtherTenants) {
  const std::vector<std::string> tenants{"b", "c"};
  const auto steps = [&](const std::string& policy) {
    TestCluster cluster(small_h100(), "- {name: a}\n- {name: b}\n- {name: c}\n");
    JobRequest gang = resuming(cluster, kAll, Duration::minutes(20));
    gang.tenant = *cluster.tenants().find("a");
    return steps_until_start(cluster, tenants, gang, policy);
  };
  EXPECT_LE(steps(kDefault), 16);
  EXPECT_EQ(steps("hardware-aware:reserve_jobs=0"), 60);
}

}  // namespace
}  // namespace orrery
