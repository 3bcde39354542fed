// orrery-train as gangs of real processes that die: whatever happens to them, the weights end with
// the same bits. ORRERY_TRAINING_KILLS (10) is the number of kills.
#include <set>

#include "tests/end_to_end/test_seed.hpp"
#include "tests/end_to_end/training_run.hpp"

namespace orrery {

const char* train_program() { return ORRERY_TRAIN; }

namespace {

TEST(TrainingKills, AtRandomMomentsLeaveTheSameBits) {
  constexpr std::uint32_t kSteps = 24;
  const char* wanted = std::getenv("ORRERY_TRAINING_KILLS");
  const int kills = wanted == nullptr ? 10 : std::atoi(wanted);
  const std::string whole = hash_of_one_rank(kSteps);
  ASSERT_EQ(whole.size(), 64u);
  Rng rng(test_seed());
  int killed = 0;
  for (int i = 0; i < kills; ++i) {
    const Training training(kSteps);
    const std::uint64_t victim = rng.below(4);
    const std::uint64_t step = 1 + rng.below(kSteps - 4);
    const auto later = static_cast<int>(rng.below(8));
    SCOPED_TRACE(testing::Message()
                 << "rank " << victim << " after step " << step << " and " << later << " ms");
    const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(4);
    ASSERT_TRUE(ranks[0]->says(step_line(step, kSteps))) << ranks[0]->text();
    (void)::poll(nullptr, 0, later);
    ranks[victim]->kill();
    // On a fast machine it may have finished before.
    const int end = ranks[victim]->end();
    EXPECT_TRUE(end == 128 + SIGKILL || end == 0) << end;
    if (end != 0) ++killed;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      if (rank == victim) continue;
      ASSERT_EQ(ranks[rank]->end(), 0) << ranks[rank]->text();
    }
    ASSERT_EQ(training.hash(), whole);
  }
  std::printf("%d of %d ranks were killed before they were done\n", killed, kills);
  EXPECT_GT(2 * killed, kills);
}

TEST(TrainingKills, OfOneJobDoNotDisturbAnotherOfThisMachine) {
  constexpr std::uint32_t kSteps = 24;
  const std::string whole = hash_of_one_rank(kSteps);
  const auto shared_memory = [] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      if (entry.path().filename().string().find("orrery") != std::string::npos) {
        names.insert(entry.path());
      }
    }
    return names;
  };
  const std::set<std::string> before = shared_memory();
  const Training one(kSteps);
  Training other(kSteps);
  other.meet_at(one.port() + 3);  // one past the ports of the first
  const std::vector<std::unique_ptr<Rank>> dying = one.start_all(3);
  const std::vector<std::unique_ptr<Rank>> living = other.start_all(3);
  ASSERT_TRUE(dying[0]->says(step_line(2, kSteps))) << dying[0]->text();
  for (const auto& rank : dying) rank->kill();
  for (const auto& rank : living) {
    ASSERT_EQ(rank->end(), 0) << rank->text();
    EXPECT_EQ(rank->text().find("regrouped"), std::string::npos) << rank->text();
  }
  EXPECT_EQ(other.hash(), whole);
  EXPECT_EQ(shared_memory(), before) << "nothing is left of who was killed";
}

/// Two clusters on one machine whose first jobs have the same name and port.
TEST(TrainingKills, OfAnotherJobOfItsNameIsNotTakenIn) {
  constexpr std::uint32_t kSteps = 24;
  const std::string whole = hash_of_one_rank(kSteps);
  const Training one(kSteps);
  Training other(kSteps, "verify_every: 3");
  other.meet_at(one.port());
  const std::unique_ptr<Rank> first = one.start(0, 2);
  const std::unique_ptr<Rank> astray = other.start(1, 2);
  ASSERT_TRUE(astray->says("tokens of bytes")) << astray->text();
  (void)::poll(nullptr, 0, 300);  // to knock
  const std::unique_ptr<Rank> second = one.start(1, 2);
  for (Rank* rank : {first.get(), second.get()}) {
    ASSERT_EQ(rank->end(), 0) << rank->text();
    EXPECT_EQ(rank->text().find("regrouped"), std::string::npos) << rank->text();
  }
  EXPECT_EQ(astray->text().find("step "), std::string::npos) << astray->text();
  EXPECT_EQ(one.hash(), whole);
}

TEST(TrainingKills, WhoComputesAWrongGradientIsNamedAndLeftOut) {
  constexpr std::uint32_t kSteps = 24;
  const std::string whole = hash_of_one_rank(kSteps);
  const Training training(kSteps);
  std::vector<std::unique_ptr<Rank>> ranks;
  ranks.reserve(4);
  // Step 14, counted from 0, is the third that is checked: shard 2, of rank 2.
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    ranks.push_back(training.start(rank, 4, 0, rank == 2 ? "ORRERY_REHEARSE_FLIP=14" : "NOTHING="));
  }
  for (const std::uint32_t rank : {0u, 1u, 3u}) {
    ASSERT_EQ(ranks[rank]->end(), 0) << ranks[rank]->text();
  }
  EXPECT_EQ(ranks[2]->end(), 1);
  EXPECT_NE(ranks[2]->text().find("the result of this machine in step 15"), std::string::npos)
      << ranks[2]->text();
  EXPECT_NE(slurp(training.path("out/events.jsonl")).find(R"("shard": 2, "ranks": [2])"),
            std::string::npos);
  EXPECT_EQ(training.hash(), whole);
}

