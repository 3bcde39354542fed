// What a scheduler keeps from pass to pass never changes an answer: random histories, each decided
// by one scheduler all the way and by a new one for every pass.
#include <fmt/format.h>

#include "base/numbers/rng.hpp"
#include "scheduler/forecast/waiting_queue.hpp"
#include "scheduler/place/cluster_test.hpp"
#include "scheduler/plans/class_table.hpp"

namespace orrery {
namespace {

constexpr const char* kTenants =
    "- {name: a, guarantee: {h100: 24}, limit: {h100: 64}}\n"
    "- {name: b, guarantee: {h100: 16}, weight: 2}\n- {name: c}\n";

/// Two pods of H100 and one of A100, three nodes a rack.
std::string two_types() {
  const std::string racks = "\n      racks: [{count: 2, cooling: in-row-or-dense-air, nodes: ";
  return one_hall("    - name: fast\n      count: 2" + racks +
                  "[{type: dgx-h100, count: 3}]}]\n    - name: slow" + racks +
                  "[{type: dgx-a100-80g, count: 3}]}]\n");
}

std::string text_of(std::span<const PlacedGang> gangs) {
  std::string text;
  for (const PlacedGang& gang : gangs) {
    text += fmt::format(" {}.{}", gang.role, gang.option);
    for (const NodeDevices& at : gang.allocation.ranks) {
      text += fmt::format(" {}:{:x}", at.node.value(), at.devices);
    }
  }
  return text;
}

struct DecisionText {
  std::string operator()(const StartJob& d) const {
    return fmt::format("start {}{} {}", d.job.value(), text_of(d.gangs),
                       d.price ? d.price->total() : 0);
  }
  std::string operator()(const PreemptJob& d) const {
    return fmt::format("stop {} for {} {}", d.job.value(), d.in_favour_of.value(),
                       d.lost_device_seconds);
  }
  std::string operator()(const ResizeJob& d) const {
    return fmt::format("resize {}{} {}", d.job.value(), text_of(d.gangs), d.gained_device_seconds);
  }
  std::string operator()(const SetClock& d) const { return fmt::format("clock {}", d.job.value()); }
  std::string operator()(const WantPlan& d) const { return fmt::format("plan {}", d.key.devices); }
};

std::string text_of(const PassResult& result) {
  std::string text = fmt::format("holds until {}\n", result.holds_until.ns());
  for (const Decision& each : result.decisions) text += std::visit(DecisionText{}, each) + "\n";
  // A refusal states the reason at the time when it was first given, so it is left out.
  for (const StillWaits& each : result.waiting) text += fmt::format("{} waits\n", each.job.value());
  for (const Reservation& each : result.reservations) {
    text += fmt::format("{} has a slot at {}:{}\n", each.job.value(), each.start.ns(),
                        text_of(each.gangs));
  }
  return text;
}

/// A cluster with a random history.
class History {
 public:
  explicit History(std::uint64_t seed)
      : cluster_(seed % 2 == 0 ? small_h100() : two_types(), kTenants), rng_(seed) {
    if (seed % 3 == 0) cluster_.let_victims_linger();
  }

  void step() {
    for (std::uint64_t n = rng_.below(4); n > 0; --n) cluster_.submit(job());
    const std::vector<RunningJob> running = cluster_.running();
    for (const RunningJob& job : running) {
      const bool leaves = job.stopping && rng_.below(2) == 0;
      if (leaves || rng_.below(12) == 0) cluster_.stop(job.id);
      if (leaves) continue;
      if (job.expected_end <= cluster_.now() && cluster_.runs(job.id)) cluster_.finish(job.id);
    }
    if (!cluster_.situation().waiting.empty() && rng_.below(6) == 0) {
      const auto waiting = cluster_.situation().waiting;
      cluster_.withdraw(waiting[rng_.below(waiting.size())].id);
    }
    fail_or_mend();
    // Now and then the time is so long that jobs that waited for days are overtaken or overtake
    // others.
    const std::uint64_t most = rng_.below(5) == 0 ? 60 * 24 * 20 : 15;
    cluster_.wait(Duration::minutes(static_cast<std::int64_t>(rng_.below(most))));
  }

