// orrery-train with ranks that share a model, so that no rank has the whole state: what they
// compute, and what remains when some die.
#include "tests/end_to_end/test_seed.hpp"
#include "tests/end_to_end/training_run.hpp"

namespace orrery {
namespace {

/// The results of a layout whose ranks run undisturbed.
struct Unbroken {
  std::string hash;
  std::vector<double> losses;
};

Unbroken unbroken(const std::string& layout, std::uint32_t world, std::uint32_t steps,
                  const std::string& model = "") {
  const Training training(steps, layout, model);
  for (const auto& rank : training.start_all(world)) EXPECT_EQ(rank->end(), 0) << rank->text();
  return {training.hash(), training.losses()};
}

constexpr auto kHalves = "layout: {tp: 2}";
constexpr auto kZero = "layout: {zero: 1}";
constexpr auto kBoth = "layout: {tp: 2, zero: 1}";
constexpr auto kStages = "layout: {pp: 2}";
constexpr auto kAll = "layout: {tp: 2, pp: 2, zero: 1}";

struct Cut {
  std::string layout;
  std::uint32_t ranks;
};

/// For a model with these added keys, each cut has the losses of one rank and bits of its own.
void expect_bits_of_cuts(const std::vector<Cut>& cuts, const std::string& model) {
  constexpr std::uint32_t kSteps = 24;
  const Unbroken one = unbroken("verify_every: 0", 1, kSteps, model);
  ASSERT_EQ(one.losses.size(), kSteps);
  EXPECT_LT(one.losses.back(), one.losses.front() - 0.3) << "it learns";
  EXPECT_EQ(unbroken(kZero, 3, kSteps, model).hash, one.hash);
  for (const Cut& cut : cuts) {
    SCOPED_TRACE(cut.layout);
    const std::string layout = "layout: {" + cut.layout + "}";
    const Unbroken parts = unbroken(layout, cut.ranks, kSteps, model);
    ASSERT_EQ(parts.losses.size(), kSteps);
    for (std::size_t step = 0; step < kSteps; ++step) {
      EXPECT_NEAR(parts.losses[step], one.losses[step], 1e-4) << step;
    }
    EXPECT_NE(parts.hash, one.hash) << "sums in another order";
    EXPECT_EQ(unbroken(layout, 2 * cut.ranks, kSteps, model).hash, parts.hash);
    const std::string zero = "layout: {" + cut.layout + ", zero: 1}";
    EXPECT_EQ(unbroken(zero, 2 * cut.ranks, kSteps, model).hash, parts.hash);
  }
}

TEST(TrainingLayouts, HaveTheLossesOfOneRankAndTheBitsOfTheirCuts) {
  expect_bits_of_cuts({{"tp: 2", 2}, {"pp: 2", 2}, {"tp: 2, pp: 2", 4}}, "");
}

TEST(TrainingLayouts, OfExpertsHaveThemToo) {
  expect_bits_of_cuts({{"tp: 2, ep: 2", 2}}, ", experts: 4");
}

TEST(TrainingLayouts, OfExpertsTellHowBalancedTheyAre) {
  constexpr std::uint32_t kSteps = 6;
  const auto told = [](const std::string& layout, std::uint32_t world) {
    const Training training(kSteps, layout, ", experts: 4");
    for (const auto& rank : training.start_all(world)) EXPECT_EQ(rank->end(), 0) << rank->text();
    return training.router_losses();
  };
  const std::vector<double> one = told("verify_every: 2", 2);
  ASSERT_EQ(one.size(), kSteps);
  EXPECT_NEAR(one.front(), 1, 0.2) << "small weights make all experts nearly alike";
  const std::vector<double> parts = told("layout: {tp: 2, pp: 2, ep: 2}", 4);
  ASSERT_EQ(parts.size(), kSteps);
  for (std::size_t step = 0; step < kSteps; ++step) EXPECT_NEAR(parts[step], one[step], 1e-3);
}

/// Kills `victim` of `world` ranks at a random moment; all other ranks end well.
void kill_one(const std::string& layout, std::uint32_t world, Rng& rng) {
  constexpr std::uint32_t kSteps = 24;
  const std::string whole = unbroken(layout, world, kSteps).hash;
  for (std::uint32_t victim = 0; victim < world; ++victim) {
    const Training training(kSteps, layout);
    const std::uint64_t step = 1 + rng.below(kSteps - 4);
    const auto later = static_cast<int>(rng.below(8));
    SCOPED_TRACE(testing::Message()
                 << "rank " << victim << " after step " << step << " and " << later << " ms");
    const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(world);
    ASSERT_TRUE(ranks[0]->says(step_line(step, kSteps))) << ranks[0]->text();
    (void)::poll(nullptr, 0, later);
    ranks[victim]->kill();
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      if (rank == victim) continue;
      ASSERT_EQ(ranks[rank]->end(), 0) << rank << "\n" << ranks[rank]->text();
    }
    ASSERT_EQ(training.hash(), whole);
    const std::vector<double> losses = training.losses();
    EXPECT_EQ(losses.size(), kSteps) << "a line a step, however often it was done";
  }
}

TEST(TrainingLayoutKills, RanksThatAreLeftReadTheNewestCheckpointAndEndWithTheSameBits) {
  Rng rng(test_seed());
  for (const auto* layout : {kZero, kHalves, kBoth, kStages}) kill_one(layout, 4, rng);
  kill_one(kAll, 8, rng);
}

TEST(TrainingLayoutKills, ANewcomerAndWhoWasLeftOverAreAnotherReplica) {
  constexpr std::uint32_t kSteps = 120;
  for (const auto* layout : {kHalves, kBoth, kStages}) {
    const std::string whole = unbroken(layout, 4, kSteps).hash;
    const Training training(kSteps, layout);
    const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(4);
    ASSERT_TRUE(ranks[0]->says(step_line(3, kSteps))) << ranks[0]->text();
    ranks[1]->kill();
    ASSERT_TRUE(ranks[0]->says("\"generation\": 2, \"ranks\": 2")) << ranks[0]->text();
    ASSERT_TRUE(ranks[3]->says("waits until there are enough")) << ranks[3]->text();
    const auto newcomer = training.start(1, 4, 1);
    for (const std::uint32_t rank : {0u, 2u, 3u}) {
      ASSERT_EQ(ranks[rank]->end(), 0) << ranks[rank]->text();
    }
    EXPECT_EQ(newcomer->end(), 0) << newcomer->text();
    EXPECT_NE(ranks[0]->text().find("\"generation\": 3, \"ranks\": 4"), std::string::npos)
        << ranks[0]->text();
    EXPECT_NE(ranks[0]->text().find("before ranks change"), std::string::npos) << ranks[0]->text();
    EXPECT_EQ(training.hash(), whole);
  }
}

TEST(TrainingLayoutKills, WhatRanksKeptInMemoryIsNewerThanAnyCheckpoint) {
  constexpr std::uint32_t kSteps = 24;
  for (const auto* layout : {kHalves, kStages, kBoth}) {
    SCOPED_TRACE(layout);
    const std::string whole = unbroken(layout, 4, kSteps).hash;
    Training training(kSteps, layout);
    training.save("every: 1000, peer_every: 3", layout);
    const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(4);
    ASSERT_TRUE(ranks[0]->says(step_line(4, kSteps))) << ranks[0]->text();
    ranks[3]->kill();
    for (const std::uint32_t rank : {0u, 1u}) {
      ASSERT_EQ(ranks[rank]->end(), 0) << ranks[rank]->text();
    }
    EXPECT_NE(ranks[0]->text().find(", which ranks had in memory"), std::string::npos)
        << ranks[0]->text();
    EXPECT_EQ(training.hash(), whole);
  }
}

TEST(TrainingLayoutKills, WithoutAWholeReplicaTheNextAttemptGoesOn) {
  constexpr std::uint32_t kSteps = 24;
  const std::string whole = unbroken(kHalves, 2, kSteps).hash;
  Training training(kSteps, kHalves);
  {
    const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(2);
    ASSERT_TRUE(ranks[0]->says("\"event\": \"checkpoint\"")) << ranks[0]->text();
    ranks[1]->kill();
    EXPECT_EQ(ranks[0]->end(), 1);
    EXPECT_NE(ranks[0]->text().find("1 of the 2 ranks of a replica are left"), std::string::npos)
        << ranks[0]->text();
  }
  training.next_attempt();
  const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(2);
  for (const auto& rank : ranks) ASSERT_EQ(rank->end(), 0) << rank->text();
  EXPECT_NE(ranks[0]->text().find("goes on from step"), std::string::npos) << ranks[0]->text();
  EXPECT_EQ(training.hash(), whole);
}

TEST(TrainingLayouts, GoOnFromWhatAnotherLayoutSaved) {
  constexpr std::uint32_t kSteps = 40;
  const Unbroken one = unbroken("verify_every: 0", 1, kSteps);
  Training training(kSteps, "verify_every: 0");
  std::uint32_t world = 1;
  for (const auto* next : {kHalves, kStages, kBoth, kZero, kAll, "verify_every: 0"}) {
    const auto ranks = training.start_all(world);
    const std::uint64_t step = 5 * static_cast<std::uint64_t>(training.attempt());
    ASSERT_TRUE(ranks[0]->says(step_line(step, kSteps))) << ranks[0]->text();
    for (const auto& rank : ranks) rank->kill(SIGTERM);
    for (const auto& rank : ranks) ASSERT_EQ(rank->end(), 128 + SIGTERM) << rank->text();
    training.next_attempt();
    training.lay_out(next);
    world = next == kBoth || next == kAll ? 4 : 2;
  }
  const auto rank = training.start(0, 1);
  EXPECT_EQ(rank->end(), 0) << rank->text();
  const std::vector<double> losses = training.losses();
  ASSERT_EQ(losses.size(), kSteps);
  for (std::size_t step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(losses[step], one.losses[step], 1e-4) << step;
  }
}

TEST(TrainingLayouts, SayWhatDoesNotFitBeforeAnybodyMeets) {
  const auto says = [](const std::string& layout, std::uint32_t world, const std::string& words) {
    const Training training(8, layout);
    const auto rank = training.start(0, world);
    EXPECT_EQ(rank->end(), 2) << rank->text();
    EXPECT_NE(rank->text().find(words), std::string::npos) << rank->text();
    EXPECT_NE(rank->text().find("spec.yaml:"), std::string::npos) << rank->text();
  };
  says("layout: {tp: 3}", 3, "layout.tp: 2 heads are not 3 equal parts");
  says("layout: {tp: 0}", 1, "layout.tp: at least 1");
  says("layout: {zero: 2}", 1, "layout.zero: expected 0 or 1, found 2");
  says("layout: {pp: 3}", 3, "layout.pp: 2 layers are not 3 equal stages");
  says("layout: {pp: 0}", 1, "layout.pp: at least 1");
  says("layout: {tp: 2, ep: 2}", 2, "layout.ep: expected 1, found 2: the model has no experts");
  says(kAll, 6, "layout: 6 ranks are no whole number of replicas of 4");
  says(kHalves, 3, "layout: 3 ranks are no whole number of replicas of 2");
  says(kHalves, 10, "batch.shards: 4 shards are too few for 5 replicas");
  says("layout: {tp: 2}\nverify_every: 5", 2, "verify_every: expected 0, found 5");
}

TEST(TrainingLayouts, APlanOfOtherRanksAndAModelThatIsTooLargeAreSaidBeforeAnybodyMeets) {
  const Training training(8, "verify_every: 0");
  const auto planned = training.start(
      0, 2, 0, R"(ORRERY_PLAN={"gangs": [{"gang": 0, "plan": {"tp": 2, "dp": 2}}]})");
  EXPECT_EQ(planned->end(), 2);
  EXPECT_NE(planned->text().find("a plan for 4 ranks"), std::string::npos) << planned->text();
  std::string spec = slurp(training.path("spec.yaml"));
  spec.replace(spec.find("width: 32"), 9, "width: 65536");
  std::ofstream(training.path("spec.yaml")) << spec;
  const auto large = training.start(0, 1);
  EXPECT_EQ(large->end(), 2);
  EXPECT_NE(large->text().find("model: a rank needs"), std::string::npos) << large->text();
}

}  // namespace
}  // namespace orrery
