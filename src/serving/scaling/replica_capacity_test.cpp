// serving/scaling/replica_capacity_test.cpp - what targets and pace do to a replica's capacity.
#include "serving/scaling/replica_capacity.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

CapacityTerms terms_of(double ttft_s, double tpot_s) {
  return {.cost = {.step_s = 0.01, .sequence_s = 0.0005, .prompt_token_s = 0.0001},
          .slots = 32,
          .shape = {.prompt = 500, .output = 100},
          .ttft_s = ttft_s,
          .tpot_s = tpot_s,
          .error = 0};
}

TEST(ReplicaCapacity, CountsEachTokensShareOfTheTime) {
  const ReplicaCapacity capacity = replica_capacity(terms_of(0, 0));
  EXPECT_EQ(capacity.batch, 32u);
  EXPECT_DOUBLE_EQ(capacity.prompt_token_s, 0.0001);
  EXPECT_DOUBLE_EQ(capacity.output_token_s, (0.01 + 32 * 0.0005) / 32);
  // A request takes 0.05 s for its prompt and 100 * 0.0008125 s for its answer.
  EXPECT_NEAR(requests_s_of(capacity, {500, 100}), 0.8 / 0.13125, 1e-9);
  EXPECT_NEAR(replicas_for({500 * 6.0, 100 * 6.0}, capacity), 6 * 0.13125 / 0.8, 1e-9);
}

TEST(ReplicaCapacity, TighterTargetsLeaveLess) {
  const RequestShape shape{500, 100};
  double before = requests_s_of(replica_capacity(terms_of(0, 1)), shape);
  std::uint32_t batch = 33;
  for (const double tpot : {0.04, 0.03, 0.02, 0.015}) {
    const ReplicaCapacity capacity = replica_capacity(terms_of(0, tpot));
    EXPECT_TRUE(capacity.keeps);
    EXPECT_LT(capacity.batch, batch);
    EXPECT_LT(requests_s_of(capacity, shape), before);
    batch = capacity.batch;
    before = requests_s_of(capacity, shape);
  }
  double busy = 1;
  for (const double ttft : {5.0, 1.0, 0.3, 0.1}) {
    const ReplicaCapacity capacity = replica_capacity(terms_of(ttft, 0));
    EXPECT_TRUE(capacity.keeps);
    EXPECT_LT(capacity.busy, busy) << ttft;
    busy = capacity.busy;
  }
}

TEST(ReplicaCapacity, TellsThatNoBatchKeepsATarget) {
  EXPECT_FALSE(replica_capacity(terms_of(0, 0.001)).keeps);
  EXPECT_FALSE(replica_capacity(terms_of(0.001, 0)).keeps);
  EXPECT_GT(requests_s_of(replica_capacity(terms_of(0.001, 0.001)), {500, 100}), 0);
  const ReplicaCapacity unknown = replica_capacity({.cost = {}, .shape = {}});
  EXPECT_EQ(unknown.busy, 0);
  EXPECT_EQ(replicas_for({100, 100}, unknown), 0);
}

TEST(ReplicaCapacity, AnUncertainPaceLeavesLess) {
  CapacityTerms terms = terms_of(1, 0.03);
  const double exact = requests_s_of(replica_capacity(terms), terms.shape);
  terms.error = 0.2;
  EXPECT_LT(requests_s_of(replica_capacity(terms), terms.shape), exact / 1.19);
}

}  // namespace
}  // namespace orrery
