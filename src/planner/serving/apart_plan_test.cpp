#include "planner/serving/apart_plan.hpp"

#include <cmath>

#include "planner/serving/serving_test.hpp"

namespace orrery {
namespace {

ServingAnswer plan_of(const ServingQuestion& question) {
  Result<ServingAnswer> answer = plan_serving(serving_facts(), question);
  EXPECT_TRUE(answer) << (answer ? "" : answer.error().text());
  return answer ? *std::move(answer) : ServingAnswer{};
}

double dollars_of(const ServingAnswer& answer) {
  return answer.apart.empty() ? INFINITY : *answer.apart.front().quote.dollars_per_million;
}

TEST(ApartPlanner, APlanKeepsTheLimitsAndServesTheRate) {
  ServingQuestion question =
      serving_question("llama-3.1-70b", {serving_on("h100"), serving_on("b200", 64)});
  question.limits = {.ttft = Seconds(1), .tpot = Seconds(0.04)};
  for (const double rate : {0.3, 7.0, 90.0}) {
    question.rate = rate;
    const ServingAnswer answer = plan_of(question);
    EXPECT_EQ(answer.apart.size(), 2u);
    for (const ApartOffer& offer : answer.apart) {
      EXPECT_LE(offer.figures.ttft, Seconds(1));
      EXPECT_LE(offer.figures.tpot, Seconds(0.04));
      EXPECT_EQ(offer.requests, rate);
      EXPECT_GE(offer.requests_max, rate);
      EXPECT_LE(offer.figures.busy, kBusyMax * (1 + 1e-9));
      EXPECT_LE(offer.figures.answer.batch, offer.concurrency);
      EXPECT_NEAR(offer.figures.answer.requests * offer.answers.replicas, rate, 1e-3 * rate);
      const auto& there = question.machines[offer.machine].accelerators;
      if (there) EXPECT_LE(offer.accelerators(), static_cast<double>(*there));
    }
  }
}

TEST(ApartPlanner, WithoutARateTheMachineIsFilled) {
  ServingQuestion question = serving_question("llama-3.1-8b", {});
  question.limits.tpot = Seconds(0.02);
  double before = INFINITY;
  for (const std::uint64_t count : {2u, 3u, 8u, 16u, 40u, 200u}) {
    question.machines = {serving_on("h100", count)};
    const ServingAnswer answer = plan_of(question);
    ASSERT_EQ(answer.apart.size(), 1u) << count;
    EXPECT_LE(answer.apart[0].accelerators(), static_cast<double>(count));
    EXPECT_EQ(answer.apart[0].requests, answer.apart[0].requests_max);
    const double cost = dollars_of(answer);
    EXPECT_LE(cost, before * (1 + 1e-9)) << count;
    before = cost;
  }
  question.machines = {serving_on("h100", 1)};
  EXPECT_TRUE(plan_of(question).apart.empty());  // it takes an instance of each kind
}

TEST(ApartPlanner, ASlowerNetworkOrTighterLimitIsNeverCheaper) {
  ServingQuestion question = serving_question("llama-3.1-70b", {serving_on("h100")});
  question.rate = 40;
  question.limits = {.ttft = Seconds(2), .tpot = Seconds(0.05)};
  double before = dollars_of(plan_of(question));
  for (int i = 0; i < 6; ++i) {
    for (Tier& tier : question.machines[0].joined->tiers) tier.quality /= 4;
    const double cost = dollars_of(plan_of(question));
    EXPECT_GE(cost, before * (1 - 1e-9));
    before = cost;
  }
  EXPECT_EQ(before, INFINITY);  // the cache of a prompt takes longer than --ttft
  question.machines = {serving_on("h100")};
  before = 0;
  for (double limit = 0.2; limit > 0.015; limit /= 1.5) {
    question.limits.tpot = Seconds(limit);
    const double cost = dollars_of(plan_of(question));
    EXPECT_GE(cost, before * (1 - 1e-9)) << limit;
    before = cost;
  }
}

TEST(ApartPlanner, TightTokenTimesArePaidForByJointInstancesAlone) {
  // Long prompts delay tokens: joint instances must keep small batches, those apart need not.
  ServingQuestion question = serving_question("llama-3.1-70b", {serving_on("h100")});
  question.input = 8000;
  question.output = 200;
  question.rate = 50;
  question.formats = {NumberFormat::kFp8};
  question.limits = {.ttft = Seconds(3), .tpot = Seconds(0.02)};
  const ServingAnswer tight = plan_of(question);
  EXPECT_LT(dollars_of(tight), *tight.plans.front().quote.dollars_per_million);
  question.limits = {};
  const ServingAnswer loose = plan_of(question);
  const auto worth = [](const ServingAnswer& answer) {
    return dollars_of(answer) / *answer.plans.front().quote.dollars_per_million;
  };
  EXPECT_GT(worth(loose), worth(tight));
}

TEST(ApartPlanner, NothingIsApartWithoutAnAnswerANetworkOrAnEngine) {
  const auto apart = [](auto change) {
    ServingQuestion question = serving_question("llama-3.1-8b", {serving_on("h100", 8)});
    change(question);
    return plan_of(question).apart.size();
  };
  EXPECT_EQ(apart([](ServingQuestion&) {}), 1u);
  EXPECT_EQ(apart([](ServingQuestion& q) { q.output = 1; }), 0u);
  EXPECT_EQ(apart([](ServingQuestion& q) { q.machines[0].joined.reset(); }), 0u);
  EXPECT_EQ(apart([](ServingQuestion& q) { q.engine = "deepspeed"; }), 0u);
}

TEST(ApartPlanner, TheTwoKindsPayAsMuchAsTheirAccelerators) {
  const ServingQuestion question = serving_question("llama-3.1-8b", {serving_on("h100", 8)});
  const ServingAnswer answer = plan_of(question);
  ASSERT_EQ(answer.apart.size(), 1u);
  const ApartOffer& apart = answer.apart[0];
  const ServingOffer& joint = answer.plans[0];
  EXPECT_NEAR(apart.quote.price->value() / apart.accelerators(),
              joint.quote.price->value() / joint.accelerators(), 1e-12);
  EXPECT_GT(apart.quote.power->value(), 0);
  EXPECT_NEAR(*apart.quote.dollars_per_million,
              apart.quote.price->value() / (apart.requests * question.output) * 1e6, 1e-9);
}

}  // namespace
}  // namespace orrery
