#include "perf/machine/machine.hpp"

#include <gtest/gtest.h>

#include "perf/repository_facts_test.hpp"

namespace orrery {
namespace {

Machine machine_named(std::string_view name, std::uint64_t accelerators) {
  const Accelerator* accelerator = builtin_facts().find<Accelerator>(name);
  EXPECT_NE(accelerator, nullptr) << name;
  Result<Machine> machine =
      machine_of(builtin_facts(), {.accelerator = accelerator, .accelerators = accelerators});
  EXPECT_TRUE(machine) << name;
  return machine ? *machine : Machine{};
}

TEST(Machine, an_h100_cluster_is_nvlink_domains_of_eight_joined_by_infiniband) {
  const Machine machine = machine_named("h100", 64);
  ASSERT_EQ(machine.tiers.size(), 2U);
  EXPECT_EQ(machine.tiers[0].link, LinkClass::kSwitched);
  EXPECT_EQ(machine.tiers[0].size, 8U);
  EXPECT_DOUBLE_EQ(machine.tiers[0].bandwidth, 450e9);
  EXPECT_EQ(machine.tiers[1].link, LinkClass::kInfiniband);
  EXPECT_DOUBLE_EQ(machine.tiers[1].bandwidth, 50e9);
}

TEST(Machine, a_gb200_rack_is_one_domain_of_72) {
  EXPECT_EQ(machine_named("gb200", 144).tiers[0].size, 72U);
}

TEST(Machine, cards_without_links_of_their_own_meet_over_pcie) {
  const Machine machine = machine_named("l40s", 16);
  EXPECT_EQ(machine.tiers[0].link, LinkClass::kPcie);
  EXPECT_EQ(machine.tiers[0].size, 8U);
}

TEST(Machine, tpu_slices_are_tori_joined_by_the_data_centre_network) {
  const Accelerator* tpu = builtin_facts().find<Accelerator>("tpu v5e");
  ASSERT_NE(tpu, nullptr);
  const Result<Machine> machine = machine_of(
      builtin_facts(), {.accelerator = tpu, .accelerators = 512, .slice_accelerators = 256});
  ASSERT_TRUE(machine);
  ASSERT_EQ(machine->tiers.size(), 2U);
  EXPECT_EQ(machine->tiers[0].link, LinkClass::kTorus);
  EXPECT_EQ(machine->tiers[0].dimensions, 2);
  EXPECT_EQ(machine->tiers[1].link, LinkClass::kDataCenter);
}

TEST(Machine, two_ranks_an_accelerator_share_all_it_has) {
  const Accelerator* trainium = builtin_facts().find<Accelerator>("trainium1");
  ASSERT_NE(trainium, nullptr);
  const Result<Machine> whole =
      machine_of(builtin_facts(), {.accelerator = trainium, .accelerators = 32});
  const Result<Machine> cores = machine_of(
      builtin_facts(), {.accelerator = trainium, .accelerators = 32, .ranks_per_accelerator = 2});
  ASSERT_TRUE(whole);
  ASSERT_TRUE(cores);
  EXPECT_EQ(cores->ranks, 64U);
  EXPECT_DOUBLE_EQ(2 * cores->memory, whole->memory);
  EXPECT_DOUBLE_EQ(2 * cores->tiers[0].bandwidth, whole->tiers[0].bandwidth);
  EXPECT_EQ(cores->tiers[0].size, 2 * whole->tiers[0].size);
}

TEST(Machine, tiers_grow_and_the_last_spans_every_rank_for_every_accelerator) {
  for (const Accelerator& accelerator : builtin_facts().all<Accelerator>()) {
    for (const std::uint64_t count : {1U, 8U, 1000U}) {
      const Result<Machine> machine =
          machine_of(builtin_facts(), {.accelerator = &accelerator, .accelerators = count});
      if (!machine) continue;  // no rate for matrix products: an error of its own
      ASSERT_FALSE(machine->tiers.empty()) << accelerator.id;
      std::uint64_t below = 0;
      for (const Tier& tier : machine->tiers) {
        EXPECT_GT(tier.size, below) << accelerator.id;
        EXPECT_GT(tier.bandwidth, 0) << accelerator.id;
        below = tier.size;
      }
      EXPECT_GE(below, machine->ranks) << accelerator.id;
    }
  }
}

TEST(Machine, needs_accelerators) {
  const Accelerator* h100 = builtin_facts().find<Accelerator>("h100");
  EXPECT_FALSE(machine_of(builtin_facts(), {.accelerator = h100, .accelerators = 0}));
}

}  // namespace
}  // namespace orrery
