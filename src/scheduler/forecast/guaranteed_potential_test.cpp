#include "scheduler/forecast/guaranteed_potential.hpp"

#include <gtest/gtest.h>

#include <set>

#include "scheduler/tenants/tenants_test.hpp"

namespace orrery {
namespace {

using Changes = std::vector<UsageChange>;

TenantUsage after(TenantUsage usage, const Changes& changes) {
  for (const UsageChange& change : changes) usage.apply(change);
  return usage;
}

// Computes the potential from its definition, over all priorities.
std::vector<std::int64_t> potential_of(const TenantUsage& usage, std::int32_t priorities) {
  std::vector<std::int64_t> entries;
  const TenantTree& tree = usage.tree();
  for (std::int32_t p = priorities - 1; p >= 0; --p) {
    std::int64_t guaranteed = 0;
    for (std::uint32_t t = 0; t < tree.size(); ++t) {
      for (const FleetTypeId column : {kH100, kA100, kAllTypes}) {
        const std::optional<std::int64_t> guarantee = tree.guarantee(TenantId(t), column);
        if (!guarantee) continue;
        guaranteed += std::min(usage.used_at_least(TenantId(t), column, p), *guarantee);
      }
    }
    entries.push_back(guaranteed);
    entries.push_back(usage.used_at_least(TenantTree::root(), kAllTypes, p));
  }
  return entries;
}

struct Pair {
  TenantTree tree =
      tree_of("- {name: a, guarantee: {h100: 64}}\n- {name: b, guarantee: {h100: 64}}\n");
  TenantUsage usage{tree};
  TenantId a = tenant(tree, "a");
  TenantId b = tenant(tree, "b");
};

TEST(GuaranteedPotential, RisesWhenAGuaranteeIsReclaimed) {
  Pair pair;
  pair.usage.apply({pair.a, kH100, 0, 128});
  const Changes reclaim{{pair.a, kH100, 0, -64}, {pair.b, kH100, 0, 64}};
  EXPECT_EQ(compare_potential(pair.usage, reclaim), std::strong_ordering::greater);
  EXPECT_EQ(judge_preemption(pair.usage, reclaim), PreemptionVerdict::kAccepted);
}

TEST(GuaranteedPotential, RefusesToTakeWhatWasReclaimedBack) {
  Pair pair;
  pair.usage.apply({pair.a, kH100, 0, 64});
  pair.usage.apply({pair.b, kH100, 0, 64});
  const Changes back{{pair.b, kH100, 0, -64}, {pair.a, kH100, 0, 64}};
  EXPECT_EQ(compare_potential(pair.usage, back), std::strong_ordering::less);
  EXPECT_EQ(judge_preemption(pair.usage, back), PreemptionVerdict::kNoGain);
}

TEST(GuaranteedPotential, LetsAHigherPriorityTakeFromALowerOneOfItsTenant) {
  Pair pair;
  pair.usage.apply({pair.a, kH100, 1, 64});
  // The victim is larger than needed, which is allowed inside a tenant.
  const Changes plan{{pair.a, kH100, 1, -64}, {pair.a, kH100, 2, 32}};
  EXPECT_EQ(judge_preemption(pair.usage, plan), PreemptionVerdict::kAccepted);
  const Changes reverse{{pair.a, kH100, 2, -32}, {pair.a, kH100, 1, 64}};
  EXPECT_EQ(judge_preemption(after(pair.usage, plan), reverse), PreemptionVerdict::kNoGain);
}

TEST(GuaranteedPotential, RefusesALargerEqualOfTheSameTenant) {
  Pair pair;
  pair.usage.apply({pair.a, kH100, 1, 8});
  const Changes plan{{pair.a, kH100, 1, -8}, {pair.a, kH100, 1, 32}};
  EXPECT_EQ(compare_potential(pair.usage, plan), std::strong_ordering::greater);
  EXPECT_EQ(judge_preemption(pair.usage, plan), PreemptionVerdict::kNoRight);
}

TEST(GuaranteedPotential, ProtectsAGuaranteeEvenFromAHigherPriority) {
  Pair pair;
  pair.usage.apply({pair.a, kH100, 0, 64});
  pair.usage.apply({pair.b, kH100, 5, 64});
  const Changes plan{{pair.a, kH100, 0, -8}, {pair.b, kH100, 9, 8}};
  EXPECT_EQ(compare_potential(pair.usage, plan), std::strong_ordering::greater);
  EXPECT_EQ(judge_preemption(pair.usage, plan), PreemptionVerdict::kBelowGuarantee);
}

TEST(GuaranteedPotential, LetsAHigherPriorityTakeWhatIsBorrowed) {
  Pair pair;
  pair.usage.apply({pair.a, kH100, 0, 72});
  pair.usage.apply({pair.b, kH100, 5, 56});
  const Changes plan{{pair.a, kH100, 0, -8}, {pair.b, kH100, 1, 8}};
  EXPECT_EQ(judge_preemption(pair.usage, plan), PreemptionVerdict::kAccepted);
}

TEST(GuaranteedPotential, DoesNotReclaimFromAHigherPriority) {
  Pair pair;
  pair.usage.apply({pair.a, kH100, 5, 128});
  const Changes plan{{pair.a, kH100, 5, -64}, {pair.b, kH100, 0, 64}};
  EXPECT_EQ(judge_preemption(pair.usage, plan), PreemptionVerdict::kNoGain);
}

TEST(GuaranteedPotential, SeesAGainAtAPriorityThatNobodyChanges) {
  Pair pair;
  // At priority 5 one tenant gains what the other loses; at 3 the victim's tenant still holds its
  // whole guarantee.
  pair.usage.apply({pair.a, kH100, 5, 64});
  pair.usage.apply({pair.a, kH100, 3, 64});
  const Changes plan{{pair.a, kH100, 5, -32}, {pair.b, kH100, 5, 32}};
  EXPECT_EQ(compare_potential(pair.usage, plan), std::strong_ordering::greater);
  EXPECT_EQ(judge_preemption(pair.usage, plan), PreemptionVerdict::kAccepted);
}

TEST(GuaranteedPotential, HonoursARightInsideAFullGroup) {
  const TenantTree tree = tree_of(
      "- {name: lab, guarantee: {h100: 64}}\n- {name: lab/vision, guarantee: {h100: 32}}\n"
      "- name: lab/scratch\n- name: lab/toys\n");
  TenantUsage usage(tree);
  const TenantId scratch = tenant(tree, "lab/scratch");
  usage.apply({scratch, kH100, 0, 80});
  EXPECT_EQ(judge_preemption(usage, Changes{{scratch, kH100, 0, -32},
                                            {tenant(tree, "lab/vision"), kH100, 0, 32}}),
            PreemptionVerdict::kAccepted);
  EXPECT_EQ(judge_preemption(
                usage, Changes{{scratch, kH100, 0, -32}, {tenant(tree, "lab/toys"), kH100, 0, 32}}),
            PreemptionVerdict::kNoGain);
}

TEST(GuaranteedPotential, LeavesEqualSharesAlone) {
  Rng rng(7);
  for (const bool guaranteed : {false, true}) {
    const std::string guarantee = guaranteed ? ", guarantee: {h100: 16}" : "";
    const TenantTree tree = tree_of("- {name: a" + guarantee + "}\n- {name: b" + guarantee + "}\n");
    const TenantId a = tenant(tree, "a");
    const TenantId b = tenant(tree, "b");
    for (int round = 0; round < 500; ++round) {
      TenantUsage usage(tree);
      const auto held = static_cast<std::int64_t>(16 + rng.below(40));
      usage.apply({a, kH100, 1, held});
      usage.apply({b, kH100, static_cast<std::int32_t>(rng.below(3)), 16});
      const auto given = static_cast<std::int64_t>(1 + rng.below(16));
      const auto taken = static_cast<std::int64_t>(1 + rng.below(64));
      const Changes plan{{a, kH100, 1, -given}, {b, kH100, 1, taken}};
      EXPECT_NE(judge_preemption(usage, plan), PreemptionVerdict::kAccepted)
          << held << " " << given << " " << taken;
    }
  }
}

UsageChange negated(UsageChange change) {
  change.devices = -change.devices;
  return change;
}

std::vector<UsageChange> random_jobs(Rng& rng, const TenantTree& tree, std::size_t count) {
  std::vector<UsageChange> jobs;
  while (jobs.size() < count) {
    const TenantId id(1 + static_cast<std::uint32_t>(rng.below(tree.size() - 1)));
    if (!tree.is_leaf(id)) continue;
    jobs.push_back({id, FleetTypeId(static_cast<std::uint32_t>(rng.below(2))),
                    static_cast<std::int32_t>(rng.below(3)),
                    static_cast<std::int64_t>(4 + rng.below(30))});
  }
  return jobs;
}

TEST(GuaranteedPotential, ComparesAsItsDefinitionDoes) {
  int rises = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Rng rng(seed);
    const TenantTree tree = random_tree(rng, 1 + rng.below(8));
    TenantUsage usage(tree);
    Changes plan;
    for (const UsageChange& job : random_jobs(rng, tree, 8)) {
      const std::uint64_t fate = rng.below(3);
      if (fate != 0) usage.apply(job);
      if (fate == 0) plan.push_back(job);
      if (fate == 1) plan.push_back(negated(job));
    }
    const std::strong_ordering expected =
        potential_of(after(usage, plan), 3) <=> potential_of(usage, 3);
    EXPECT_EQ(compare_potential(usage, plan), expected) << "seed " << seed;
    rises += expected == std::strong_ordering::greater ? 1 : 0;
  }
  EXPECT_GT(rises, 50);
}

TEST(GuaranteedPotential, AcceptsWhatIsTheTenantsRightFromWhatIsNotTheVictims) {
  int accepted = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const TenantTree tree = random_tree(rng, 2 + rng.below(7));
    TenantUsage usage(tree);
    std::vector<UsageChange> jobs = random_jobs(rng, tree, 7);
    for (UsageChange& job : jobs) {
      job.priority = 1;
      usage.apply(job);
    }
    UsageChange take = random_jobs(rng, tree, 1).front();
    UsageChange give = negated(jobs.front());
    take.priority = 1;
    take.type = give.type;
    take.devices = std::min(take.devices, -give.devices);
    give.devices = -take.devices;
    if (take.tenant == give.tenant) continue;
    const bool due =
        after(usage, {give}).entitled(take.tenant, take.type, take.devices, give.tenant);
    const bool spare = usage.above_guarantee(give.tenant, give.type, take.tenant) >= take.devices;
    const bool verdict =
        judge_preemption(usage, Changes{give, take}) == PreemptionVerdict::kAccepted;
    EXPECT_EQ(verdict, due && spare) << "seed " << seed;
    accepted += verdict ? 1 : 0;
  }
  EXPECT_GT(accepted, 50);
}