TEST(TrainingKills, ANewcomerTakesThePlaceOfTheDead) {
  constexpr std::uint32_t kSteps = 80;
  const std::string whole = hash_of_one_rank(kSteps);
  const Training training(kSteps);
  const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(4);
  ASSERT_TRUE(ranks[0]->says(step_line(3, kSteps))) << ranks[0]->text();
  ranks[1]->kill();
  ASSERT_TRUE(ranks[0]->says("regrouped")) << ranks[0]->text();
  const auto newcomer = training.start(1, 4, 1);
  for (const std::uint32_t rank : {0u, 2u, 3u}) {
    ASSERT_EQ(ranks[rank]->end(), 0) << ranks[rank]->text();
  }
  EXPECT_EQ(newcomer->end(), 0) << newcomer->text();
  EXPECT_NE(ranks[0]->text().find("\"generation\": 3, \"ranks\": 4"), std::string::npos)
      << ranks[0]->text();
  EXPECT_EQ(training.hash(), whole);
}

TEST(TrainingKills, ANewcomerOfAnotherSpecIsTurnedAway) {
  constexpr std::uint32_t kSteps = 80;
  const std::string whole = hash_of_one_rank(kSteps);
  const Training training(kSteps);
  const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(3);
  ASSERT_TRUE(ranks[0]->says(step_line(3, kSteps))) << ranks[0]->text();
  // The configuration is changed, and a node dies.
  training.lay_out("verify_every: 5\noptimizer: {peak_rate: 0.01}");
  ranks[1]->kill();
  ASSERT_TRUE(ranks[0]->says("regrouped")) << ranks[0]->text();
  const auto newcomer = training.start(1, 3, 1);
  EXPECT_EQ(newcomer->end(), 1) << newcomer->text();
  EXPECT_NE(newcomer->text().find("spec.yaml: changed since attempt 1 began"), std::string::npos)
      << newcomer->text();
  for (const std::uint32_t rank : {0u, 2u}) {
    ASSERT_EQ(ranks[rank]->end(), 0) << ranks[rank]->text();
  }
  EXPECT_EQ(training.hash(), whole);
}

TEST(TrainingKills, OfRanksThatShareTheirTokensLeaveTheSameBits) {
  constexpr std::uint32_t kSteps = 24;
  Training alone(kSteps);
  alone.take_pieces("300");
  const auto rank = alone.start(0, 1);
  ASSERT_EQ(rank->end(), 0) << rank->text();
  Training training(kSteps);
  training.take_pieces("300");
  const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(3);
  ASSERT_TRUE(ranks[0]->says(step_line(5, kSteps))) << ranks[0]->text();
  ranks[1]->kill();
  // Reports of the killed rank about its tokens may be lost with it.
  int found = 0;
  for (const auto* each : {&ranks[0], &ranks[2]}) {
    EXPECT_EQ((*each)->end(), 0) << (*each)->text();
    const std::string& text = (*each)->text();
    found += text.find("(300 kinds; found on this node)") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(found, 1) << "one of three made them";
  EXPECT_EQ(training.hash(), alone.hash());
}

TEST(TrainingKills, WhoComesWhenAllIsDoneHasNothingToDo) {
  const Training training(8);
  EXPECT_EQ(training.start(0, 1)->end(), 0);
  const auto late = training.start(1, 2, 1);
  EXPECT_EQ(late->end(), 0) << late->text();
}

TEST(TrainingKills, OfAllRanksGoOnFromTheNewestCheckpoint) {
  constexpr std::uint32_t kSteps = 24;
  const std::string whole = hash_of_one_rank(kSteps);
  Training training(kSteps);
  {
    const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(3);
    ASSERT_TRUE(ranks[0]->says("\"event\": \"checkpoint\"")) << ranks[0]->text();
    for (auto& rank : ranks) rank->kill();
  }
  training.next_attempt();
  const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(2);
  for (auto& rank : ranks) ASSERT_EQ(rank->end(), 0) << rank->text();
  EXPECT_NE(ranks[0]->text().find("goes on from step"), std::string::npos) << ranks[0]->text();
  EXPECT_EQ(training.hash(), whole);
}

TEST(Training, AskedToEndSavesWhatItHasDone) {
  constexpr std::uint32_t kSteps = 40;
  const std::string whole = hash_of_one_rank(kSteps);
  Training training(kSteps);
  {
    const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(3);
    ASSERT_TRUE(ranks[0]->says(step_line(3, kSteps))) << ranks[0]->text();
    for (auto& rank : ranks) rank->kill(SIGTERM);
    for (auto& rank : ranks) EXPECT_EQ(rank->end(), 128 + SIGTERM) << rank->text();
    EXPECT_NE(ranks[0]->text().find("\"event\": \"checkpoint\""), std::string::npos)
        << ranks[0]->text();
  }
  training.next_attempt();
  const auto rank = training.start(0, 1);
  EXPECT_EQ(rank->end(), 0) << rank->text();
  EXPECT_EQ(training.hash(), whole);
}

TEST(Training, SaysWhatIsWrongBeforeItMeetsAnybody) {
  const Training training(8);
  std::filesystem::remove(training.path("text"));
  const auto missing = training.start(1, 2);
  EXPECT_EQ(missing->end(), 2);
  EXPECT_NE(missing->text().find(training.path("text")), std::string::npos) << missing->text();
  std::ofstream(training.path("text")) << "short";
  const auto small = training.start(1, 2);
  EXPECT_EQ(small->end(), 2) << small->text();
  std::ofstream(training.path("text")) << std::string(10'000, 'x');
  const auto many = training.start(4, 5);
  EXPECT_EQ(many->end(), 2);
  EXPECT_NE(many->text().find("batch.shards"), std::string::npos) << many->text();
}

}  // namespace
}  // namespace orrery
