// control/core/core_random_test.cpp - random inputs in any order: late, repeated or unfounded ones
// must leave the state consistent.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "base/numbers/rng.hpp"
#include "control/log/journal.hpp"
#include "control/scripted_cluster_test.hpp"
#include "control/state/snapshot.hpp"

namespace orrery {
namespace {

/// Sends random inputs, valid and stale ones.
class RandomOperator {
 public:
  RandomOperator(ScriptedCluster& cluster, std::uint64_t seed, Sharing sharing)
      : cluster_(cluster), rng_(seed), sharing_(sharing), remembers_(*cluster.setup().tree) {}

  void step() {
    switch (rng_.below(22)) {
      case 0:
      case 1:
        return submit();
      case 2:
      case 3:
      case 4:
        return cluster_.wait(Duration::seconds(static_cast<std::int64_t>(rng_.below(900))));
      case 5:
        return observe_node();
      case 6:
        return one_of(2) ? command_node() : command();
      case 7:
      case 9:
        return propose();
      case 8:
        return one_of(3) ? archive() : mend(any_node());
      case 20:
      case 21:
        return serve();
      default:
        return observe_job();
    }
  }

  /// Expects that a scheduler's caches from pass to pass change no decision.
  void expect_memory_changes_nothing() {
    const State& state = cluster_.state();
    const PassKind kind = one_of(4) ? PassKind::kFull : PassKind::kIncremental;
    const auto decided = [&](Scheduler& scheduler) {
      Proposal found{0, scheduler.decide(state.situation(cluster_.now()), state.policy(), kind)};
      found.result.waiting.clear();  // the reason why a job waits is that of its last refusal
      return hash_of(found);
    };
    if (state.policy().name != policy_) remembers_.forget();
    policy_ = state.policy().name;
    Scheduler anew(*cluster_.setup().tree);
    EXPECT_EQ(decided(remembers_), decided(anew));
  }

 private:
  static constexpr std::size_t kNewest = 12;
  static constexpr std::array<const char*, 6> kPolicies{
      "srtf", "hardware-aware", "conservative", "gavel", "sia", "elasticflow"};

  NodeId any_node() {
    return NodeId(static_cast<std::uint32_t>(rng_.below(cluster_.topology().node_count())));
  }
  /// Returns a job that holds devices, more rarely one of the newest.
  JobId any_job() {
    const auto running = cluster_.state().running();
    if (!running.empty() && !one_of(5)) return running[rng_.below(running.size())].id;
    const std::uint64_t jobs = cluster_.state().jobs();
    return JobId::at(jobs - 1 - rng_.below(std::min<std::uint64_t>(jobs, kNewest)));
  }
  bool one_of(std::uint64_t n) { return rng_.below(n) == 0; }

  void submit() {
    Submission submission = one_of(4)
                                ? cluster_.elastic_job(8, 24)
                                : cluster_.job(1 + static_cast<std::uint32_t>(rng_.below(16)));
    GangRequest& gang = submission.request.roles.front().options.front().gang;
    if (sharing_ == Sharing::kSometimes && one_of(3)) {
      submission = cluster_.job(1);
      submission.request.roles.front().options.front().gang.share =
          static_cast<std::uint16_t>(100 * (1 + rng_.below(9)));
    } else if (one_of(6)) {
      gang.exclusive = TopologyLevel::kRack;
    }
    submission.request.tenant = TenantId(1 + static_cast<std::uint32_t>(rng_.below(2)));
    submission.request.priority = static_cast<std::int32_t>(rng_.below(3));
    submission.request.preemptible = !one_of(4);
    if (one_of(2)) submission.request.checkpoint_interval = Duration::minutes(5);
    submission.restart = static_cast<RestartPolicy>(rng_.below(4));
    submission.restart_max = static_cast<std::uint32_t>(rng_.below(3));
    if (one_of(4)) submission.request.time_limit = Duration::minutes(20);
    if (one_of(5)) submission.prepare.program = 1;
    if (one_of(4)) {
      submission.request.array = ArrayId(static_cast<std::uint32_t>(rng_.below(3)));
      submission.parallel = 2;
    }
    if (one_of(4) && cluster_.state().jobs() > 0) submission.after = {any_job(), any_job()};
    const std::string request = one_of(3) ? std::to_string(rng_.below(50)) : "";
    (void)cluster_.send(SubmitJob{submission}, request);
  }

