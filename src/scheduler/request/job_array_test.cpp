#include "scheduler/request/job_array.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "scheduler/place/cluster_test.hpp"

namespace orrery {
namespace {

/// A service of one role on whole nodes of 8.
JobRequest service(const TestCluster& cluster, std::uint32_t replicas) {
  JobRequest request = cluster.job(8);
  request.kind = JobKind::kServe;
  request.name = "chat";
  request.estimate.reset();
  request.roles.front().gangs = replicas;
  request.roles.front().name = "server";
  return request;
}

SpreadSpec one_in(TopologyLevel level) {
  SpreadSpec spread;
  spread.level = level;
  spread.most = 1;
  return spread;
}

TEST(JobArray, EachReplicaOfAServiceIsAJob) {
  const TestCluster cluster;
  JobRequest request = service(cluster, 3);
  request.budget = Dollars(100);
  request.roles.push_back(request.roles.front());
  request.roles.back().name = "decode";
  request.roles.back().gangs = 1;
  ClassTable classes;
  const std::vector<JobRequest> jobs = requests_of(JobSpec(), request, ArrayId(7), classes);
  ASSERT_EQ(jobs.size(), 4U);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_EQ(jobs[i].name, "chat[" + std::to_string(i) + "]");
    EXPECT_EQ(jobs[i].array, ArrayId(7));
    ASSERT_EQ(jobs[i].roles.size(), 1U);
    EXPECT_EQ(jobs[i].roles.front().gangs, 1U);
    EXPECT_EQ(jobs[i].roles.front().name, i < 3 ? "server" : "decode");
    EXPECT_NEAR(jobs[i].budget->value(), 25, 1e-9);
    EXPECT_TRUE(jobs[i].class_id.valid());
  }
  EXPECT_EQ(jobs[0].class_id, jobs[2].class_id);
}

TEST(JobArray, OtherKindsAndSingleReplicasStayOneJob) {
  const TestCluster cluster;
  ClassTable classes;
  JobRequest training = service(cluster, 3);
  training.kind = JobKind::kTrain;
  for (const JobRequest& request : {training, service(cluster, 1)}) {
    const std::vector<JobRequest> jobs = requests_of(JobSpec(), request, ArrayId(0), classes);
    ASSERT_EQ(jobs.size(), 1U);
    EXPECT_EQ(jobs.front().name, "chat");
    EXPECT_FALSE(jobs.front().array.valid());
    EXPECT_EQ(jobs.front().roles.front().gangs, request.roles.front().gangs);
  }
}

// Four racks of four nodes: a fifth replica finds no rack of its own, in the first pass and in one
// that begins with four replicas running.
TEST(JobArray, ReplicasKeepTheirDistanceFromRunningSiblings) {
  for (const std::string policy : {"easy", "hardware-aware"}) {
    TestCluster cluster;
    JobRequest request = service(cluster, 5);
    request.roles.front().spread = one_in(TopologyLevel::kRack);
    ClassTable classes;
    for (JobRequest& one : requests_of(JobSpec(), request, ArrayId(0), classes)) {
      EXPECT_FALSE(one.class_id.valid());
      cluster.submit(std::move(one));
    }
    cluster.pass(policy);
    cluster.pass(policy, PassKind::kFull);
    const Situation s = cluster.situation();
    ASSERT_EQ(s.running.size(), 4U) << policy;
    std::set<PlaceId> racks;
    for (const RunningJob& run : s.running) {
      const NodeId node = run.gangs.front().allocation.ranks.front().node;
      racks.insert(cluster.tree().around(node, TopologyLevel::kRack));
    }
    EXPECT_EQ(racks.size(), 4U) << policy;
    ASSERT_EQ(s.waiting.size(), 1U) << policy;
    const JobRequest& fifth = *s.waiting.front().request;
    for (const RunningJob& run : s.running) {
      EXPECT_TRUE(too_near(cluster.tree(), fifth, run.gangs, s.running)) << policy;
    }
    EXPECT_FALSE(too_near(cluster.tree(), service(cluster, 1), s.running.front().gangs, s.running));
  }
}

TEST(JobArray, AServiceStartsAsManyReplicasAsFit) {
  TestCluster cluster;
  ClassTable classes;
  for (JobRequest& one : requests_of(JobSpec(), service(cluster, 20), ArrayId(0), classes)) {
    cluster.submit(std::move(one));
  }
  cluster.pass("hardware-aware");
  EXPECT_EQ(cluster.situation().running.size(), 16U);
  EXPECT_EQ(cluster.situation().waiting.size(), 4U);
}

}  // namespace
}  // namespace orrery
