#include "planner/economics.hpp"

#include <gtest/gtest.h>

#include "hardware/builtin_catalog.hpp"
#include "perf/builtin_calibration.hpp"

namespace orrery {
namespace {

const Catalog& catalog() {
  static const Catalog loaded = *Catalog::load(builtin_catalog(), {});
  return loaded;
}
const PlannerFacts& facts() {
  static const Calibration calibration = *Calibration::load(builtin_calibration(), {});
  static const PlannerFacts all{catalog(), calibration};
  return all;
}

Machine machine(std::string_view type, std::uint64_t accelerators) {
  return *machine_of(catalog(), {.accelerator = *catalog().require<Accelerator>(type),
                                 .accelerators = accelerators});
}

const ModelWork kModel{.parameters = 70e9};
const RunSize kRun{.length = 1e12, .step_length = 4e6, .step_flops = 1.8e18};

StepCost step() {
  StepCost cost;
  cost.terms[Term::kMatmul] = 6;
  cost.terms[Term::kElementwise] = 1;
  cost.terms[Term::kDataParallel] = 1;
  cost.terms[Term::kPipelineBubble] = 2;
  cost.seconds = cost.terms.total();
  return cost;
}

TEST(Economics, RentIsPaidByTheHourOfEveryAccelerator) {
  EconomicsOptions options;
  options.price.rent = DollarsPerSecond(3.6 / 3600);
  const Economics economics = *economics_of(facts(), machine("h100", 64), kModel, options);
  const PlanQuote quote = quote_of(economics, step(), kRun);
  EXPECT_NEAR(quote.step_cost->value(), 10 * 64 * 3.6 / 3600, 1e-9);
  EXPECT_NEAR(*quote.run_steps, 250'000, 1e-9);
  const double hours = 250'000 * 10 / quote.goodput->effective / 3600;
  EXPECT_NEAR(quote.run_cost->value(), hours * 64 * 3.6, 1e-6 * hours * 64 * 3.6);
}

TEST(Economics, AnOwnedMachinePaysItsElectricityAtTheMeter) {
  EconomicsOptions options;
  options.basis = PriceBasis::kOwned;
  options.site.pue = 1.5;
  options.site.electricity = DollarsPerJoule(0.1 / 3.6e6);
  const Economics economics = *economics_of(facts(), machine("h100", 8), kModel, options);
  const PlanQuote quote = quote_of(economics, step(), kRun);
  const Dollars hire = economics.price.value->hire * Seconds(10) * 8;
  const double electricity = quote.step_energy->value() * 1.5 * 0.1 / 3.6e6;
  EXPECT_NEAR((*quote.step_cost - hire).value(), electricity, 1e-9);
}

TEST(Economics, WorkDrawsMoreThanWaitingAndNothingLessThanItsFloor) {
  const Economics economics = *economics_of(facts(), machine("h100", 8), kModel, {});
  StepCost waiting;
  waiting.terms[Term::kPipelineBubble] = 10;
  waiting.seconds = 10;
  const Joules idle = *step_energy(economics, waiting);
  EXPECT_GT(*step_energy(economics, step()), idle * 1.5);
  EXPECT_GE(idle.value(), floor_of_energy(economics, 10).value() * (1 - 1e-12));
}

TEST(Economics, WhatIsNotPublishedIsLeftOutWithItsReason) {
  const Economics economics = *economics_of(facts(), machine("tpu-v5p", 64), kModel, {});
  EXPECT_FALSE(economics.power.value);
  EXPECT_NE(economics.power.missing.find("TDP"), std::string::npos);
  const PlanQuote quote = quote_of(economics, step(), kRun);
  EXPECT_FALSE(quote.step_energy || quote.joules_per_flop || quote.run_energy);
  EXPECT_TRUE(quote.step_cost);
  EconomicsOptions options;
  options.power.tdp = Watts(500);
  EXPECT_TRUE(economics_of(facts(), machine("tpu-v5p", 64), kModel, options));
}

TEST(Economics, MoreNodesFailMoreOften) {
  const auto effective = [&](std::uint64_t accelerators) {
    const Economics economics = *economics_of(facts(), machine("h100", accelerators), kModel, {});
    return quote_of(economics, step(), kRun).goodput->effective;
  };
  EXPECT_GT(effective(256), effective(4096));
  EXPECT_GT(effective(4096), effective(16384));
  EXPECT_GT(effective(16384), 0.8);
}

TEST(Economics, UnknownNamesAreWrongInput) {
  EconomicsOptions options;
  options.failures = "llama33";
  const auto failures = economics_of(facts(), machine("h100", 8), kModel, options);
  ASSERT_FALSE(failures);
  EXPECT_NE(failures.error().message.find("llama3"), std::string::npos);
  options.failures.reset();
  options.site.region = "Atlantis";
  EXPECT_FALSE(economics_of(facts(), machine("h100", 8), kModel, options));
}

TEST(Economics, ACapSlowsTheMachineAlongTheCurve) {
  Machine capped = machine("h100", 8);
  const Machine free = capped;
  ASSERT_TRUE(apply_power_cap(facts(), {.cap = Watts(400)}, capped));
  EXPECT_LT(capped.peak_of(NumberFormat::kBf16), free.peak_of(NumberFormat::kBf16));
  EXPECT_GT(capped.peak_of(NumberFormat::kBf16), 0.4 * free.peak_of(NumberFormat::kBf16));
  EXPECT_LT(capped.memory_bandwidth, free.memory_bandwidth);
  EXPECT_EQ(capped.memory, free.memory);
  Machine same = free;
  ASSERT_TRUE(apply_power_cap(facts(), {}, same));
  EXPECT_EQ(same.peak, free.peak);
  EXPECT_FALSE(apply_power_cap(facts(), {.cap = Watts(10)}, same));
}

}  // namespace
}  // namespace orrery
