// verbs/plan/plan_request.hpp - the options of the verbs `plan` and `compare`, as a question to
// the planner.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fleet/topology.hpp"
#include "planner/planner.hpp"
#include "verbs/command_options.hpp"
#include "verbs/spec_files.hpp"

namespace orrery {

/// The machines to plan for, of which one is given.
struct PlanMachines {
  std::string accelerators;  ///< "h100:64,mi300x:64"
  std::string fleet;         ///< file of a fleet spec
};

/// The training whose layout is planned.
struct PlanTraining {
  std::optional<double> sequence;
  std::optional<double> global_batch;
  std::string precision = "bf16";
  std::string task = "pretrain";
  std::string attention = "flash";
  std::string release;
  std::string input_rate;
};

/// The figure that the best plan minimizes, and the run that the figure is of.
struct PlanGoal {
  std::string objective = "time";
  std::string budget;
  std::string tokens;
  std::string samples;
};

/// What limits the layouts that are tried.
struct PlanLayouts {
  std::string fixed;
  std::string runtime;  ///< file of the training program's capabilities
};

/// Where the machines stand and what they cost.
struct PlanCosts {
  std::string price;
  std::optional<double> utilisation;  ///< busy fraction of an owned machine's life
  std::string region;
  std::string power_cap;
  std::string storage;
};

/// The options as typed; empty: not given.
struct PlanOptions {
  std::string model;
  PlanMachines machines;
  PlanTraining training;
  PlanGoal goal;
  PlanLayouts layout;
  PlanCosts cost;
  std::size_t top = 5;
  Effort effort = Effort::kPruned;
  SpecFiles files;
};

/// The options that decide a plan, under the names of the command line.
template <class Visitor, SameStruct<PlanOptions> Self>
void describe(Visitor& visitor, Self& o) {
  visitor.required("model", o.model);
  visitor.optional("accelerators", o.machines.accelerators);
  visitor.optional("fleet", o.machines.fleet);
  visitor.optional("seq", o.training.sequence);
  visitor.optional("global_batch", o.training.global_batch);
  visitor.optional("precision", o.training.precision);
  visitor.optional("task", o.training.task);
  visitor.optional("attention", o.training.attention);
  visitor.optional("objective", o.goal.objective);
  visitor.optional("budget", o.goal.budget);
  visitor.optional("tokens", o.goal.tokens);
  visitor.optional("samples", o.goal.samples);
  visitor.optional("release", o.training.release);
  visitor.optional("layout", o.layout.fixed);
  visitor.optional("runtime", o.layout.runtime);
  visitor.optional("price", o.cost.price);
  visitor.optional("utilisation", o.cost.utilisation);
  visitor.optional("region", o.cost.region);
  visitor.optional("power_cap", o.cost.power_cap);
  visitor.optional("storage", o.cost.storage);
  visitor.optional("input_rate", o.training.input_rate);
}

/// The facts and the model of a question, at stable addresses.
struct QuestionFacts {
  std::unique_ptr<Facts> facts;
  std::unique_ptr<Model> model;
};

/// `fleet`: the facts in a fleet file. Errors: those of the files; an unknown model; a
/// config.json of no known architecture.
[[nodiscard]] Result<QuestionFacts> question_facts(const CommandOptions& options,
                                                   const std::string& model,
                                                   const FactOverlay& fleet);

/// Reads price, region, storage and power cap from the options.
[[nodiscard]] Result<EconomicsOptions> economics_option(const PlanOptions& plan);

/// A question and all objects that it points to.
struct PlanRequest {
  std::unique_ptr<Facts> known;
  std::unique_ptr<Model> model;
  std::unique_ptr<Topology> topology;
  PlanQuestion question;
  std::vector<std::string> assumptions;

  [[nodiscard]] PlannerFacts facts() const { return {known->catalog(), known->calibration()}; }
};

/// Errors: anything wrong in an option or a file, naming the option.
[[nodiscard]] Result<PlanRequest> plan_request(const CommandOptions& options,
                                               const PlanOptions& plan);

}  // namespace orrery
