// verbs/plan/plan_answers_test.hpp - plans with round figures on machines that do not exist, for
// the tests of what is shown of plans.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "perf/repository_facts_test.hpp"
#include "verbs/plan/plan_request.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {

/// Returns a model of the catalog.
inline const Model& planned_model(std::string_view name) {
  static const Result<ModelCatalog> kModels = ModelCatalog::load(builtin_models(), {});
  return (*kModels->require(name))->model;
}

/// Asks for llama-3.1-8b with 512 sequences of 8,192 tokens on machines of 64 H100 each.
inline PlanRequest request_on(const std::vector<std::string>& labels) {
  PlanRequest request;
  request.model = std::make_unique<Model>(planned_model("llama-3.1-8b"));
  request.question.job = {
      .model = request.model.get(), .sequence = Tokens(8192), .global_batch = 512};
  for (const std::string& label : labels) {
    Machine machine;
    machine.accelerator = *builtin_facts().require<Accelerator>("h100");
    machine.ranks = 64;
    request.question.machines.push_back({.label = label, .machine = machine});
  }
  return request;
}

/// Seconds of a step by term.
using TermSeconds = std::vector<std::pair<Term, double>>;

/// A plan of 64 data-parallel ranks, without price or draw, whose interval is half to twice its
/// step. Its memory is 10 GiB of weights and 2 GiB of the runtime.
inline PlanOffer offer_with(const TermSeconds& terms, std::size_t machine = 0) {
  PlanOffer offer{.machine = machine, .plan = {.dp = 64}};
  for (const auto& [term, seconds] : terms) {
    offer.cost.terms.seconds[static_cast<std::size_t>(term)] = seconds;
    offer.cost.seconds += seconds;
  }
  offer.cost.memory.weights = 10.0 * (1u << 30);
  offer.cost.memory.runtime = 2.0 * (1u << 30);
  offer.seconds_low = offer.cost.seconds / 2;
  offer.seconds_high = offer.cost.seconds * 2;
  offer.mfu = offer.format_mfu = 0.4;
  offer.quote.tokens_per_second = 4096;
  return offer;
}

/// Gives a plan a price of $3 and a draw of 7.2 kJ a step.
inline void price(PlanOffer& offer) {
  offer.quote.step_cost = Dollars(3);
  offer.quote.step_energy = Joules(7200);
  offer.quote.power = Watts(3600);
  offer.quote.joules_per_flop = JoulesPerFlop(2e-12);
  offer.quote.tokens_per_second_watt = 1.5;
}

/// Gives a plan the figures of a run of 1,000 steps.
inline void lengthen(PlanOffer& offer) {
  offer.quote.run_steps = 1000;
  offer.quote.run_time = Seconds(7200);
  offer.quote.run_cost = Dollars(3000);
  offer.quote.run_energy =
      Energy{.machines = Joules(3.6e9), .facility = Joules(7.2e9), .carbon = GramsCo2(5e6)};
  offer.quote.goodput = Goodput{.interval = Seconds(120),
                                .effective = 0.9,
                                .checkpoints = 0.05,
                                .lost_work = 0.02,
                                .detection = 0.01,
                                .restart = 0.015,
                                .reading = 0.005};
}

}  // namespace orrery
