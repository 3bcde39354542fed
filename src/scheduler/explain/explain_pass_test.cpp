// A change that explain() shows is the outcome of the next pass of the whole queue: random fleets,
// queues, tenants and policies, each change carried out with nothing that explain() itself uses.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/numbers/rng.hpp"
#include "scheduler/explain/explain_trial.hpp"
#include "scheduler/place/cluster_test.hpp"

namespace orrery {
namespace {

constexpr const char* kA100 = "nvidia-a100-sxm4-80g";
constexpr std::int64_t kLimit = 40;

std::string fleet_of_two_types() {
  return one_hall(
      "    - racks:\n      - count: 4\n        cooling: in-row-or-dense-air\n        nodes: "
      "[{type: dgx-h100, count: 2}, {type: dgx-a100-80g, count: 1}]\n");
}

std::string tenants_with(std::int64_t limit) {
  return fmt::format(
      "- {{name: a, guarantee: {{h100: 16}}, limit: {{h100: {}}}}}\n"
      "- {{name: b, guarantee: {{h100: 16}}, weight: 2}}\n- {{name: c}}\n",
      limit);
}

JobRequest any_job(const TestCluster& cluster, Rng& rng) {
  constexpr std::array<std::uint32_t, 9> kSizes{1, 2, 3, 4, 8, 8, 16, 24, 32};
  const std::uint32_t devices = kSizes[rng.below(kSizes.size())];
  JobRequest job =
      cluster.job(devices, Duration::minutes(static_cast<std::int64_t>(10 + rng.below(300))));
  constexpr std::array<const char*, 3> kNames{"a", "b", "c"};
  job.tenant = *cluster.tenants().find(kNames[rng.below(kNames.size())]);
  job.priority = static_cast<std::int32_t>(rng.below(3));
  job.preemptible = rng.below(2) == 0;
  job.kind = job.preemptible ? JobKind::kBatch : JobKind::kTrain;
  if (rng.below(3) == 0) job.goal = JobGoal::kCost;
  if (devices > 8 && rng.below(3) == 0) {
    job.roles[0].options[0].gang.required = TopologyLevel::kRack;
  }
  if (rng.below(3) == 0) {
    GangOption slower{cluster.gang(devices, kA100), 0.45, std::nullopt};
    slower.gang.required = job.roles[0].options[0].gang.required;
    job.roles[0].options.push_back(slower);
  }
  return job;
}

/// A full fleet in which some jobs ended and others were submitted since.
void make_busy(TestCluster& cluster, Rng& rng, const std::string& policy) {
  for (int i = 0; i < 24; ++i) cluster.submit(any_job(cluster, rng));
  cluster.pass(policy, PassKind::kFull);
  const std::uint64_t gone = rng.below(4);
  for (std::uint64_t i = 0; i < gone && !cluster.running().empty(); ++i) {
    cluster.finish(cluster.running()[rng.below(cluster.running().size())].id);
  }
  cluster.wait(Duration::minutes(static_cast<std::int64_t>(rng.below(60))));
  const std::uint64_t more = rng.below(12);
  for (std::uint64_t i = 0; i < more; ++i) cluster.submit(any_job(cluster, rng));
  cluster.pass(policy, PassKind::kFull);
}

/// The situation of a cluster after a change.
class Changed {
 public:
  Changed(const TestCluster& cluster, const Change& change, JobId job)
      : s_(cluster.situation()),
        fleet_(s_.fleet),
        waiting_(s_.waiting.begin(), s_.waiting.end()),
        running_(s_.running.begin(), s_.running.end()),
        tenants_(tenants_with(kLimit + change.devices)),
        usage_(tenants_.of(cluster)) {
    if (change.request) ask(job, *change.request);
    if (change.other) leave(*change.other, change.moved);
    s_.fleet = fleet_.view();
    s_.waiting = waiting_;
    s_.running = running_;
    s_.tenants = &tenants_.tree();
    s_.usage = &usage_;
  }

  [[nodiscard]] bool starts(JobId job, const std::string& policy, const PlaceTree& tree) const {
    Scheduler scheduler(tree);
    const PassResult result = scheduler.decide(s_, *policy_named(policy), PassKind::kFull);
    return std::any_of(result.decisions.begin(), result.decisions.end(),
                       [&](const Decision& decision) {
                         const auto* start = std::get_if<StartJob>(&decision);
                         return start != nullptr && start->job == job;
                       });
  }

