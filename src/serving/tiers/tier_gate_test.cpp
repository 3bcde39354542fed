#include "serving/tiers/tier_gate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/numbers/rng.hpp"
#include "serving/tiers/tier_model.hpp"

namespace orrery {
namespace {

constexpr double kSmallCost = 0.1;  ///< of an answer of the small model, where the large one's is 1
constexpr QualityTerms kTerms{.loss_max = 0.05, .delta = 0.05, .audit = 0.05};

enum class SmallModel : std::uint8_t { kAsFitted, kDrifted };

/// Tasks of which three in four are easy. The features show the difficulty with some noise, beside
/// others that show nothing.
class Tasks {
 public:
  explicit Tasks(std::uint64_t seed) : rng_(seed) {}

  LabelledTask next(SmallModel model) {
    const double hard = rng_.uniform() < 0.75 ? 0.35 * rng_.uniform() : 0.4 + 0.6 * rng_.uniform();
    LabelledTask task;
    task.features[0] = hard + 0.05 * (rng_.uniform() - 0.5);
    task.features[1] = std::exp(hard) + 0.2 * (rng_.uniform() - 0.5);
    for (std::size_t i = 2; i + 1 < kTierFeatures; ++i) task.features[i] = rng_.uniform();
    const double good =
        model == SmallModel::kDrifted ? 0.3 : 1 / (1 + std::exp(14 * (hard - 0.55)));
    task.good = rng_.uniform() < good;
    return task;
  }

 private:
  Rng rng_;
};

struct TierOutcome {
  bool broken = false;                  ///< at any time more answers were worse than promised
  double cost = 0;                      ///< of a request, where the large model alone costs 1
  std::uint64_t audits_to_retreat = 0;  ///< after the drift
  bool retreated = false;
  bool retreated_early = false;
};

TierOutcome serve(std::uint64_t seed, SmallModel second_half) {
  constexpr int kRequests = 20'000;
  Tasks tasks(seed);
  Rng draws(seed + 2000);
  TierGate gate({.quality = kTerms});
  TierOutcome outcome;
  std::uint64_t worse = 0;
  std::uint64_t audited_before = 0;
  for (int i = 0; i < kRequests; ++i) {
    const bool drifted = second_half == SmallModel::kDrifted && i >= kRequests / 2;
    const LabelledTask task = tasks.next(drifted ? SmallModel::kDrifted : SmallModel::kAsFitted);
    const TierChoice choice = gate.choose(task.features, draws.uniform());
    gate.add_answer();
    if (choice.compares)
      gate.settle(choice, task.features,
                  task.good ? AnswerQuality::kAsGood : AnswerQuality::kWorse);
    worse += choice.is_small() && !task.good ? 1 : 0;
    const bool both = choice.compares;
    outcome.cost += (choice.is_small() || both ? kSmallCost : 0) + (!choice.is_small() || both);
    const double most = kTerms.loss_max * static_cast<double>(i + 1);
    outcome.broken = outcome.broken || static_cast<double>(worse) > most;
    if (!drifted) {
      audited_before = gate.ledger().audited();
      outcome.retreated_early = gate.retreats() > 0;
    } else if (!outcome.retreated && gate.learning()) {
      // By a retreat, or as what was learnt since lets no request pass.
      outcome.retreated = true;
      outcome.audits_to_retreat = gate.ledger().audited() - audited_before;
    }
  }
  outcome.cost /= kRequests;
  return outcome;
}

constexpr std::uint64_t kRuns = 60;

TEST(TierGate, KeepsThePromiseAndSavesOnAnEasyMix) {
  std::uint64_t broken = 0;
  std::uint64_t early = 0;
  std::vector<double> costs;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    const TierOutcome outcome = serve(seed, SmallModel::kAsFitted);
    broken += outcome.broken ? 1 : 0;
    early += outcome.retreated_early ? 1 : 0;
    costs.push_back(outcome.cost);
  }
  std::ranges::sort(costs);
  EXPECT_LE(broken * 20, kRuns);
  EXPECT_LE(early * 20, kRuns) << "retreats without a reason";
  EXPECT_LT(costs[costs.size() / 2], 0.6) << "the cut is to be 40 % or more";
  RecordProperty("median cost", std::to_string(costs[costs.size() / 2]));
  RecordProperty("broken", std::to_string(broken));
}

TEST(TierGate, RetreatsWhenTheSmallModelBecomesWorse) {
  std::uint64_t broken = 0;
  std::uint64_t slowest = 0;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    const TierOutcome outcome = serve(seed, SmallModel::kDrifted);
    broken += outcome.broken ? 1 : 0;
    EXPECT_TRUE(outcome.retreated) << "seed " << seed;
    slowest = std::max(slowest, outcome.audits_to_retreat);
  }
  EXPECT_LE(broken * 20, kRuns);
  EXPECT_LE(slowest, 200u);
  RecordProperty("most audits", std::to_string(slowest));
  RecordProperty("broken", std::to_string(broken));
}

TEST(TierGate, ComesBackOnceComparisonsFindTheModelGood) {
  TierGate gate({.quality = kTerms});
  Rng draws(7);
  const auto answer = [&](double worse_rate) {
    const TierFeatures features{draws.uniform()};
    const TierChoice choice = gate.choose(features, draws.uniform());
    gate.add_answer();
    if (choice.compares) {
      const bool worse = draws.uniform() < worse_rate;
      gate.settle(choice, features, worse ? AnswerQuality::kWorse : AnswerQuality::kAsGood);
    }
    return choice;
  };
  const auto small_of = [&](int requests, double worse_rate) {
    int small = 0;
    for (int i = 0; i < requests; ++i) small += answer(worse_rate).is_small() ? 1 : 0;
    return small;
  };
  small_of(4000, 0.01);
  EXPECT_FALSE(gate.learning());
  EXPECT_GT(small_of(1000, 0.01), 500);
  small_of(4000, 0.9);
  EXPECT_EQ(gate.retreats(), 1u);
  EXPECT_EQ(small_of(4000, 0.9), 0) << "learning finds no threshold";
  small_of(8000, 0);
  EXPECT_GT(small_of(1000, 0), 500);
}

TEST(TierGate, LearnsFromAShareOfTheRequests) {
  TierGate gate({.quality = kTerms, .probe = 0.25, .tasks = 40});
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(gate.choose({}, 0.25).compares);
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(gate.learning());
    const TierChoice choice = gate.choose({}, 0.2);
    ASSERT_TRUE(choice.compares);
    EXPECT_EQ(choice.reason, TierReason::kLearning);
    gate.settle(choice, {}, AnswerQuality::kAsGood);
  }
  EXPECT_TRUE(gate.learning()) << "20 of 20 do not prove 97 %";
  EXPECT_EQ(gate.ledger().small(), 0u);
}

}  // namespace
}  // namespace orrery