  void observe_job() {
    if (cluster_.state().jobs() == 0) return;
    const JobId id = any_job();
    const Job& job = cluster_.job(id);
    const std::uint32_t attempt = one_of(8) && job.attempt > 0 ? job.attempt - 1 : job.attempt;
    const std::uint32_t epoch = one_of(8) ? 0 : job.epoch;
    const Progress progress{.done = job.done + (1 - job.done) * rng_.uniform(),
                            .lost = Duration::seconds(static_cast<std::int64_t>(rng_.below(60)))};
    switch (rng_.below(6)) {
      case 0:
      case 1:
      case 2:
        cluster_.send(RanksUp{id, attempt, epoch});
        return;
      case 3:
        cluster_.send(RanksEnded{id, attempt, static_cast<ExitKind>(rng_.below(4)),
                                 Blame{FaultLayer::kProgram, any_node(), "exit"}, progress,
                                 one_of(2)});
        return;
      case 4:
        cluster_.send(RanksGone{id, attempt, {any_node(), any_node()}, progress});
        return;
      default:
        cluster_.send(RanksGone{id, attempt, {}, std::nullopt});
    }
  }

  /// Submits a replica of one of two services, updates a service, or lets a replica report.
  void serve() {
    Submission replica = cluster_.job(4);
    replica.request.name = "chat[0]";
    replica.request.kind = JobKind::kServe;
    replica.request.tenant = TenantId(1);
    replica.request.array = ArrayId(10 + static_cast<std::uint32_t>(rng_.below(2)));
    replica.restart_max = static_cast<std::uint32_t>(rng_.below(3));
    const auto& services = cluster_.state().services().all();
    if (services.empty() || one_of(4)) {
      cluster_.send(SubmitJob{replica, "r1", "ada", ""});
      return;
    }
    const JobId any = services.begin()->first;
    if (one_of(4)) {
      cluster_.send(ScaleOrder{any, static_cast<std::uint32_t>(rng_.below(4)), "load"});
      return;
    }
    if (one_of(3)) {
      const std::string spec = "r" + std::to_string(rng_.below(3));
      const auto replicas = 1 + static_cast<std::uint32_t>(rng_.below(3));
      cluster_.send(UpdateService{any, replica, {spec, "ada", ""}, replicas, {}});
      return;
    }
    for (const JobId id : std::set<JobId>(services.begin()->second.live)) {
      const std::uint32_t attempt = cluster_.job(id).attempt;
      cluster_.send(RanksUp{id, attempt, cluster_.job(id).epoch});
      cluster_.send(ReplicaSeen{id, attempt, {.phase = ReplicaPhase::kReady}});
    }
  }

  /// Archives old jobs; those that have not ended stay.
  void archive() {
    const std::size_t jobs = cluster_.state().jobs();
    ArchiveJobs command;
    for (std::size_t at = 0; at + kNewest < jobs; ++at) command.jobs.push_back(JobId::at(at));
    cluster_.send(command);
    for (const JobId id : command.jobs) {
      EXPECT_TRUE(cluster_.state().has(id) || !cluster_.state().may_archive(id));
    }
  }

  /// Returns a node to service, empty, whatever happened to it.
  void mend(NodeId node) {
    cluster_.send(SetSpare{node, false});
    cluster_.send(NodeJoined{node, cluster_.state().node(node).boot + 1});
    cluster_.send(NodeRepaired{node});
    cluster_.send(ResumeNode{node});
  }

  /// Makes a claim of a job on the node.
  void claim(NodeId node) {
    const std::vector<JobId> here = cluster_.state().jobs_on(node);
    if (here.empty()) return;
    const JobId id = here[rng_.below(here.size())];
    cluster_.send(NodeFault{node, FaultLayer::kAccelerator, "wrong", true, false, id,
                            cluster_.job(id).attempt});
  }

