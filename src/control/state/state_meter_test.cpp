#include <gtest/gtest.h>

#include "control/scripted_cluster_test.hpp"

namespace orrery {
namespace {

constexpr FleetTypeId kNew(0);
constexpr FleetTypeId kOld(1);

double hours(const TypeTimes& times, FleetTypeId type) { return device_hours(times.of(type)); }

/// After each input the cluster compares what jobs were metered for with the ledger, type by type.
class Meter : public testing::Test {
 protected:
  Meter() {
    EXPECT_EQ(cluster_.topology().find_type("h100"), kNew);
    EXPECT_EQ(cluster_.topology().find_type("a100"), kOld);
  }
  /// Returns a job for sixteen devices of the new type, or else of the old one.
  [[nodiscard]] Submission either() const {
    Submission submission = cluster_.job(16);
    auto& options = submission.request.roles.front().options;
    options.push_back({cluster_.gang(16, "a100"), 0.5, std::nullopt});
    return submission;
  }
  [[nodiscard]] const TypeTimes& of_tenant(JobId id) const {
    return cluster_.state().by_tenant()[cluster_.job(id).tenant.value()].devices;
  }

  ScriptedCluster cluster_{{.fleet = two_types()}};
};

TEST_F(Meter, TellsApartTheTypesThatAJobHasAtOnce) {
  Submission both = cluster_.job(8);
  both.request.roles.push_back(both.request.roles.front());
  both.request.roles.back().options.front().gang = cluster_.gang(4, "a100");
  const JobId id = cluster_.run(both);
  cluster_.wait(Duration::hours(2));
  EXPECT_EQ(hours(cluster_.state().usage_of(id, cluster_.now()).devices, kOld), 8);
  cluster_.end(id);
  EXPECT_EQ(hours(cluster_.job(id).usage.devices, kNew), 16);
  EXPECT_EQ(hours(cluster_.job(id).usage.devices, kOld), 8);
  EXPECT_EQ(device_hours(cluster_.job(id).usage.devices.total()), 24);
  EXPECT_TRUE(of_tenant(id) == cluster_.job(id).usage.devices);
  EXPECT_TRUE(cluster_.state().total().devices == of_tenant(id));
}

TEST_F(Meter, TellsApartTheTypesThatAJobHadOneAfterTheOther) {
  const JobId id = cluster_.run(either());
  cluster_.wait(Duration::hours(1));
  cluster_.decide({PreemptJob{id, JobId()}});
  cluster_.gone(id);
  cluster_.send(DrainNode{NodeId(0), false, ""});
  cluster_.tick();
  ASSERT_EQ(cluster_.phase(id), JobPhase::kStarting) << "on the other type";
  cluster_.up(id);
  cluster_.wait(Duration::hours(3));
  cluster_.end(id);
  EXPECT_EQ(hours(cluster_.job(id).usage.devices, kNew), 16);
  EXPECT_EQ(hours(cluster_.job(id).usage.devices, kOld), 48);
  EXPECT_TRUE(of_tenant(id) == cluster_.job(id).usage.devices);
}

TEST_F(Meter, CountsWhatLeavesAJobAsItsTypeUntilItHasLeft) {
  const JobId id = cluster_.run(either());
  PlacedGang next{.role = 0, .option = 1};
  next.allocation.ranks = {{NodeId(2), 0xff}, {NodeId(3), 0xff}};
  next.host.cpu = 1000;
  cluster_.decide({ResizeJob{id, {next}, {{}}, std::nullopt, 0, 0}});
  ASSERT_EQ(cluster_.job(id).leaving, 16U);
  cluster_.up(id);
  cluster_.wait(Duration::hours(1));
  cluster_.send(RanksGone{id, 1, {NodeId(0)}, std::nullopt, 0});
  cluster_.wait(Duration::hours(1));
  cluster_.send(NodeJoined{NodeId(1), 77});
  cluster_.wait(Duration::hours(1));
  const JobUsage used = cluster_.state().usage_of(id, cluster_.now());
  EXPECT_EQ(hours(used.devices, kNew), 8 + 16);
  EXPECT_EQ(hours(used.devices, kOld), 3 * 16);
  EXPECT_EQ(device_hours(used.idle), 8 + 16) << "what leaves does nothing for the job";
}

TEST_F(Meter, WhatHasLeftAJobThatStopsIsNotItsOwnAnyMore) {
  const JobId id = cluster_.run(cluster_.job(16));
  cluster_.wait(Duration::hours(1));
  cluster_.decide({PreemptJob{id, JobId()}});
  cluster_.gone(id, {NodeId(0)});
  cluster_.wait(Duration::hours(1));
  const RunningJob& run = cluster_.state().running(id);
  EXPECT_EQ(run.devices(), 8U);
  EXPECT_EQ(hours(cluster_.state().usage_of(id, cluster_.now()).devices, kNew), 16 + 8);
}

TEST_F(Meter, HasNoEntryForTypesAJobNeverHad) {
  const JobId id = cluster_.run(cluster_.job(4));
  EXPECT_TRUE(cluster_.job(id).usage.devices.entries.empty()) << "no time has passed";
  cluster_.wait(Duration::hours(1));
  cluster_.end(id);
  EXPECT_EQ(cluster_.job(id).usage.devices.entries.size(), 1U);
}

// --- Shares
// ---------------------------------------------------------------------------------------

/// Returns a job that has a share of one device, in thousandths.
Submission share_of_one(const ScriptedCluster& cluster, std::uint16_t share) {
  Submission submission = cluster.job(1);
  submission.request.roles.front().options.front().gang.share = share;
  return submission;
}

TEST(MeterOfShares, CountsTheShareOfTheTime) {
  ScriptedCluster cluster({.sharing = Sharing::kSometimes});
  const JobId quarter = cluster.run(share_of_one(cluster, 250));
  cluster.wait(Duration::seconds(10));
  cluster.end(quarter);
  const JobUsage& usage = cluster.job(quarter).usage;
  EXPECT_TRUE(usage.devices.total() == DeviceTime{2'500'000'000}) << "0.25 of 10 s";
}

TEST(MeterOfShares, FourQuartersOfADeviceMakeOneHourAnHour) {
  ScriptedCluster cluster({.sharing = Sharing::kSometimes});
  std::vector<JobId> quarters;
  for (int i = 0; i < 4; ++i) quarters.push_back(cluster.start(share_of_one(cluster, 250)));
  cluster.wait(Duration::minutes(6));
  for (const JobId id : quarters) cluster.up(id);
  cluster.wait(Duration::minutes(48));
  cluster.decide({PreemptJob{quarters[0], JobId()}});
  cluster.wait(Duration::minutes(6));
  DeviceTime held = 0;
  for (const JobId id : quarters) {
    const JobUsage usage = cluster.state().usage_of(id, cluster.now());
    held += usage.devices.total();
    const double idle = id == quarters[0] ? 0.05 : 0.025;
    EXPECT_DOUBLE_EQ(device_hours(usage.idle), idle) << "starting, and leaving";
  }
  EXPECT_EQ(device_hours(held), 1);
  for (const JobId id : quarters) cluster.gone(id);
}

// --- Work that is lost
// ------------------------------------------------------------------------------

/// The executor of real machines reports nothing about the work that an attempt leaves.
TEST(MeterOfLostWork, OfAJobWithoutCheckpointsIsAllThatAStoppedAttemptDid) {
  for (const std::uint16_t share : {std::uint16_t{1000}, std::uint16_t{500}}) {
    ScriptedCluster cluster({.sharing = Sharing::kSometimes});
    const JobId id = cluster.start(share_of_one(cluster, share));
    cluster.wait(Duration::minutes(1));
    cluster.up(id);
    cluster.wait(Duration::hours(2));
    cluster.decide({PreemptJob{id, JobId()}});
    cluster.wait(Duration::minutes(3));
    cluster.gone(id);
    EXPECT_DOUBLE_EQ(device_hours(cluster.job(id).usage.lost), 2 * share / 1000.0);
    const DeviceTime lost =
        cluster.state().ledger().sum(FleetTypeId(0), DeviceUse::kLost, cluster.now());
    EXPECT_DOUBLE_EQ(device_hours(lost), share == 1000 ? 2 : 0) << "a shared device counts once";
    cluster.tick();
    cluster.up(id);
    cluster.wait(Duration::hours(1));
    cluster.end(id);
    EXPECT_DOUBLE_EQ(device_hours(cluster.job(id).usage.lost), 2 * share / 1000.0)
        << "what finished is not lost";
  }
}

TEST(MeterOfLostWork, IsAllOfAProgramThatFailedAndBeganAnewButNotOfItsLastAttempt) {
  ScriptedCluster cluster;
  Submission submission = cluster.job(8);
  submission.restart_max = 1;
  const JobId id = cluster.run(submission);
  cluster.wait(Duration::hours(1));
  cluster.end(id, ExitKind::kProgram);
  EXPECT_DOUBLE_EQ(device_hours(cluster.job(id).usage.lost), 8);
  cluster.wait(Duration::minutes(1));
  cluster.up(id);
  cluster.wait(Duration::hours(1));
  cluster.end(id, ExitKind::kProgram);
  EXPECT_EQ(cluster.phase(id), JobPhase::kFailed);
  EXPECT_DOUBLE_EQ(device_hours(cluster.job(id).usage.lost), 8);
}

TEST(MeterOfLostWork, IsWhatTheExecutorSaysWhereItSaysSomething) {
  ScriptedCluster cluster;
  const JobId id = cluster.run(cluster.job(8));
  cluster.wait(Duration::hours(1));
  cluster.decide({PreemptJob{id, JobId()}});
  cluster.send(RanksGone{id, 1, {}, Progress{.done = 0.75, .lost = Duration::minutes(15)}});
  EXPECT_DOUBLE_EQ(device_hours(cluster.job(id).usage.lost), 2);
  EXPECT_EQ(cluster.job(id).done, 0.75);
}

TEST(MeterOfLostWork, IsNotKnownOfAJobThatWritesCheckpoints) {
  ScriptedCluster cluster;
  Submission submission = cluster.job(8);
  submission.request.checkpoint_interval = Duration::minutes(10);
  const JobId id = cluster.run(submission);
  cluster.wait(Duration::hours(1));
  cluster.decide({PreemptJob{id, JobId()}});
  cluster.gone(id);
  EXPECT_EQ(device_hours(cluster.job(id).usage.lost), 0);
}

}  // namespace
}  // namespace orrery