// A frozen queue: jobs that run (bit set) or wait, and the capacity of the fleet.
struct Frozen {
  const TenantTree& tree;
  std::vector<UsageChange> jobs;

  [[nodiscard]] TenantUsage usage(std::uint32_t running) const {
    TenantUsage usage(tree);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if ((running >> i & 1) != 0) usage.apply(jobs[i]);
    }
    return usage;
  }

  // Every usage that one accepted plan leads to: one job starts, any set of others is preempted.
  [[nodiscard]] std::vector<std::uint32_t> successors(std::uint32_t running) const {
    std::vector<std::uint32_t> found;
    const TenantUsage before = usage(running);
    for (std::size_t start = 0; start < jobs.size(); ++start) {
      if ((running >> start & 1) != 0) continue;
      for (std::uint32_t victims = running;; victims = (victims - 1) & running) {
        Changes plan{jobs[start]};
        for (std::size_t i = 0; i < jobs.size(); ++i) {
          if ((victims >> i & 1) != 0) plan.push_back(negated(jobs[i]));
        }
        const TenantUsage next = after(before, plan);
        const bool fits = next.used(TenantTree::root(), kH100) <= 60 &&
                          next.used(TenantTree::root(), kA100) <= 40;
        if (fits && judge_preemption(before, plan) == PreemptionVerdict::kAccepted) {
          found.push_back((running & ~victims) | std::uint32_t{1} << start);
        }
        if (victims == 0) break;
      }
    }
    return found;
  }
};

TEST(GuaranteedPotential, EndsEverySequenceOfAcceptedPlans) {
  std::size_t preemptions = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    const TenantTree tree = random_tree(rng, 2 + rng.below(4));
    const Frozen frozen{tree, random_jobs(rng, tree, 8)};
    std::uint32_t running = 0;
    std::set<std::uint32_t> seen{running};
    while (true) {
      const std::vector<std::uint32_t> next = frozen.successors(running);
      if (next.empty()) break;
      const std::uint32_t chosen = next[rng.below(next.size())];
      ASSERT_GT(potential_of(frozen.usage(chosen), 3), potential_of(frozen.usage(running), 3))
          << "seed " << seed;
      ASSERT_TRUE(seen.insert(chosen).second) << "seed " << seed;
      preemptions += (running & ~chosen) != 0 ? 1u : 0u;
      running = chosen;
    }
  }
  EXPECT_GT(preemptions, 60u);
}

}  // namespace
}  // namespace orrery