  void observe_node() {
    const NodeId node = any_node();
    switch (rng_.below(8)) {
      case 7: {
        const LinkId link(static_cast<std::uint32_t>(rng_.below(cluster_.topology().link_count())));
        cluster_.send(LinkObserved{link, {.health = one_of(2) ? 1.0F : 0.5F, .load = 0}});
        return;
      }
      case 0:
        cluster_.send(NodeJoined{node, cluster_.state().node(node).boot});
        return;
      case 1:
        cluster_.send(NodeJoined{node, cluster_.state().node(node).boot + 1});
        return;
      case 2:
        cluster_.send(NodeHeard{node, NodeHealth::kLost, 5});
        return;
      case 3:
        cluster_.send(NodeHeard{node, one_of(2) ? NodeHealth::kSuspect : NodeHealth::kReady, 2});
        return;
      case 4:
        if (one_of(2)) return claim(node);
        cluster_.send(NodeFault{node, FaultLayer::kHost, "fault", one_of(2), one_of(2)});
        return;
      default:
        cluster_.send(NodeRepaired{node});
    }
  }

  void command_node() {
    const NodeId node = any_node();
    switch (rng_.below(6)) {
      case 0:
        cluster_.send(DrainNode{node, one_of(2), "wanted"});
        return;
      case 1:
        cluster_.send(FenceNode{node});
        return;
      case 2:
        cluster_.send(SetSpare{node, one_of(3)});
        return;
      case 3: {
        const Instant from = cluster_.now() + Duration::minutes(10);
        const auto window = static_cast<std::uint32_t>(rng_.below(2));
        cluster_.send(SetMaintenance{window, {node}, from, from + Duration::minutes(10)});
        return;
      }
      default:
        cluster_.send(ResumeNode{node});
    }
  }

  void command() {
    const std::string head = "apiVersion: orrery/v1\nkind: ";
    const std::string tenants = head + "Tenants\nname: t\ntenants:\n- {name: a}\n- {name: b";
    switch (rng_.below(6)) {
      case 0:
        cluster_.send(SetTenants{tenants + ", weight: 2}\n"});
        return;
      case 1:
        cluster_.send(SetTenants{tenants + "}\n- {name: c, limit: {h100: 8}}\n"});
        return;
      case 2:
        cluster_.send(
            SetPolicy{head + "Policy\nname: " + kPolicies[rng_.below(kPolicies.size())] + "\n"});
        return;
      case 3:
        cluster_.send(SetPowerCap{PowerDomainId(0), Watts(20'000 + 30'000 * rng_.uniform())});
        return;
      case 4:
        cluster_.send(SetPowerCap{PowerDomainId(0), std::nullopt});
        return;
      default:
        if (cluster_.state().jobs() > 0) cluster_.send(CancelJob{any_job()});
    }
  }

  /// Sends the result of an earlier full pass; a pass on the state held then must still find the
  /// same.
  void propose() {
    if (held_ != nullptr) EXPECT_EQ(found_on_held(), found_);
    if (stale_) cluster_.send(*stale_);
    Scheduler scheduler(*cluster_.setup().tree);
    stale_ = full_pass(cluster_.state(), scheduler, cluster_.now());
    held_ = cluster_.hold();
    found_ = hash_of(*stale_);
    if (cluster_.state().running().empty()) return;
    const auto running = cluster_.state().running();
    const RunningJob& run = running[rng_.below(running.size())];
    std::vector<Decision>& decisions = stale_->result.decisions;
    if (one_of(2)) return decisions.push_back(PreemptJob{run.id, JobId()});
    GangTerms terms = run.terms.front();
    terms.clock = 0.5;
    terms.length = Duration::minutes(30);
    if (one_of(3)) return decisions.push_back(SetClock{run.id, 0, terms});
    const auto& options = run.request->roles.front().options;
    PlacedGang gang = run.gangs.front();
    if (gang.allocation.share < kWholeDevice) return;
    gang.option = static_cast<std::uint32_t>(rng_.below(options.size()));
    gang.allocation.ranks.clear();
    const std::uint32_t first = any_node().value();
    for (std::uint32_t left = options[gang.option].gang.devices, n = first; left > 0; ++n) {
      const std::uint32_t here = std::min(left, 8U);
      gang.allocation.ranks.push_back({NodeId(n % 4), (1U << here) - 1});
      left -= here;
    }
    std::sort(gang.allocation.ranks.begin(), gang.allocation.ranks.end(),
              [](const NodeDevices& a, const NodeDevices& b) { return a.node < b.node; });
    decisions.push_back(ResizeJob{.job = run.id, .gangs = {gang}, .terms = {terms}});
  }

