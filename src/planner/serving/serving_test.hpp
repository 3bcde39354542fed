// planner/serving/serving_test.hpp - the built-in facts and small questions, for the tests of
// serving plans.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <vector>

#include "perf/repository_facts_test.hpp"
#include "planner/serving/serving_plan.hpp"
#include "workload/builtin_models.hpp"
#include "workload/models/model_catalog.hpp"

namespace orrery {

inline const Model& served_model(std::string_view name) {
  static const Result<ModelCatalog> kModels = ModelCatalog::load(builtin_models(), {});
  return (*kModels->require(name))->model;
}

inline PlannerFacts serving_facts() { return {builtin_facts(), builtin_constants()}; }

inline const Accelerator& accelerator_named(std::string_view name) {
  const Result<const Accelerator*> found = builtin_facts().require<Accelerator>(name);
  EXPECT_TRUE(found) << name;
  return **found;
}

inline ServingChoice serving_on(std::string_view type, std::optional<std::uint64_t> count = {}) {
  return serving_choice(builtin_facts(), accelerator_named(type), count);
}

inline ServingQuestion serving_question(std::string_view model,
                                        std::vector<ServingChoice> machines) {
  ServingQuestion question;
  question.model = &served_model(model);
  question.input = 1000;
  question.output = 500;
  question.machines = std::move(machines);
  return question;
}

/// One instance of tp = 1 in 16 bits.
inline ServingJob serving_job_on(std::string_view type, std::string_view model) {
  const ServingQuestion question = serving_question(model, {serving_on(type)});
  std::vector<std::string> warnings;
  Result<ServingJob> job = serving_job_of(run_of(question, question.machines[0], {}), warnings);
  EXPECT_TRUE(job);
  return *std::move(job);
}

inline ServingConstants constants_on(const ServingJob& job) {
  return constants_of(job, ServingRun{}, builtin_constants());
}

}  // namespace orrery
