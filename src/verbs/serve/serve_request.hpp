// verbs/serve/serve_request.hpp - the options of `plan --serve`, as a question to the planner.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/serving/serving_plan.hpp"
#include "verbs/command_options.hpp"
#include "verbs/plan/plan_request.hpp"
#include "workload/requests/request_trace.hpp"
#include "workload/revision_spec.hpp"

namespace orrery {

/// Which instances read the prompts.
enum class PrefillPlace { kJoint, kApart };

/// The options of --serve as typed, beside those it shares with training; empty: not given.
struct ServeOptions {
  std::optional<double> input_tokens;
  std::optional<double> output_tokens;
  std::optional<double> rate;
  std::string ttft;
  std::string tpot;
  std::string requests;   ///< FILE[:FORMAT], in place of sizes and rate
  std::string half;       ///< of these: "first" or "second"
  std::string engine;     ///< "vllm", "tensorrt-llm:1.1"
  std::string precision;  ///< "fp8", "bf16,fp8"
  std::string objective;
  std::optional<EngineName> emit;  ///< the engine whose command to show in place of the plans
  PrefillPlace prompts = PrefillPlace::kJoint;  ///< of the plan whose command is shown
};

/// A question and all objects that it points to.
struct ServeRequest {
  std::unique_ptr<Facts> known;
  std::unique_ptr<Model> model;
  std::unique_ptr<Topology> topology;
  ServingQuestion question;
  std::optional<RequestTrace> trace;  ///< of --requests
  std::vector<std::string> assumptions;

  [[nodiscard]] PlannerFacts facts() const { return {known->catalog(), known->calibration()}; }
};

/// The options as typed: `plan` holds the model, the machines, the prices and how many plans to
/// list.
struct ServeCall {
  const PlanOptions& plan;
  const ServeOptions& serve;
};

/// Errors: anything wrong in an option or a file, naming the option.
[[nodiscard]] Result<ServeRequest> serve_request(const CommandOptions& options,
                                                 const ServeCall& call);

}  // namespace orrery
