#include "control/state/snapshot.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "base/format/checksum.hpp"
#include "base/format/document.hpp"
#include "control/codec/encoder.hpp"
#include "control/scripted_cluster_test.hpp"
#include "control/state/invariants.hpp"
#include "control/state/job_fields.hpp"

namespace orrery {
namespace {

/// Creates some of everything that a state can hold.
void live(ScriptedCluster& cluster) {
  cluster.send(SetSpare{NodeId(3), true});
  const JobId runs = cluster.run(cluster.job(8));
  cluster.wait(Duration::minutes(40));
  Submission after = cluster.job(8);
  after.after = {runs};
  after.request.array = ArrayId(4);
  (void)cluster.submit(after, "request");
  (void)cluster.submit(cluster.job(32));
  cluster.send(PlanReady{{WorkId(2), FleetTypeId(0), 8}, nullptr});
  cluster.send(SetMaintenance{3, {NodeId(2)}, Instant::from_ns(1), Instant::max()});
  cluster.send(NodeJoined{NodeId(1), 77});
  cluster.send(LinkObserved{LinkId(3), {.health = 0.5F, .load = 0.25F}});
  for (int i = 0; i < 3; ++i)
    cluster.send(NodeFault{NodeId(1), FaultLayer::kHost, "", false, false});
  cluster.send(SetPolicy{"apiVersion: orrery/v1\nkind: Policy\nname: easy\n"});
  cluster.send(SetTenants{
      "apiVersion: orrery/v1\nkind: Tenants\nname: t\ntenants:\n- {name: a}\n- {name: default}\n"});
  cluster.send(SetPowerCap{PowerDomainId(0), Watts(20'000)});
}

ScriptedOptions powered() { return {.power = PowerLimits::kAsBuilt}; }

Status restored(const ControlSetup& setup, std::string_view bytes) {
  State state(setup);
  return restore(state, bytes);
}

/// Written by the version from before jobs could be archived: one job runs, one is done, one was
/// cancelled, one waits.
TEST(Snapshot, OneWithAllJobsIsStillRead) {
  ScriptedCluster cluster;
  const Result<std::string> bytes =
      read_file(ORRERY_SOURCE_DIR "/tests/compat/snapshot_form3.bin", 1U << 20U);
  ASSERT_TRUE(bytes) << bytes.error().text();
  State state(cluster.setup());
  const Status read = restore(state, *bytes);
  ASSERT_TRUE(read) << read.error().text();
  ASSERT_EQ(state.jobs(), 4U);
  EXPECT_EQ(state.job(JobId(0)).phase, JobPhase::kRunning);
  EXPECT_EQ(state.job(JobId(1)).phase, JobPhase::kFinished);
  EXPECT_EQ(state.job(JobId(2)).phase, JobPhase::kCancelled);
  EXPECT_EQ(state.job(JobId(3)).phase, JobPhase::kQueued);
  EXPECT_EQ(state.answered("asked"), JobId(2));
  EXPECT_TRUE(state.share_period().jobs.empty()) << "of before there were shares";
  EXPECT_EQ(broken_invariant(state), std::nullopt);
}

/// One job had both types and is done, one has the new type and leaves some of it, one is archived,
/// one waits.
void live_on_two_types(ScriptedCluster& cluster) {
  Submission both = cluster.job(8);
  both.request.roles.push_back(both.request.roles.front());
  both.request.roles.back().options.front().gang = cluster.gang(4, "a100");
  const JobId done = cluster.run(both);
  const JobId archived = cluster.run(cluster.job(1));
  cluster.wait(Duration::minutes(10));
  cluster.end(archived);
  cluster.wait(Duration::minutes(20));
  cluster.end(done);
  const JobId runs = cluster.run(cluster.elastic_job(8, 16));
  cluster.send(ArchiveJobs{{archived}});
  cluster.wait(Duration::minutes(5));
  cluster.send(NodeFault{cluster.nodes(runs)[0], FaultLayer::kHost, "", true, true});
  cluster.wait(Duration::minutes(1));
  (void)cluster.submit(cluster.job(16), "asked");
  cluster.tick();
}

/// Written by the version from before bills separated types, after live_on_two_types.
TEST(Snapshot, OneWithOneSumOverAllTypesIsStillRead) {
  ScriptedCluster cluster({.fleet = two_types()});
  live_on_two_types(cluster);
  const State& lived = cluster.state();
  const Result<std::string> bytes =
      read_file(ORRERY_SOURCE_DIR "/tests/compat/snapshot_form5.bin", 1U << 20U);
  ASSERT_TRUE(bytes) << bytes.error().text();
  State state(cluster.setup());
  const Status read = restore(state, *bytes);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(broken_invariant(state), std::nullopt);
  EXPECT_EQ(broken_metering(state), std::nullopt);
  ASSERT_EQ(state.jobs(), 4U);
  EXPECT_FALSE(state.has(JobId(1)));
  for (const Job& job : lived.all_jobs()) {
    const JobUsage& usage = state.job(job.id).usage;
    EXPECT_EQ(state.job(job.id).phase, job.phase);
    EXPECT_TRUE(usage.devices.total() == job.usage.devices.total()) << job.id.value();
    EXPECT_TRUE(usage.devices.of(kAllTypes) == usage.devices.total()) << "nobody knows of which";
  }
  EXPECT_EQ(state.job(JobId(2)).leaving, 8U);
  // From then on types are separate.
  const Instant from = state.job(JobId(2)).metered;
  const JobUsage later = state.usage_of(JobId(2), from + Duration::hours(1));
  EXPECT_DOUBLE_EQ(device_hours(later.devices.of(FleetTypeId(0))), 16);
  EXPECT_DOUBLE_EQ(device_hours(later.devices.of(kAllTypes)), 4.0 / 3);
}

/// Written by the version from before bills separated types: eight devices had run for half an hour
/// and were done, sixteen run on.
TEST(Snapshot, OneWithOneSumOfAFleetOfOneTypeLeavesNoDoubt) {
  ScriptedCluster cluster;
  const Result<std::string> bytes =
      read_file(ORRERY_SOURCE_DIR "/tests/compat/snapshot_form5_one_type.bin", 1U << 20U);
  ASSERT_TRUE(bytes) << bytes.error().text();
  State state(cluster.setup());
  const Status read = restore(state, *bytes);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(broken_metering(state), std::nullopt);
  const FleetTypeId only(0);
  EXPECT_EQ(device_hours(state.job(JobId(0)).usage.devices.of(only)), 4);
  EXPECT_EQ(device_hours(state.usage_of(JobId(1), state.now()).devices.of(only)), 8);
  EXPECT_EQ(device_hours(state.total().devices.of(only)), 4);
  EXPECT_TRUE(state.total().devices.of(kAllTypes) == 0);
}

TEST(Snapshot, KnowsWhoSubmittedAJobAndAsWhomItRuns) {
  ScriptedCluster cluster;
  cluster.send(SubmitJob{cluster.job(8), "spec", "ada", "ada-l"});
  State state(cluster.setup());
  ASSERT_TRUE(restore(state, snapshot_of(cluster.state())));
  EXPECT_EQ(state.job(JobId(0)).submitter, "ada");
  EXPECT_EQ(state.job(JobId(0)).run_as, "ada-l");
}

TEST(Snapshot, KnowsWhatIsArchived) {
  ScriptedCluster cluster;
  const JobId runs = cluster.run(cluster.job(8));
  const JobId ends = cluster.run(cluster.job(8));
  Submission after = cluster.job(8);
  after.after = {ends};
  cluster.send(RanksEnded{ends, 1, ExitKind::kDone, {}, {}, true});
  const JobId next = cluster.submit(after);
  cluster.send(CancelJob{next});
  cluster.send(ArchiveJobs{{runs, ends, next, JobId(77)}});
  EXPECT_TRUE(cluster.state().has(runs));
  EXPECT_FALSE(cluster.state().has(ends));
  EXPECT_FALSE(cluster.state().has(next));
  State state(cluster.setup());
  ASSERT_TRUE(restore(state, snapshot_of(cluster.state())));
  EXPECT_EQ(digest_of(state), digest_of(cluster.state()));
  EXPECT_EQ(state.jobs(), 3U);
  EXPECT_FALSE(state.has(ends));
  EXPECT_EQ(state.ended_jobs(), 2U);
}

TEST(Snapshot, ComesBackAsTheStateItWas) {
  ScriptedCluster cluster(powered());
  live(cluster);
  const std::string bytes = snapshot_of(cluster.state());
  State state(cluster.setup());
  const Status status = restore(state, bytes);
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_TRUE(snapshot_of(state) == bytes);
  EXPECT_EQ(digest_of(state), digest_of(cluster.state()));
  EXPECT_EQ(state.policy().name, "easy");
  EXPECT_EQ(state.tenants().path(state.job(JobId(0)).tenant), "default");
  EXPECT_EQ(state.answered("request"), JobId(1));
  EXPECT_EQ(state.after(JobId(0)).size(), 1u);
  EXPECT_EQ(state.plans().size(), 1u);
  EXPECT_EQ(state.closed().windows().size(), 1u);
  EXPECT_EQ(state.spares(), (std::set{NodeId(3)}));
  EXPECT_EQ(state.jobs_on(NodeId(0)), cluster.state().jobs_on(NodeId(0)));
  const Situation before = cluster.state().situation(cluster.now());
  const Situation after = state.situation(cluster.now());
  EXPECT_EQ(*after.power, *before.power);
  EXPECT_EQ(after.fleet.link(LinkId(3)), (LinkState{.health = 0.5F, .load = 0.25F}));
  EXPECT_EQ(after.caps->limit(PowerDomainId(0)), Watts(20'000));
  EXPECT_EQ(after.waiting.size(), before.waiting.size());
  const TenantId tenant = state.job(JobId(0)).tenant;
  EXPECT_EQ(after.usage->recent(tenant, kAllTypes), before.usage->recent(tenant, kAllTypes));
  EXPECT_GT(after.usage->recent(tenant, kAllTypes), 0);
}

TEST(Snapshot, HasThePeriodOfShares) {
  ScriptedCluster cluster({.policy = "gavel"});
  (void)cluster.run(cluster.job(8));
  (void)cluster.submit(cluster.job(64));
  cluster.wait(Duration::minutes(40));
  (void)cluster.submit(cluster.job(64));
  cluster.wait(Duration::minutes(40));
  const SharePeriod& period = cluster.state().share_period();
  ASSERT_EQ(period.jobs.size(), 3U);
  ASSERT_FALSE(period.had.empty());
  State state(cluster.setup());
  ASSERT_TRUE(restore(state, snapshot_of(cluster.state())));
  EXPECT_EQ(state.share_period().since, period.since);
  EXPECT_EQ(state.share_period().jobs, period.jobs);
  EXPECT_EQ(state.share_period().had, period.had);
}

TEST(Snapshot, OfANewStateIsRestoredToo) {
  const ScriptedCluster cluster;
  EXPECT_TRUE(restored(cluster.setup(), snapshot_of(cluster.state())));
}

TEST(Snapshot, OfDamagedBytesIsRefused) {
  ScriptedCluster cluster(powered());
  live(cluster);
  std::string bytes = snapshot_of(cluster.state());
  for (std::size_t i = 0; i < bytes.size(); i += 7) {
    bytes[i] ^= 0x10;
    const Status status = restored(cluster.setup(), bytes);
    ASSERT_FALSE(status) << "byte " << i;
    bytes[i] ^= 0x10;
  }
  EXPECT_FALSE(restored(cluster.setup(), ""));
  EXPECT_FALSE(restored(cluster.setup(), std::string_view(bytes).substr(0, bytes.size() / 2)));
}

// --- Bytes with a good checksum -----------------------------------------------------------------

std::string with_checksum(std::string bytes) {
  bytes.resize(bytes.size() - sizeof(std::uint64_t));
  Encoder out;
  out.raw(bytes);
  out.fixed(checksum(bytes, 0));
  return std::string(out.bytes());
}

/// Returns the bytes with `by` instead of `what`, wherever that occurs.
template <class Field>
std::string replaced(std::string bytes, const Field& what, const Field& by) {
  Encoder old;
  Encoder anew;
  old(what);
  anew(by);
  std::size_t found = 0;
  for (std::size_t at = 0; (at = bytes.find(old.bytes(), at)) != bytes.npos; ++found) {
    bytes.replace(at, old.size(), anew.bytes());
    at += anew.size();
  }
  EXPECT_GT(found, 0U);
  return with_checksum(std::move(bytes));
}

/// Two jobs run, each on a node, the first for longer; under a limit of 20 kW.
class NonsenseTest : public testing::Test {
 protected:
  NonsenseTest() : cluster_(powered()) {
    (void)cluster_.run(cluster_.job(8));
    cluster_.wait(Duration::minutes(10));
    (void)cluster_.run(cluster_.job(8));
    cluster_.wait(Duration::minutes(30));
    cluster_.decide({SetClock{JobId(0), 0, cluster_.state().running(JobId(0)).terms.front()}});
    cluster_.send(SetPowerCap{PowerDomainId(0), Watts(20'000)});
    bytes_ = snapshot_of(cluster_.state());
    for (std::uint32_t i = 0; i < 2; ++i) at_.push_back({cluster_.nodes(JobId(i)).at(0), 0xff});
  }
  [[nodiscard]] std::string error_of(const std::string& bytes) const {
    const Status status = restored(cluster_.setup(), bytes);
    return status ? "" : status.error().message;
  }
  [[nodiscard]] const Job& job() const { return cluster_.job(JobId(0)); }

  ScriptedCluster cluster_;
  std::string bytes_;
  std::vector<NodeDevices> at_;
};

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST_F(NonsenseTest, OfDevicesIsRefusedWithTheJobThatHasThem) {
  for (const NodeDevices& at : {NodeDevices{NodeId(9), 0xff}, NodeDevices{at_[0].node, 0x1ff}}) {
    EXPECT_EQ(error_of(replaced(bytes_, at_[0], at)),
              "the snapshot makes no sense: job 0, which runs, has devices that no node has");
  }
  EXPECT_EQ(error_of(replaced(bytes_, at_[0], {at_[0].node, 0xfe})),
            "the snapshot does not fit together: a gang of job 0 has 7 devices of 8");
}

TEST_F(NonsenseTest, OfTwoOnOneDeviceIsRefused) {
  EXPECT_EQ(error_of(replaced(bytes_, at_[1], at_[0])),
            "the snapshot makes no sense: job 1, which runs, has devices that another holds");
}

TEST_F(NonsenseTest, OfMetersIsRefused) {
  const DeviceTime used = job().usage.devices.total();
  ASSERT_TRUE(used > 0);
  EXPECT_EQ(error_of(replaced(bytes_, used, -used)),
            "the snapshot makes no sense: job 0 has a time that no devices were held");
}

TEST_F(NonsenseTest, OfNumbersThatAreNoneIsRefused) {
  const TenantId tenant = job().tenant;
  const Situation s = cluster_.state().situation(cluster_.now());
  EXPECT_EQ(error_of(replaced(bytes_, s.usage->recent(tenant, kAllTypes), kNan)),
            "the snapshot makes no sense: a tenant's usage is no number");
  EXPECT_EQ(error_of(replaced(bytes_, 20'000.0, kNan)),
            "the snapshot makes no sense: a power limit is no number");
}

/// Accepted bytes give a consistent state that can be written and read again.
TEST_F(NonsenseTest, OfAnyByteIsRefusedOrDoesNoHarm) {
  std::size_t refused = 0;
  const std::size_t size = bytes_.size() - sizeof(std::uint64_t);
  for (std::size_t i = 0; i < size; ++i) {
    for (const char flip : {'\x01', '\x7f', '\x80'}) {
      std::string bytes = bytes_;
      bytes[i] = static_cast<char>(bytes[i] ^ flip);
      State state(cluster_.setup());
      const Status status = restore(state, with_checksum(bytes));
      if (!status) {
        EXPECT_FALSE(status.error().message.empty());
        ++refused;
        continue;
      }
      ASSERT_EQ(broken_invariant(state), std::nullopt) << "byte " << i;
      ASSERT_TRUE(restored(cluster_.setup(), snapshot_of(state))) << "byte " << i;
    }
  }
  EXPECT_GT(refused, size);
}

TEST(Snapshot, OfAnotherFleetIsRefused) {
  const ScriptedCluster cluster;
  const ScriptedCluster other(powered());
  const Status status = restored(other.setup(), snapshot_of(cluster.state()));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "the snapshot is of another fleet");
}

TEST(Snapshot, NeedsSomebodyWhoKnowsItsPlans) {
  ScriptedCluster cluster(powered());
  live(cluster);
  ControlSetup setup = cluster.setup();
  setup.plans = nullptr;
  const Status status = restored(setup, snapshot_of(cluster.state()));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "the snapshot has plans, and this setup has no planner");
}

TEST(Snapshot, HasAnotherDigestAfterEveryEvent) {
  ScriptedCluster cluster;
  const std::uint64_t first = digest_of(cluster.state());
  cluster.send(LinkObserved{LinkId(0), {.health = 1, .load = 0}});
  EXPECT_NE(digest_of(cluster.state()), first);
}

}  // namespace
}  // namespace orrery
