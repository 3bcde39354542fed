#include "twin/figures/bill_check.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"
#include "twin/facts_test.hpp"
#include "twin/simulation.hpp"
#include "workload/trace/trace_file.hpp"

namespace orrery {
namespace {

/// Two sites of unlike prices: one owns its nodes and pays electricity, the other rents them.
constexpr const char* kTwoSites = R"(apiVersion: orrery/v1
kind: Fleet
name: two-sites
sites:
- name: north
  pue: 1.1
  electricity: $0.20/kWh
  ownership: owned
  halls: [{name: hall, pods: [{name: pod, racks: [
    {name: rack, count: 2, cooling: in-row-or-dense-air, nodes: [{type: dgx-h100, count: 3}]}]}]}]
  fabrics: [{type: ib-ndr, topology: fat-tree}]
- name: south
  pue: 1.4
  price_factor: 0.8
  halls: [{name: hall, pods: [{name: pod, racks: [
    {name: rack, cooling: in-row-or-dense-air, nodes: [
      {type: dgx-h100, count: 3}, {type: dgx-a100-80g, count: 4}]}]}]}]
  fabrics:
  - {name: new, type: ib-ndr, topology: fat-tree, node_types: [dgx-h100]}
  - {name: old, type: ib-hdr, topology: fat-tree, node_types: [dgx-a100-80g]}
wan:
- {from: north, to: south, bandwidth: 100 Gb/s, latency: 20 ms, egress: $0.02/GB}
)";

/// Jobs of all kinds of work, some with data at a site, some of two roles, some of a plan.
std::string random_jobs(std::uint64_t seed) {
  Rng rng(seed);
  const auto one_of = [&rng](std::initializer_list<const char*> words) {
    return std::string(words.begin()[rng.below(words.size())]);
  };
  std::string text = "apiVersion: orrery/v1\nkind: Trace\nname: bills\njobs:\n";
  std::uint64_t submit = 0;
  for (int i = 0; i < 60; ++i) {
    submit += 600 + rng.below(3000);
    const std::string run = std::to_string(300 + rng.below(20'000)) + " s";
    const std::string devices = one_of({"4", "8", "16"});
    const bool planned = rng.below(4) == 0;
    text += "- {submit: " + std::to_string(submit) + " s, ";
    if (!planned) text += "run: " + run + ", ";
    text += "spec: {apiVersion: orrery/v1, kind: " + one_of({"Train", "FineTune", "Batch"}) +
            ", name: j" + std::to_string(i) + ", goal: " + one_of({"time", "cost", "energy"});
    if (!planned) text += ", estimate: " + run;
    if (rng.below(2) == 0) text += ", checkpoint: {interval: 20 min, cost: 30 s, restart: 2 min}";
    if (rng.below(3) == 0) {
      text += ", data: [{site: " + one_of({"north", "south"}) +
              ", size: " + one_of({"1", "4", "9"}) + " TB}]";
    }
    const std::string role = "accelerators: " + devices + ", types: [h100";
    if (planned) {
      text += ", roles: [{" + role + "], work: {model: mistral-7b, sequence: 4096, " +
              "global_batch: 64, steps: 200}}]}}\n";
    } else if (rng.below(3) == 0) {
      text += ", roles: [{name: a, " + role + "]}, {name: b, accelerators: 8, types: [a100]}]}}\n";
    } else {
      text += ", roles: [{" + role + ", {type: a100, speed: 0.5}]}]}}\n";
    }
  }
  return text;
}

class BillCheckTest : public testing::Test {
 protected:
  SimulationSummary play(const std::string& jobs, SimulationHooks hooks) {
    const Result<Trace> trace = read_trace_file(jobs, "jobs.yaml", {});
    EXPECT_TRUE(trace) << (trace ? "" : trace.error().text());
    const auto played = trace_jobs(*trace, cluster_->resolve_context({}), cluster_->classes(), {});
    EXPECT_TRUE(played) << (played ? "" : played.error().text());
    ControlSetup setup = cluster_->setup(*policy_named(policy_), Instant());
    setup.series.electricity = electricity_ ? &*electricity_ : nullptr;
    World::Facts world{*replay_rules("orrery"), {}, setup.plans};
    world.calibration = &cluster_->facts().calibration;
    Simulation simulation({setup, world, played->jobs, std::move(hooks), {}});
    simulation_ = &simulation;
    simulation.run();
    return simulation.summary();
  }

  std::unique_ptr<ControlFacts> cluster_ = facts_of(kTwoSites);
  std::string policy_ = "hardware-aware";
  std::optional<StepSeries<DollarsPerJoule>> electricity_;
  const Simulation* simulation_ = nullptr;
};

TEST_F(BillCheckTest, WhatAStartIsExpectedToCostIsWhatIsBilled) {
  std::uint64_t compared = 0;
  double egress = 0;
  double electricity = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    if (seed == 4) {
      electricity_ = *StepSeries<DollarsPerJoule>::make(
          {{Instant(), DollarsPerJoule(50 / 3.6e9)},
           {Instant() + Duration::hours(5), DollarsPerJoule(500 / 3.6e9)}});
    }
    SimulationHooks hooks;
    hooks.billed = [&](const BilledAttempt& billed) {
      EXPECT_LE(billed.seconds.error(), BillCheck::kTolerance) << "job " << billed.job.value();
      egress += billed.egress.billed;
      electricity += billed.electricity.billed;
    };
    const SimulationSummary summary = play(random_jobs(seed), hooks);
    EXPECT_GE(summary.bills.within, 0.95) << "seed " << seed;
    EXPECT_LE(summary.bills.error_p50, 1e-6) << "seed " << seed;
    compared += summary.bills.compared;
  }
  EXPECT_GE(compared, 200U);
  EXPECT_GT(egress, 0);
  EXPECT_GT(electricity, 0);
}

// By the default weights, hire, electricity and carbon count once.
TEST_F(BillCheckTest, ThePriceOfAStartHasTheTermsOfItsBill) {
  std::uint64_t priced = 0;
  SimulationHooks hooks;
  hooks.events = [&](Instant now, std::span<const Event> events) {
    const State& state = simulation_->state();
    for (const Event& event : events) {
      const auto* started = std::get_if<JobStarted>(&event);
      if (started == nullptr || !state.job(started->job).submission->request.data.empty()) continue;
      const std::span<const Decision> decisions = simulation_->core().decisions();
      const auto found = std::ranges::find_if(decisions, [&](const Decision& decision) {
        const auto* start = std::get_if<StartJob>(&decision);
        return start != nullptr && start->job == started->job;
      });
      if (found == decisions.end()) continue;
      const Price& price = *std::get<StartJob>(*found).price;
      const Job& job = state.job(started->job);
      const Situation situation = state.situation(now);
      const PriceContext context{situation, state.policy(), situation.fleet};
      const WaitingJob waiting{.id = job.id,
                               .request = &job.submission->request,
                               .submitted = job.submitted,
                               .done = job.done};
      const ExpectedBill bill = expected_bill(context, waiting, started->gangs, started->terms);
      const auto dollars = [&](PriceTerm term) { return static_cast<double>(price[term]) * 1e-6; };
      EXPECT_NEAR(dollars(PriceTerm::kHire), bill.hire, 1e-4 + 1e-6 * bill.hire);
      EXPECT_NEAR(dollars(PriceTerm::kEnergy), bill.electricity, 1e-4);
      const double carbon = state.policy().weights.carbon_tonne * bill.co2_grams * 1e-6;
      EXPECT_NEAR(dollars(PriceTerm::kCarbon), carbon, 1e-4);
      ++priced;
    }
  };
  play(random_jobs(9), hooks);
  EXPECT_GE(priced, 20U);
}

// The plan determines what devices draw, whether the policy asked for it or not.
TEST_F(BillCheckTest, EnergyDoesNotDependOnHowAPlaceIsChosen) {
  const std::string job = R"(apiVersion: orrery/v1
kind: Trace
name: planned
jobs:
- {submit: 0 s, spec: {apiVersion: orrery/v1, kind: Train, name: one, roles: [{accelerators: 16,
   types: [h100], work: {model: mistral-7b, sequence: 4096, global_batch: 64, steps: 2000}}]}}
)";
  std::vector<SimulationSummary> runs;
  for (const char* policy : {"hardware-aware", "capacity"}) {
    policy_ = policy;
    runs.push_back(play(job, {}));
    EXPECT_EQ(runs.back().finished, 1U) << policy;
  }
  EXPECT_NEAR(runs[0].makespan_s / runs[1].makespan_s, 1, 0.002);
  EXPECT_NEAR(runs[0].energy_kwh / runs[1].energy_kwh, 1, 0.002);
  EXPECT_NEAR(runs[0].co2_kg / runs[1].co2_kg, 1, 0.002);
}

// Egress is paid where the data were not before, and once for all gangs.
TEST_F(BillCheckTest, DataAreBroughtToASiteOnce) {
  const std::string job = R"(apiVersion: orrery/v1
kind: Trace
name: moved
jobs:
- {submit: 0 s, run: 600 s, spec: {apiVersion: orrery/v1, kind: Batch, name: one, estimate: 600 s,
   data: [{site: north, size: 1 TB}], roles: [{replicas: 3, accelerators: 8, types: [a100]}]}}
)";
  std::vector<BilledAttempt> billed;
  SimulationHooks hooks;
  hooks.billed = [&](const BilledAttempt& attempt) { billed.push_back(attempt); };
  const SimulationSummary summary = play(job, hooks);
  ASSERT_EQ(billed.size(), 1U);
  EXPECT_NEAR(billed[0].egress.billed, 20, 1e-6) << "1 TB at $0.02/GB";
  EXPECT_NEAR(billed[0].seconds.expected, 600 + 5 + 80 + 0.02, 0.01) << "1 TB at 100 Gb/s";
  EXPECT_NEAR(billed[0].seconds.billed, billed[0].seconds.expected, 5);
  EXPECT_EQ(summary.bills.within, 1);
}

}  // namespace
}  // namespace orrery
