// apps/orrery/plan_request.hpp - what the verbs `plan` and `compare` were asked, as a question to
// the planner.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/orrery/context.hpp"
#include "fleet/topology.hpp"
#include "planner/planner.hpp"

namespace orrery {

/// The options as typed; empty: not given.
struct PlanOptions {
  std::string model;
  std::string accelerators;  ///< "h100:64,mi300x:64"
  std::string fleet;         ///< file of a fleet spec
  std::optional<double> sequence;
  std::optional<double> global_batch;
  std::string precision = "bf16";
  std::string task = "pretrain";
  std::string attention = "flash";
  std::string objective = "time";
  std::string budget;
  std::string tokens;
  std::string layout;
  std::string runtime;  ///< file of what the training program can do
  std::string price;
  std::string region;
  std::string power_cap;
  std::string storage;
  std::string input_rate;
  std::size_t top = 5;
  Effort effort = Effort::kPruned;
};

/// The catalog, the constants and the model a question is about, at addresses that stay.
struct QuestionFacts {
  std::unique_ptr<Catalog> catalog;
  std::unique_ptr<Calibration> calibration;
  std::unique_ptr<Model> model;
};

/// Errors: those of the files; an unknown model; a config.json of no known architecture.
[[nodiscard]] Result<QuestionFacts> load_facts(const CommandOptions& options,
                                               const std::string& model);

/// Price, region, storage and power cap as the options have them.
[[nodiscard]] Result<EconomicsOptions> economics_option(const PlanOptions& plan);

/// A question and everything it points to.
struct PlanRequest {
  std::unique_ptr<Catalog> catalog;
  std::unique_ptr<Calibration> calibration;
  std::unique_ptr<Model> model;
  std::unique_ptr<Topology> topology;
  PlanQuestion question;
  std::vector<std::string> assumptions;

  [[nodiscard]] PlannerFacts facts() const { return {*catalog, *calibration}; }
};

/// Errors: anything wrong in an option or a file, naming the option.
[[nodiscard]] Result<PlanRequest> plan_request(const CommandOptions& options,
                                               const PlanOptions& plan);

}  // namespace orrery