  static std::uint64_t hash_of(const Proposal& proposal) {
    InputJournal journal;
    journal.append({Instant(), proposal, {}});
    return journal.history_hash();
  }
  [[nodiscard]] std::uint64_t found_on_held() const {
    Scheduler scheduler(*cluster_.setup().tree);
    return hash_of(full_pass(*held_, scheduler));
  }

  ScriptedCluster& cluster_;
  Rng rng_;
  Sharing sharing_;
  Scheduler remembers_;
  std::string policy_;  ///< policy of its last pass
  std::optional<Proposal> stale_;
  std::unique_ptr<const HeldSituation> held_;
  std::uint64_t found_ = 0;
};

struct Kept {
  std::string snapshot;
  std::size_t events = 0;
};

/// Expects that the kept state and the later events give the present state.
void expect_goes_on(const ScriptedCluster& cluster, const Kept& kept) {
  State state(cluster.setup());
  const Status restored = restore(state, kept.snapshot);
  ASSERT_TRUE(restored) << restored.error().text();
  for (std::size_t i = kept.events; i < cluster.log().size(); ++i) {
    state.apply(cluster.log()[i].at, cluster.log()[i].what);
  }
  EXPECT_EQ(digest_of(state), digest_of(cluster.state()));
}

void run_random(std::uint64_t seed, ScriptedOptions options) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  options.tenants = "- {name: a}\n- {name: b}\n";
  options.timing.lemon_window = Duration::hours(4);
  options.timing.remember_requests = Duration::hours(1);
  ScriptedCluster cluster(options);
  RandomOperator at_random(cluster, seed, options.sharing);
  std::vector<Kept> kept;
  constexpr int kSteps = 400;
  for (int i = 0; i < kSteps && !testing::Test::HasFailure(); ++i) {
    at_random.step();
    if (i % 100 == 50) kept.push_back({snapshot_of(cluster.state()), cluster.log().size()});
  }
  for (const Kept& each : kept) expect_goes_on(cluster, each);
}

TEST(CoreProperty, WhateverHappensToWholeDevicesTheStateIsWhole) {
  for (std::uint64_t seed = 1; seed <= 4 && !HasFailure(); ++seed) run_random(seed, {});
}

TEST(CoreProperty, WhateverHappensToSharedDevicesTheStateIsWhole) {
  for (std::uint64_t seed = 11; seed <= 13 && !HasFailure(); ++seed) {
    run_random(seed, {.sharing = Sharing::kSometimes});
  }
}

TEST(CoreProperty, WhateverHappensUnderPowerLimitsAndFullPassesTheStateIsWhole) {
  for (std::uint64_t seed = 21; seed <= 22 && !HasFailure(); ++seed) {
    run_random(seed, {.policy = "hardware-aware", .power = PowerLimits::kAsBuilt});
  }
}

TEST(CoreProperty, APassThatRemembersDecidesAsOneThatDoesNot) {
  for (std::uint64_t seed = 1; seed <= 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ScriptedOptions options{.policy =
                                seed % 2 == 0 ? "hardware-aware" : "hardware-aware:min_run=1 min"};
    options.tenants = "- {name: a}\n- {name: b}\n";
    ScriptedCluster cluster(options);
    RandomOperator at_random(cluster, seed, options.sharing);
    for (int i = 0; i < 60 && !HasFailure(); ++i) {
      at_random.step();
      at_random.expect_memory_changes_nothing();
    }
  }
}

}  // namespace
}  // namespace orrery
