// twin/serving/demand_scaler_test.cpp - what the autoscaler orders after a step of the load.
#include "twin/serving/demand_scaler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "twin/serving/service_run.hpp"
#include "workload/requests/request_generator.hpp"

namespace orrery {
namespace {

/// Four 80 GB accelerators with a model of 70 billion parameters, in round numbers.
constexpr EngineStepCost kCost = {.step_s = 18e-3,
                                  .sequence_s = 8e-5,
                                  .context_token_s = 2e-8,
                                  .prompt_token_s = 1e-4,
                                  .prompt_pair_s = 5e-10};

ServiceSetup setup_of(std::uint32_t replicas) {
  ServiceSetup setup;
  setup.groups.push_back({.name = "a",
                          .count = replicas,
                          .rules = {.sequences_max = 128, .step_tokens = 2048, .kv_blocks = 40'000},
                          .cost = kCost,
                          .cold_start = Duration::seconds(60)});
  setup.targets = {.ttft_s = 3, .tpot_s = 0.1};
  return setup;
}

RequestTrace requests(Seconds span, std::vector<RateWindow> rates, std::uint64_t seed) {
  RequestSpec spec;
  spec.span = span;
  Result<RequestTrace> trace = generate_requests(spec, std::move(rates), seed);
  EXPECT_TRUE(trace);
  return *std::move(trace);
}

// Four replicas serve what comes after the step.
TEST(DemandScaler, AStepIsNotAnsweredByManyMoreReplicasThanServeIt) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    ServiceSetup setup = setup_of(2);
    std::uint32_t most = 0;
    setup.scaler = [&most, scaler = demand_scaler(setup.groups, {.terms = {.max = 32},
                                                                 .ttft_s = setup.targets.ttft_s,
                                                                 .tpot_s = setup.targets.tpot_s})](
                       const ServiceWindow& window) {
      std::vector<std::uint32_t> wanted = scaler(window);
      most = std::max(most, wanted.front());
      return wanted;
    };
    const RequestTrace trace =
        requests(Seconds(1620), {{{}, 4}, {Duration::seconds(1200), 12}}, seed);
    const ServiceFigures figures = run_service(trace, setup);
    EXPECT_LE(most, 9u) << "seed " << seed;
    EXPECT_EQ(figures.all.shed + figures.all.failed, 0u) << "seed " << seed;
  }
}

/// Replicas on two kinds of machines: the second is slower, costs a little more for what it does,
/// and needs less energy.
ServiceSetup two_kinds() {
  ServiceSetup setup = setup_of(3);
  ReplicaGroup& fast = setup.groups.front();
  fast.usd_h = 10;
  fast.watts = 2800;
  fast.watts_idle = 300;
  fast.most = 8;
  ReplicaGroup frugal = fast;
  frugal.name = "frugal";
  frugal.count = 4;
  frugal.cost.step_s *= 1.5;
  frugal.cost.sequence_s *= 2;
  frugal.cost.context_token_s *= 2;
  frugal.cost.prompt_token_s *= 2;
  frugal.cost.prompt_pair_s *= 2;
  frugal.usd_h = 5.1;
  frugal.watts = 600;
  frugal.watts_idle = 100;
  frugal.most = 16;
  setup.groups.push_back(frugal);
  return setup;
}

struct MixedRun {
  std::vector<std::vector<std::uint32_t>> orders;  ///< what was wanted at each tick
  ServiceFigures figures;
};

MixedRun run_mixed(const RequestTrace& trace, double usd_per_joule) {
  ServiceSetup setup = two_kinds();
  MixedRun run;
  setup.scaler =
      [&run, scaler = demand_scaler(setup.groups, {.terms = {.max = 32},
                                                   .ttft_s = setup.targets.ttft_s,
                                                   .tpot_s = setup.targets.tpot_s,
                                                   .power = {.usd_per_joule = usd_per_joule}})](
          const ServiceWindow& window) {
        run.orders.push_back(scaler(window));
        return run.orders.back();
      };
  run.figures = run_service(trace, setup);
  return run;
}

TEST(DemandScaler, OnTwoKindsOfMachinesTwoRunsOrderAlikeBitForBit) {
  const RequestTrace trace = requests(Seconds(600), {{{}, 3}, {Duration::seconds(300), 9}}, 1);
  for (const double usd_per_joule : {0.0, 1e-5}) {
    const MixedRun first = run_mixed(trace, usd_per_joule);
    const MixedRun again = run_mixed(trace, usd_per_joule);
    EXPECT_EQ(again.orders, first.orders);
    EXPECT_EQ(again.figures.replicas.joules, first.figures.replicas.joules);
    EXPECT_EQ(again.figures.replicas.usd, first.figures.replicas.usd);
    for (const std::vector<std::uint32_t>& wanted : first.orders) EXPECT_LE(wanted[0], 8u);
    EXPECT_NE(first.orders.front(), first.orders.back());
  }
}

}  // namespace
}  // namespace orrery