  /// Decides twice, compares the results and carries them out.
  void pass(const std::string& policy) {
    const PassKind kind = rng_.below(4) == 0 ? PassKind::kFull : PassKind::kIncremental;
    const Policy rules = *policy_named(policy);
    cluster_.renew_shares(rules, kind);
    const std::string anew =
        text_of(Scheduler(cluster_.tree()).decide(cluster_.situation(), rules, kind));
    ASSERT_EQ(text_of(cluster_.pass(policy, kind)), anew) << policy;
  }

  void expect_order(WaitingQueue& queue, const Policy& policy) {
    const Situation s = cluster_.situation();
    queue.update(s, policy);
    const std::vector<std::uint32_t> order = in_order(s, policy);
    ASSERT_EQ(queue.order().size(), order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      EXPECT_EQ(queue.order()[i].at, order[i]);
      EXPECT_EQ(queue.order()[i].key, key_of(s.waiting[order[i]], policy, s));
    }
  }

 private:
  JobRequest job() {
    const std::uint32_t sizes[] = {1, 2, 4, 8, 8, 16, 24, 32};
    const std::uint32_t devices = sizes[rng_.below(std::size(sizes))];
    JobRequest job =
        cluster_.job(devices, Duration::minutes(static_cast<std::int64_t>(10 + rng_.below(200))));
    const char* names[] = {"a", "b", "c"};
    job.tenant = *cluster_.tenants().find(names[rng_.below(3)]);
    job.priority = static_cast<std::int32_t>(rng_.below(2));
    job.preemptible = rng_.below(3) != 0;
    job.kind = rng_.below(2) == 0 ? JobKind::kBatch : JobKind::kTrain;
    if (rng_.below(10) == 0) job.kind = JobKind::kServe;
    if (rng_.below(5) == 0) job.estimate.reset();
    if (rng_.below(12) == 0) job.deadline = cluster_.now() + Duration::hours(3);
    if (rng_.below(3) != 0) job.checkpoint_interval = Duration::minutes(30);
    RoleRequest& role = job.roles.front();
    if (devices >= 16 && rng_.below(3) == 0) {
      role.devices_min = devices / 2;
      role.options.push_back({cluster_.gang(devices / 2), 0.55, std::nullopt});
    }
    if (cluster_.tree().topology().find_type("a100") && rng_.below(2) == 0) {
      role.options.push_back({cluster_.gang(devices, "a100"), 0.4, std::nullopt});
    }
    if (rng_.below(4) != 0) job.class_id = classes_.of(job);
    return job;
  }

  /// A node without work fails, or comes back.
  void fail_or_mend() {
    const Topology& topology = cluster_.tree().topology();
    const NodeId node(static_cast<std::uint32_t>(rng_.below(topology.node_count())));
    const std::uint64_t all = (std::uint64_t{1} << topology.group(node).devices) - 1;
    if (down_ && rng_.below(3) == 0) {
      cluster_.fleet().set_free(*down_, all);
      cluster_.free_up();
      down_.reset();
    } else if (!down_ && cluster_.situation().fleet.node(node).free_mask == all) {
      cluster_.fleet().set_free(node, 0);
      down_ = node;
    }
  }

  TestCluster cluster_;
  Rng rng_;
  ClassTable classes_;
  std::optional<NodeId> down_;
};

TEST(PassMemory, NeverChangesWhatAPassDecides) {
  const char* policies[] = {"hardware-aware", "hardware-aware:version=1",
                            "capacity",       "hardware-aware:ageing=2 h",
                            "easy",           "srtf",
                            "tiresias",       "gavel",
                            "themis",         "sia",
                            "elasticflow"};
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    History history(seed);
    const std::string policy = policies[seed % std::size(policies)];
    for (int i = 0; i < 30; ++i) {
      history.step();
      history.pass(policy);
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
  }
}

TEST(PassMemory, KeepsTheQueueInTheOrderOfThePolicy) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    History history(seed);
    std::vector<WaitingQueue> queues(policy_names().size());
    for (int i = 0; i < 40; ++i) {
      history.step();
      for (std::size_t p = 0; p < queues.size(); ++p) {
        history.expect_order(queues[p], *policy_named(policy_names()[p]));
      }
      history.pass("hardware-aware");
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
  }
}

}  // namespace
}  // namespace orrery