 private:
  /// Tenants with another limit, and their usage in a cluster.
  class Tenants {
   public:
    explicit Tenants(const std::string& yaml) : cluster_(fleet_of_two_types(), yaml) {}
    [[nodiscard]] const TenantTree& tree() const { return cluster_.tenants(); }
    [[nodiscard]] TenantUsage of(const TestCluster& cluster) const {
      TenantUsage usage(tree());
      for (const RunningJob& job : cluster.running()) add(usage, job, 1);
      return usage;
    }
    static void add(TenantUsage& usage, const RunningJob& job, std::int64_t sign) {
      for (const PlacedGang& placed : job.gangs) {
        const GangRequest& gang = job.request->roles[placed.role].options[placed.option].gang;
        usage.apply({job.request->tenant, gang.type, rank_of(*job.request), sign * gang.devices});
      }
    }

   private:
    TestCluster cluster_;
  };

  void ask(JobId id, const JobRequest& request) {
    for (WaitingJob& job : waiting_) {
      if (job.id == id) job.request = &request;
    }
  }

  void leave(JobId id, const std::vector<PlacedGang>& moved) {
    const auto job = std::find_if(running_.begin(), running_.end(),
                                  [&](const RunningJob& each) { return each.id == id; });
    give_back(fleet_, std::span<const PlacedGang>(job->gangs));
    if (moved.empty()) {
      Tenants::add(usage_, *job, -1);
      running_.erase(job);
    } else {
      take(fleet_, std::span<const PlacedGang>(moved));
      job->gangs = moved;
    }
  }

  Situation s_;
  FleetOverlay fleet_;
  std::vector<WaitingJob> waiting_;
  std::vector<RunningJob> running_;
  Tenants tenants_;
  TenantUsage usage_;
};

/// The changes that explain() would show, without its forecast, which takes longest.
Explanation changes_for(const Situation& now, const Policy& policy, const WaitingJob& job) {
  const ExplainNames names{[](JobId id) { return fmt::format("job-{}", id.value()); }};
  ExplainTrial trial(now, policy, job);
  Explanation answer{.job = job.id};
  const auto alone = trial.decide(trial.situation());
  if (!alone) answer.refusal = alone.error();
  find_changes(trial, names, answer);
  return answer;
}

TEST(ExplainPass, EveryChangeShownStartsTheJobInAPassOfTheWholeQueue) {
  constexpr std::array<const char*, 8> kPolicies{
      "fifo", "sjf", "srsf", "easy", "conservative", "capacity", "hardware-aware", "las"};
  constexpr std::uint32_t kShown = 1000;
  std::uint32_t shown = 0;
  std::map<ChangeKind, std::uint32_t> kinds;
  for (std::uint64_t seed = 1; shown < kShown; ++seed) {
    ASSERT_LT(seed, 2000u) << "changes are shown: " << shown;
    const std::string policy = kPolicies[seed % kPolicies.size()];
    TestCluster cluster(fleet_of_two_types(), tenants_with(kLimit));
    Rng rng(seed);
    make_busy(cluster, rng, policy);
    const Situation now = cluster.situation();
    if (now.waiting.empty()) continue;
    const WaitingJob& asked = now.waiting[rng.below(now.waiting.size())];
    const JobId job = asked.id;
    const Explanation answer = changes_for(now, *policy_named(policy), asked);
    for (const Change& change : answer.changes) {
      ++shown;
      ++kinds[change.kind];
      const Changed changed(cluster, change, job);
      EXPECT_TRUE(changed.starts(job, policy, cluster.tree()))
          << "seed " << seed << ", " << policy << ", " << change.what << "\n"
          << answer.text();
    }
  }
  EXPECT_GE(kinds.size(), 5u);
}

TEST(ExplainPass, AJobThatEndsIsNoHelpToWhoIsNotFirst) {
  TestCluster cluster(
      one_hall("    - racks:\n      - count: 1\n        cooling: "
               "in-row-or-dense-air\n        nodes: [{type: dgx-h100, count: 1}]\n"));
  cluster.submit(cluster.job(8));
  cluster.pass("capacity");
  cluster.submit(cluster.job(8));
  cluster.submit(cluster.job(8));
  const JobId last = cluster.submit(cluster.job(8));
  const ExplainNames names{[](JobId id) { return fmt::format("job-{}", id.value()); }};
  for (const char* policy : {"capacity", "hardware-aware", "easy", "fifo"}) {
    const Explanation answer = explain(cluster.situation(), *policy_named(policy), last, names);
    EXPECT_TRUE(answer.changes.empty()) << policy << ": " << answer.text();
    EXPECT_NE(answer.text().find("none of the"), std::string::npos) << answer.text();
  }
}

}  // namespace
}  // namespace orrery
