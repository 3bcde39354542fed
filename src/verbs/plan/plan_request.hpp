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
#include "verbs/plan/spec_files.hpp"

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
  std::string samples;
  std::string release;
  std::string layout;
  std::string runtime;  ///< file of the training program's capabilities
  std::string price;
  std::optional<double> utilisation;  ///< busy fraction of an owned machine's life
  std::string region;
  std::string power_cap;
  std::string storage;
  std::string input_rate;
  std::size_t top = 5;
  Effort effort = Effort::kPruned;
  SpecFiles files;
};

/// The options that decide a plan, under the names of the command line.
template <class Visitor, SameStruct<PlanOptions> Self>
void describe(Visitor& visitor, Self& o) {
  visitor.required("model", o.model);
  visitor.optional("accelerators", o.accelerators);
  visitor.optional("fleet", o.fleet);
  visitor.optional("seq", o.sequence);
  visitor.optional("global_batch", o.global_batch);
  visitor.optional("precision", o.precision);
  visitor.optional("task", o.task);
  visitor.optional("attention", o.attention);
  visitor.optional("objective", o.objective);
  visitor.optional("budget", o.budget);
  visitor.optional("tokens", o.tokens);
  visitor.optional("samples", o.samples);
  visitor.optional("release", o.release);
  visitor.optional("layout", o.layout);
  visitor.optional("runtime", o.runtime);
  visitor.optional("price", o.price);
  visitor.optional("utilisation", o.utilisation);
  visitor.optional("region", o.region);
  visitor.optional("power_cap", o.power_cap);
  visitor.optional("storage", o.storage);
  visitor.optional("input_rate", o.input_rate);
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
