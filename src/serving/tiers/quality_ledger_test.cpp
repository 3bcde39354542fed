#include "serving/tiers/quality_ledger.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

TEST(QualityLedger, BeginsWithTheLargeModel) {
  QualityLedger ledger({.loss_max = 0.05, .delta = 0.05, .audit = 0.05});
  EXPECT_FALSE(ledger.allows()) << "one of one answers is more than 5 %";
  EXPECT_EQ(ledger.bound(), 0);
  for (int i = 0; i < 20; ++i) ledger.add_answer();
  EXPECT_TRUE(ledger.allows()) << "one of 21 is not";
  ledger.add_small(Audit::kNone);
  ledger.add_answer();
  EXPECT_EQ(ledger.bound(), 1) << "no more can be worse than the small model answered";
  EXPECT_FALSE(ledger.allows());
}

TEST(QualityLedger, AnAuditCountsAsLostUntilItHasEnded) {
  QualityLedger ledger({.loss_max = 0.1, .delta = 0.05, .audit = 0.2});
  for (int i = 0; i < 2000; ++i) ledger.add_answer();
  for (int i = 0; i < 500; ++i) ledger.add_small(Audit::kNone);
  const double before = ledger.bound();
  ledger.add_small(Audit::kBegun);
  EXPECT_GT(ledger.bound(), before);
  ledger.settle(AnswerQuality::kAsGood);
  EXPECT_DOUBLE_EQ(ledger.bound(), before);
  ledger.add_small(Audit::kBegun);
  ledger.settle(AnswerQuality::kWorse);
  EXPECT_GT(ledger.bound(), before);
  EXPECT_EQ(ledger.lost(), 1u);
  EXPECT_EQ(ledger.audited(), 2u);
}

TEST(QualityLedger, ARequestWithoutAnAnswerAllowsNothing) {
  QualityLedger ledger({.loss_max = 0.05, .delta = 0.05, .audit = 0.05});
  for (int i = 0; i < 20; ++i) ledger.add_answer();
  ASSERT_TRUE(ledger.allows());
  ledger.add_small(Audit::kNone);  // and then its tenant's limit refuses it
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(ledger.allows());
}

TEST(QualityLedger, CountsExactlyWhereEveryAnswerIsAudited) {
  QualityLedger ledger({.loss_max = 0.5, .delta = 0.05, .audit = 1});
  for (int i = 0; i < 10; ++i) {
    ledger.add_small(Audit::kBegun);
    ledger.settle(i % 5 == 0 ? AnswerQuality::kWorse : AnswerQuality::kAsGood);
  }
  EXPECT_EQ(ledger.bound(), 2);
}

/// Answers of a small model that is worse with the given probability, for the first and the second
/// half of the requests; returns whether the promise was broken at any time.
struct Outcome {
  bool broken = false;
  double small = 0;  ///< share of the answers
};
Outcome run(const QualityTerms& terms, std::uint64_t seed, double first, double second) {
  constexpr int kRequests = 10'000;
  Rng rng(seed);
  QualityLedger ledger(terms);
  std::uint64_t worse = 0;
  Outcome outcome;
  for (int i = 0; i < kRequests; ++i) {
    if (!ledger.allows()) {
      ledger.add_answer();
      continue;
    }
    const bool is_worse = rng.uniform() < (i < kRequests / 2 ? first : second);
    const bool audited = rng.uniform() < terms.audit;
    worse += is_worse ? 1 : 0;
    ledger.add_small(audited ? Audit::kBegun : Audit::kNone);
    ledger.add_answer();
    if (audited) ledger.settle(is_worse ? AnswerQuality::kWorse : AnswerQuality::kAsGood);
    const auto most = terms.loss_max * static_cast<double>(ledger.answers());
    outcome.broken = outcome.broken || static_cast<double>(worse) > most;
  }
  outcome.small = static_cast<double>(ledger.small()) / kRequests;
  return outcome;
}

TEST(QualityLedger, KeepsThePromiseWhateverTheModelDoes) {
  // The last pair drifts: from a model that is hardly ever worse to one that mostly is.
  constexpr std::array<std::array<double, 2>, 4> kRates{
      {{0.01, 0.01}, {0.05, 0.05}, {0.3, 0.3}, {0.01, 0.8}}};
  for (const auto& [first, second] : kRates) {
    for (const double audit : {0.02, 0.2}) {
      int broken = 0;
      for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        broken +=
            run({.loss_max = 0.05, .delta = 0.05, .audit = audit}, seed, first, second).broken;
      }
      EXPECT_LE(broken, 3) << first << " " << second << " audit " << audit;
    }
  }
}

TEST(QualityLedger, LetsAGoodSmallModelAnswerMost) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const QualityTerms terms{.loss_max = 0.05, .delta = 0.05, .audit = 0.05};
    EXPECT_GT(run(terms, seed, 0.01, 0.01).small, 0.5) << "seed " << seed;
    EXPECT_LT(run(terms, seed, 0.5, 0.5).small, 0.25) << "seed " << seed;
  }
}

}  // namespace
}  // namespace orrery
