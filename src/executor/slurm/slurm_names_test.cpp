// executor/slurm/slurm_names_test.cpp - a hold is found again by its labels, and by no others.
#include "executor/slurm/slurm_names.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

TEST(SlurmNamesTest, ANameHasClusterAndKey) {
  EXPECT_EQ(slurm_job_name(0xab, {.id = 7, .epoch = 3}), "orr-00000000000000ab-pilot-3-7");
  EXPECT_EQ(slurm_job_comment(0xab, {.id = 7, .epoch = 3}), "orrery:00000000000000ab:pilot-3-7");
}

TEST(SlurmNamesTest, AKeyComesBackFromItsLabelsAndNoOthers) {
  constexpr std::uint64_t kSeed = 3;
  Rng rng(kSeed);
  const auto draw = [&] { return rng.next_u64() >> rng.below(64); };
  for (int round = 0; round < 1000; ++round) {
    SCOPED_TRACE(round);
    const std::uint64_t cluster = draw();
    const HoldKey key{.id = draw(), .epoch = draw()};
    const std::string name = slurm_job_name(cluster, key);
    const std::string comment = slurm_job_comment(cluster, key);
    EXPECT_EQ(slurm_hold_key(cluster, {name, comment}), key);
    EXPECT_EQ(slurm_hold_key(cluster + 1, {name, comment}), std::nullopt);
    std::string other = comment;
    other[rng.below(other.size())] ^= 1;
    EXPECT_EQ(slurm_hold_key(cluster, {name, other}), std::nullopt);
  }
}

}  // namespace
}  // namespace orrery
