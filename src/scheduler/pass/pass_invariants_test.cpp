// Invariants of every pass, whatever the fleet, the queue and the policy.
#include <cstdio>
#include <functional>
#include <map>
#include <memory>

#include "base/numbers/rng.hpp"
#include "scheduler/place/cluster_test.hpp"
#include "scheduler/price/gang_pricing.hpp"

namespace orrery {
namespace {

constexpr const char* kTenants =
    "- {name: a, guarantee: {h100: 48}, limit: {h100: 96}}\n"
    "- {name: b, guarantee: {h100: 32}, weight: 2}\n- {name: c}\n";

JobRequest random_job(const TestCluster& cluster, Rng& rng) {
  const std::uint32_t sizes[] = {1, 2, 4, 8, 8, 16, 24, 32, 64};
  const std::uint32_t devices = sizes[rng.below(std::size(sizes))];
  JobRequest job =
      cluster.job(devices, Duration::minutes(static_cast<std::int64_t>(10 + rng.below(200))));
  const char* names[] = {"a", "b", "c"};
  job.tenant = *cluster.tenants().find(names[rng.below(3)]);
  job.priority = static_cast<std::int32_t>(rng.below(3));
  job.preemptible = rng.below(2) == 0;
  job.kind = job.preemptible ? JobKind::kBatch : JobKind::kTrain;
  if (rng.below(8) == 0) job.kind = JobKind::kServe;
  if (devices > 8 && rng.below(3) == 0) {
    job.roles[0].options[0].gang.required = TopologyLevel::kPod;
  }
  if (devices == 1 && rng.below(2) == 0) job.roles[0].options[0].gang.share = 250;
  if (devices >= 16 && rng.below(3) == 0) {
    job.roles[0].devices_min = devices / 2;
    job.roles[0].options.push_back({cluster.gang(devices / 2), 0.55, std::nullopt});
    job.preemptible = true;
  }
  // Jobs that write checkpoints may be overtaken.
  if (job.preemptible && devices >= 8) job.checkpoint_interval = Duration::minutes(30);
  const bool a100 = cluster.tree().topology().find_type("nvidia-a100-sxm4-80g").has_value();
  if (a100 && rng.below(2) == 0) {
    GangOption slower{cluster.gang(devices, "nvidia-a100-sxm4-80g"), 0.45, std::nullopt};
    slower.gang.required = job.roles[0].options[0].gang.required;
    slower.gang.share = job.roles[0].options[0].gang.share;
    job.roles[0].options.push_back(slower);
  }
  return job;
}

std::string h100_and_a100() {
  return one_hall(
      "    - racks:\n      - count: 5\n        cooling: in-row-or-dense-air\n        nodes: "
      "[{type: "
      "dgx-h100, count: 2}, {type: dgx-a100-80g, count: 2}]\n");
}

/// Expects that nodes are ready, devices are taken once unless shared, and host resources and
/// counts match the running jobs.
void expect_sound(const TestCluster& cluster) {
  std::map<NodeId, std::uint64_t> whole;
  using Seat = std::pair<NodeId, std::uint64_t>;
  std::map<Seat, std::uint32_t> shares;
  for (const RunningJob& job : cluster.running()) {
    std::size_t gangs = 0;
    for (const RoleRequest& role : job.request->roles) gangs += role.gangs;
    EXPECT_EQ(job.gangs.size(), gangs) << "gangs start whole";
    for (const PlacedGang& gang : job.gangs) {
      const GangRequest& asked = job.request->roles[gang.role].options[gang.option].gang;
      EXPECT_EQ(gang.allocation.devices(), asked.devices);
      for (const NodeDevices& at : gang.allocation.ranks) {
        if (gang.allocation.share < kWholeDevice) {
          std::uint32_t& used = shares[Seat(at.node, at.devices)];
          used += gang.allocation.share;
          EXPECT_LE(used, kWholeDevice);
          continue;
        }
        EXPECT_EQ(whole[at.node] & at.devices, 0u) << "one job a device";
        whole[at.node] |= at.devices;
      }
    }
  }
  for (const auto& [seat, used] : shares) {
    EXPECT_EQ(whole[seat.first] & seat.second, 0u) << "shared or whole, never both";
  }
}

void expect_inside_level(const TestCluster& cluster) {
  for (const RunningJob& job : cluster.running()) {
    for (const PlacedGang& gang : job.gangs) {
      const GangRequest& asked = job.request->roles[gang.role].options[gang.option].gang;
      if (asked.required != TopologyLevel::kPod) continue;
      const PlaceId pod =
          cluster.tree().around(gang.allocation.ranks.front().node, TopologyLevel::kPod);
      for (const NodeDevices& at : gang.allocation.ranks) {
        EXPECT_EQ(cluster.tree().around(at.node, TopologyLevel::kPod), pod);
      }
    }
  }
}

FleetTypeId type_of(const JobRequest& job, const PlacedGang& gang) {
  return job.roles[gang.role].options[gang.option].gang.type;
}

/// Expects that only preemptible jobs are preempted, and that no tenant that only gives falls below
/// its guarantee.
void expect_rightful(TestCluster& cluster, const PassResult& result) {
  TenantUsage usage = cluster.usage();
  std::map<std::pair<TenantId, FleetTypeId>, bool> gives;
  const auto add = [&](const JobRequest& job, std::span<const PlacedGang> gangs, int sign) {
    for (const PlacedGang& gang : gangs) {
      const GangRequest& asked = job.roles[gang.role].options[gang.option].gang;
      usage.apply(
          {job.tenant, asked.type, rank_of(job), sign * static_cast<std::int64_t>(asked.devices)});
    }
  };
  for (const Decision& decision : result.decisions) {
    if (const auto* start = std::get_if<StartJob>(&decision)) {
      add(cluster.request(start->job), start->gangs, 1);
    }
    if (const auto* resize = std::get_if<ResizeJob>(&decision)) {
      add(cluster.request(resize->job), cluster.find(resize->job)->gangs, -1);
      add(cluster.request(resize->job), resize->gangs, 1);
    }
    const auto* preempt = std::get_if<PreemptJob>(&decision);
    if (preempt == nullptr) continue;
    const RunningJob* victim = cluster.find(preempt->job);
    ASSERT_NE(victim, nullptr);
    EXPECT_TRUE(victim->request->preemptible);
    for (const PlacedGang& gang : victim->gangs) {
      gives.emplace(std::pair(victim->request->tenant, type_of(*victim->request, gang)), true);
    }
    for (const Reservation& slot : result.reservations) {
      if (slot.job != preempt->in_favour_of) continue;
      const JobRequest& gets = cluster.request(slot.job);
      for (const PlacedGang& gang : slot.gangs) gives[{gets.tenant, type_of(gets, gang)}] = false;
    }
    add(*victim->request, victim->gangs, -1);
  }
  for (const auto& [of, only] : gives) {
    const auto [tenant, type] = of;
    if (!only) continue;
    EXPECT_GE(usage.used(tenant, type), cluster.tenants().guarantee(tenant, type).value_or(0));
  }
}

TEST(PassInvariants, HoldOnRandomQueuesUnderEveryPolicy) {
  for (std::size_t run = 0; run < 2 * policy_names().size(); ++run) {
    const std::string_view policy = policy_names()[run / 2];
    TestCluster cluster(run % 2 == 0 ? small_h100() : h100_and_a100(), kTenants);
    Rng rng = Rng::stream(5, policy);
    const Policy rules = *policy_named(policy);
    for (int step = 0; step < 100; ++step) {
      if (rng.below(3) != 0) cluster.submit(random_job(cluster, rng));
      if (!cluster.running().empty() && rng.below(3) == 0) {
        cluster.finish(cluster.running()[rng.below(cluster.running().size())].id);
      }
      const PassKind kind = rng.below(5) == 0 ? PassKind::kFull : PassKind::kIncremental;
      const PassResult decided = cluster.scheduler().decide(cluster.situation(), rules, kind);
      if (rules.quotas == Quotas::kHeld) expect_rightful(cluster, decided);
      cluster.pass(std::string(policy), kind);
      expect_sound(cluster);
      expect_inside_level(cluster);
      if (rules.quotas == Quotas::kHeld) {
        const TenantId a = *cluster.tenants().find("a");
        const FleetTypeId h100 = *cluster.tree().topology().find_type("h100");
        EXPECT_LE(cluster.usage().used(a, h100), 96) << "limits hold";
      }
      cluster.wait(Duration::minutes(static_cast<std::int64_t>(rng.below(10))));
    }
  }
}

/// A pod of H100 and one of A100.
std::string fast_and_slow_pod() {
  const std::string racks =
      "\n      racks: [{count: 4, cooling: in-row-or-dense-air, nodes: [{type: ";
  return one_hall("    - name: fast" + racks + "dgx-h100, count: 4}]}]\n" + "    - name: slow" +
                  racks + "dgx-a100-80g, count: 4}]}]\n");
}

/// Submits a random job, which mostly may have H100, or A100 at a third of the speed.
JobId submit_to_either(TestCluster& cluster, Rng& rng) {
  JobRequest job = random_job(cluster, rng);
  RoleRequest& role = job.roles[0];
  const GangRequest& fast = role.options[0].gang;
  if (role.options.size() == 1 && fast.share == kWholeDevice && rng.below(3) != 0) {
    role.options.push_back({cluster.gang(fast.devices, "a100"), 0.3, std::nullopt});
  }
  if (rng.below(2) == 0) job.goal = JobGoal::kCost;  // these wait by choice
  if (rng.below(16) == 0) job.deadline = cluster.now() + Duration::hours(2);
  return cluster.submit(std::move(job));
}

/// Returns what a scheduler without a memory decides for the cluster at another time.
PassResult decided_at(const TestCluster& cluster, const Policy& policy, Instant time) {
  Situation s = cluster.situation();
  s.now = time;
  return Scheduler(cluster.tree()).decide(s, policy, PassKind::kIncremental);
}

TEST(PassInvariants, APassHoldsAsLongAsItSays) {
  int patient = 0;
  int bounded = 0;
  for (std::uint64_t run = 0; run < 9; ++run) {
    const char* name = std::array{"capacity", "hardware-aware:version=1", "fifo"}[run % 3];
    TestCluster cluster(fast_and_slow_pod(), kTenants);
    Rng rng = Rng::stream(7 + run, name);
    const Policy policy = *policy_named(name);
    for (int step = 0; step < 150; ++step) {
      if (rng.below(2) == 0) submit_to_either(cluster, rng);
      const std::vector<RunningJob> running = cluster.running();
      for (const RunningJob& job : running) {
        if (job.expected_end <= cluster.now()) cluster.finish(job.id);
      }
      cluster.pass(name, rng.below(5) == 0 ? PassKind::kFull : PassKind::kIncremental);
      cluster.wait(Duration::minutes(static_cast<std::int64_t>(rng.below(10))));
      const PassResult now = decided_at(cluster, policy, cluster.now());
      if (now.holds_until <= cluster.now()) continue;
      ASSERT_TRUE(now.decisions.empty());
      const Instant last =
          std::min(now.holds_until, cluster.now() + Duration::hours(24)) - Duration::nanoseconds(1);
      bounded += now.holds_until != Instant::max() ? 1 : 0;
      const PassResult then = decided_at(cluster, policy, last);
      EXPECT_TRUE(then.decisions.empty()) << name << ", step " << step;
      EXPECT_EQ(then.reservations.size(), now.reservations.size());
      ASSERT_EQ(then.waiting.size(), now.waiting.size());
      for (std::size_t i = 0; i < now.waiting.size(); ++i) {
        EXPECT_EQ(then.waiting[i].job, now.waiting[i].job);
        EXPECT_EQ(then.waiting[i].refusal, now.waiting[i].refusal) << name << ", step " << step;
        patient += now.waiting[i].refusal.kind == RejectionKind::kLater ? 1 : 0;
      }
    }
  }
  EXPECT_GT(bounded, 10);
  EXPECT_GT(patient, 0);
}

// A job leaves half a node of H100 for half a node of A100, but only once so little is left of its
// run that the devices that become free together are worth more than its later end.
TEST(PassInvariants, WhoStaysIsAskedAgainBeforeAMovePays) {
  TestCluster cluster(fast_and_slow_pod());
  JobRequest beside = cluster.job(4, Duration::hours(200));
  beside.roles[0].options[0].gang = cluster.gang(4, "a100");
  cluster.submit(beside);
  JobRequest job = cluster.job(4, Duration::hours(10));
  job.preemptible = true;
  job.roles[0].options.push_back({cluster.gang(4, "a100"), 0.9, std::nullopt});
  const JobId id = cluster.submit(job);
  cluster.pass("hardware-aware");
  ASSERT_TRUE(cluster.runs(id));
  for (RunningJob& running : cluster.running()) running.checkpoint = Duration::minutes(1);
  const Policy policy = *policy_named("hardware-aware");
  int stays = 0;
  std::size_t moves = 0;
  while (moves == 0 && cluster.now() < cluster.find(id)->expected_end) {
    cluster.wait(Duration::minutes(5));
    moves = Scheduler(cluster.tree())
                .decide(cluster.situation(), policy, PassKind::kFull)
                .decisions.size();
    EXPECT_EQ(cluster.pass("hardware-aware", PassKind::kFull).decisions.size(), moves);
    ++stays;
  }
  EXPECT_EQ(moves, 1u);
  EXPECT_GT(stays, 60);
}

TEST(PassInvariants, NothingMovesForEverWhenNothingChanges) {
  for (const char* policy : {"capacity", "hardware-aware", "srtf", "las"}) {
    for (const std::string& fleet : {small_h100(), h100_and_a100()}) {
      TestCluster cluster(fleet, kTenants);
      Rng rng(17);
      for (int i = 0; i < 60; ++i) cluster.submit(random_job(cluster, rng));
      int quiet = 0;
      for (int pass = 0; pass < 200 && quiet < 3; ++pass) {
        const PassResult result = cluster.pass(policy, PassKind::kFull);
        quiet = result.decisions.empty() ? quiet + 1 : 0;
        // The order of some policies changes as time passes.
        if (policy_named(policy)->order == QueueOrder::kFair) cluster.wait(Duration::minutes(12));
      }
      EXPECT_GE(quiet, 3) << policy;
    }
  }
}

TEST(PassInvariants, NobodyStarvesUnderFairPolicies) {
  for (const char* policy : {"capacity", "hardware-aware"}) {
    TestCluster cluster(small_h100(), kTenants);
    Rng rng(23);
    JobRequest large = cluster.job(64, Duration::minutes(30));
    large.tenant = *cluster.tenants().find("c");
    const JobId patient = cluster.submit(large);
    bool started = false;
    // Small jobs keep coming, enough to fill the fleet more than once.
    for (int step = 0; step < 400 && !started; ++step) {
      for (int i = 0; i < 3; ++i) {
        JobRequest small = cluster.job(8, Duration::minutes(20));
        small.tenant = *cluster.tenants().find(rng.below(2) == 0 ? "a" : "b");
        cluster.submit(small);
      }
      const std::vector<RunningJob> running = cluster.running();
      for (const RunningJob& job : running) {
        if (job.expected_end <= cluster.now()) cluster.finish(job.id);
      }
      cluster.pass(policy, PassKind::kFull);
      started = cluster.runs(patient);
      cluster.wait(Duration::minutes(3));
    }
    EXPECT_TRUE(started) << policy;
  }
}

/// Every way to put units on nodes, one or more a node.
void each_allocation(const TestCluster& cluster, const GangRequest& gang,
                     const std::function<void(const Allocation&)>& visit) {
  Allocation allocation;
  const FleetView view = cluster.situation().fleet;
  const std::function<void(std::uint32_t, std::uint32_t)> from = [&](std::uint32_t node,
                                                                     std::uint32_t left) {
    if (left == 0) return visit(allocation);
    if (node == view.topology().node_count()) return;
    from(node + 1, left);
    std::uint64_t free = view.node(NodeId(node)).free_mask;
    std::uint64_t taken = 0;
    for (std::uint32_t units = 1; units <= left; ++units) {
      for (std::uint32_t i = 0; i < gang.node_devices; ++i) {
        if (free == 0) return;
        taken |= free & (~free + 1);
        free &= free - 1;
      }
      allocation.ranks.push_back({NodeId(node), taken});
      from(node + 1, left - units);
      allocation.ranks.pop_back();
    }
  };
  from(0, gang.devices / gang.node_devices);
}

/// Two pods of two racks of two nodes, with random devices free.
std::unique_ptr<TestCluster> half_free(Rng& rng) {
  auto cluster = std::make_unique<TestCluster>(one_hall(
      "    - count: 2\n      racks:\n      - count: 2\n        cooling: in-row-or-dense-air\n"
      "        nodes: [{type: dgx-h100, count: 2}]\n"));
  for (std::uint32_t n = 0; n < 8; ++n) {
    cluster->fleet().set_free(NodeId(n), rng.below(3) == 0 ? 0xff : rng.next_u64() & 0xff);
  }
  return cluster;
}

// A job that cannot gain by a move is not looked at further, so the bounds must hold for every
// place.
TEST(PassInvariants, APriceLiesBetweenItsBoundsWhereverTheGangIs) {
  Rng rng(37);
  std::int64_t placed = 0;
  for (int run = 0; run < 200; ++run) {
    const auto cluster = half_free(rng);
    const std::uint32_t sizes[] = {1, 2, 4, 8, 16};
    cluster->submit(cluster->job(sizes[rng.below(std::size(sizes))]));
    Situation s = cluster->situation();
    std::vector<float> risk(8);
    for (float& of : risk) of = static_cast<float>(rng.below(8));
    s.node_risk = risk;
    s.failures_per_node_second = 1e-5;
    const Policy policy = *policy_named("hardware-aware");
    const PriceContext context{s, policy, s.fleet};
    const WaitingJob job = s.waiting[0];
    const GangRequest& gang = job.request->roles[0].options[0].gang;
    const double most = stranded_most(s.fleet.topology(), gang);
    const std::int64_t least = least_price(context, job, {0, 0, Duration()}).total();
    each_allocation(*cluster, gang, [&](const Allocation& allocation) {
      const PlacedGang there{0, 0, allocation, {}};
      const GangTerms terms = *terms_of(context, job, there);
      const std::int64_t price = price_of(context, job, there, terms).total();
      EXPECT_LE(least + price_of_stranded(context, gang.type, -most).total(), price + 2);
      EXPECT_GE(most_price(context, job, there, terms).total() +
                    price_of_stranded(context, gang.type, most).total(),
                price - 2);
      FleetOverlay taken(s.fleet);
      take(taken, allocation, {});
      const double before = stranded_devices(s.fleet, allocation.ranks);
      EXPECT_EQ(stranded_devices(taken.view(), allocation.ranks, GangDevices::kOwn), before);
      ++placed;
    });
  }
  EXPECT_GT(placed, 500);
}

TEST(PassInvariants, PricesAreNearTheBestOfAllPlacements) {
  Rng rng(31);
  double excess = 0;
  int exact = 0;
  int cases = 0;
  while (cases < 200) {
    const auto made = half_free(rng);
    TestCluster& cluster = *made;
    const std::uint32_t sizes[] = {1, 2, 4, 8, 16};
    JobRequest request = cluster.job(sizes[rng.below(std::size(sizes))]);
    const JobId id = cluster.submit(request);
    const GangRequest gang = request.roles[0].options[0].gang;
    const Situation before = cluster.situation();
    const Policy policy = *policy_named("hardware-aware");
    const PriceContext context{before, policy, before.fleet};
    std::optional<std::int64_t> best;
    const WaitingJob waiting = before.waiting[0];
    each_allocation(cluster, gang, [&](const Allocation& allocation) {
      const PlacedGang placed{0, 0, allocation, {}};
      const auto terms = terms_of(context, waiting, placed);
      const std::int64_t price = price_of(context, waiting, placed, *terms).total();
      best = best ? std::min(*best, price) : price;
    });
    const PassResult result = cluster.scheduler().decide(before, policy, PassKind::kIncremental);
    ASSERT_EQ(result.waiting.empty(), best.has_value());
    if (!best) continue;
    const auto& start = std::get<StartJob>(result.decisions.front());
    EXPECT_EQ(start.job, id);
    ++cases;
    excess += static_cast<double>(start.price->total() - *best) / static_cast<double>(*best);
    exact += start.price->total() == *best ? 1 : 0;
  }
  printf("exact optima: %d of %d, mean excess %.3f %%\n", exact, cases, excess / cases * 100);
  EXPECT_LE(excess / cases, 0.02);
}

}  // namespace
}  // namespace orrery
