#include "verbs/plan/plan_request.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/format/field_writer.hpp"
#include "fleet/spec/builder.hpp"
#include "perf/site/input.hpp"
#include "perf/software_release.hpp"
#include "planner/fleet_machines.hpp"
#include "planner/job_defaults.hpp"
#include "planner/launch/layout_text.hpp"
#include "verbs/option_text.hpp"

namespace orrery {
namespace {

constexpr std::uint64_t kAcceleratorsMax = 1u << 24;

Result<double> tokens_in(const std::string& text) {
  const bool named = text.find("tok") != std::string::npos;
  const bool bare = text.find_first_not_of("0123456789.e+") == std::string::npos;
  Result<Tokens> tokens =
      quantity_option<Tokens>("tokens", named || bare ? text : text + " tokens");
  if (!tokens) return forward_error(tokens);
  return tokens->value();
}

/// A count of images or videos: "1.2M" as in --tokens.
Result<double> samples_in(const std::string& text) {
  const bool bare = text.find_first_not_of("0123456789.e+") == std::string::npos;
  const Result<Tokens> count = quantity_option<Tokens>("samples", bare ? text : text + " tokens");
  if (count && count->value() >= 1) return count->value();
  return wrong("samples", fmt::format("\"{}\": expected a count such as 1.2M", text));
}

struct RuntimeFile {
  std::string api_version;
  std::string kind;
  RuntimeAbilities abilities;
};

template <class Visitor, SameStruct<RuntimeFile> Self>
void describe(Visitor& visitor, Self& file) {
  visitor.required("apiVersion", file.api_version);
  visitor.required("kind", file.kind);
  describe(visitor, file.abilities);
}

Result<RuntimeAbilities> load_runtime(const PlanOptions& plan) {
  const std::string& path = plan.layout.runtime;
  Result<Document> document = plan.files.document(path);
  if (!document) return forward_error(document);
  RuntimeFile file;
  if (Status read = read_struct(document->root(), file, {}); !read) return forward_error(read);
  if (file.api_version != "orrery/v1" || file.kind != "Runtime") {
    return input_error(document->root().position(),
                       "expected apiVersion orrery/v1 and kind Runtime");
  }
  if (Status checked = check_abilities(file.abilities); !checked) {
    return input_error({.file = path}, checked.error().message);
  }
  return file.abilities;
}

class RequestBuilder {
 public:
  RequestBuilder(const CommandOptions& options, const PlanOptions& plan)
      : options_(options), plan_(plan) {}

  Result<PlanRequest> build() {
    Status done = load();
    if (done) done = set_words();
    if (done) done = set_machines();
    if (done) done = set_job();
    if (!done) return forward_error(done);
    return std::move(request_);
  }

 private:
  Status load() {
    FactOverlay brought;
    if (!plan_.machines.fleet.empty()) {
      Result<FleetFile> file = plan_.files.fleet(plan_.machines.fleet);
      if (!file) return forward_error(file);
      fleet_ = std::move(file->spec);
      brought = std::move(file->facts);
    }
    Result<QuestionFacts> facts = question_facts(options_, plan_.files.path(plan_.model), brought);
    if (!facts) return forward_error(facts);
    request_.known = std::move(facts->facts);
    request_.model = std::move(facts->model);
    return {};
  }

  Status set_words() {
    PlanQuestion& q = request_.question;
    Result<Objective> objective = word_option<Objective>("objective", plan_.goal.objective);
    if (!objective) return forward_error(objective);
    q.objective = *objective;
    Result<TrainingPrecision> precision = precision_named(plan_.training.precision);
    if (!precision) return wrong("precision", precision.error().message);
    q.job.precision = *precision;
    Result<TrainingTask> task = word_option<TrainingTask>("task", plan_.training.task);
    if (!task) return forward_error(task);
    q.job.task = *task;
    if (plan_.training.attention != "flash" && plan_.training.attention != "unfused") {
      return wrong("attention",
                   "\"" + plan_.training.attention + "\" is neither flash nor unfused");
    }
    q.job.attention =
        plan_.training.attention == "flash" ? AttentionKernel::kFlash : AttentionKernel::kUnfused;
    q.best = plan_.top;
    q.effort = plan_.effort;
    if (!plan_.layout.fixed.empty()) {
      if (Status read = read_layout(plan_.layout.fixed, q.space); !read) return read;
    }
    if (!plan_.layout.runtime.empty()) {
      Result<RuntimeAbilities> abilities = load_runtime(plan_);
      if (!abilities) return forward_error(abilities);
      q.space.abilities = *std::move(abilities);
    }
    return set_quantities();
  }

  Status set_release() {
    TrainingJob& job = request_.question.job;
    job.release_scope = ReleaseScope::kMegatron;
    if (plan_.training.release.empty()) {
      job.release = newest_release().years;
    } else if (plan_.training.release != "none") {
      const Result<SoftwareRelease> release = release_named(plan_.training.release);
      if (!release) return wrong("release", release.error().message);
      job.release = release->years;
    }
    return {};
  }

  Status set_run() {
    PlanQuestion& q = request_.question;
    const SampleUnit unit = unit_of(*request_.model);
    const bool tokens = unit == SampleUnit::kTokens;
    const std::string& text = tokens ? plan_.goal.tokens : plan_.goal.samples;
    const std::string& other = tokens ? plan_.goal.samples : plan_.goal.tokens;
    if (!other.empty()) {
      return wrong(
          tokens ? "samples" : "tokens",
          fmt::format("\"{}\": the length of a run of {} is counted in {}, expected --{}", other,
                      request_.model->name, word_of(unit), tokens ? "tokens" : "samples"));
    }
    if (text.empty()) return {};
    Result<double> length = tokens ? tokens_in(text) : samples_in(text);
    if (!length) return forward_error(length);
    q.run = *length;
    return {};
  }

  Status set_quantities() {
    PlanQuestion& q = request_.question;
    if (Status set = set_run(); !set) return set;
    if (Status set = set_release(); !set) return set;
    if (!plan_.goal.budget.empty()) {
      Result<Dollars> budget = quantity_option<Dollars>("budget", plan_.goal.budget);
      if (!budget) return forward_error(budget);
      q.budget = *budget;
    }
    if (q.budget.has_value() != (q.objective == Objective::kTimeUnderBudget)) {
      return wrong("budget", "expected --budget and --objective time-under-budget together");
    }
    Result<EconomicsOptions> economics = economics_option(plan_);
    if (!economics) return forward_error(economics);
    economics_ = *std::move(economics);
    return {};
  }

  Status set_machines() {
    if (plan_.machines.accelerators.empty() == plan_.machines.fleet.empty()) {
      return input_error({}, "expected either --accelerators TYPE:N or --fleet FILE");
    }
    return plan_.machines.fleet.empty() ? add_types() : add_fleet();
  }

  Status add_types() {
    const std::string& list = plan_.machines.accelerators;
    for (std::size_t begin = 0; begin <= list.size();) {
      const std::size_t end = std::min(list.find(',', begin), list.size());
      if (Status added = add_type(list.substr(begin, end - begin)); !added) return added;
      begin = end + 1;
    }
    return {};
  }

  Status add_type(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos) {
      return wrong("accelerators", fmt::format("\"{}\": expected TYPE:N, such as h100:64", text));
    }
    const std::string number = text.substr(colon + 1);
    std::uint64_t count = 0;
    const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), count);
    if (failed != std::errc() || end != number.data() + number.size() || count == 0 ||
        count > kAcceleratorsMax) {
      return wrong("accelerators",
                   fmt::format("\"{}\": expected a count from 1 to {}", text, kAcceleratorsMax));
    }
    Result<const Accelerator*> accelerator =
        request_.known->catalog().require<Accelerator>(text.substr(0, colon));
    if (!accelerator) return wrong("accelerators", accelerator.error().message);
    const auto per_node = static_cast<std::uint64_t>(
        std::max(1, request_.known->catalog().default_node(**accelerator).accelerators_per_node));
    if (count > per_node && count % per_node != 0) {
      return wrong("accelerators", fmt::format("{}: {} is not a multiple of the {} accelerators of "
                                               "a node; the nearest are {} and {}",
                                               text, count, per_node, count / per_node * per_node,
                                               (count / per_node + 1) * per_node));
    }
    const MachineRequest request{.accelerator = *accelerator, .accelerators = count};
    Result<Machine> machine = machine_of(request_.known->catalog(), request);
    if (!machine) return forward_error(machine);
    request_.question.machines.push_back({.label = text,
                                          .machine = *std::move(machine),
                                          .request = request,
                                          .economics = economics_});
    return {};
  }

  Status add_fleet() {
    Result<Topology> topology = build_topology(*fleet_, request_.known->catalog());
    if (!topology) return forward_error(topology);
    request_.topology = std::make_unique<Topology>(*std::move(topology));
    FleetMachines machines = machines_of(*request_.topology, economics_);
    for (const std::string& why : machines.skipped) {
      request_.assumptions.push_back("left out: " + why);
    }
    if (machines.choices.empty()) {
      return infeasible(
          fmt::format("{}: the fleet has no accelerators to plan for", plan_.machines.fleet));
    }
    request_.question.machines = std::move(machines.choices);
    return {};
  }

  Status set_job() {
    TrainingJob& job = request_.question.job;
    job.model = request_.model.get();
    Result<double> sequence = sequence_of(*request_.model, plan_.training.sequence);
    if (!sequence) return wrong("seq", sequence.error().message);
    job.sequence = Tokens(*sequence);
    const auto* transformer = std::get_if<Transformer>(&request_.model->architecture);
    const double longest =
        transformer != nullptr ? static_cast<double>(transformer->positions_max) : 0;
    if (longest > 0 && *sequence > longest) {
      request_.assumptions.push_back(
          fmt::format("sequences of {} tokens are longer than the maximum of the model, {} tokens",
                      *sequence, longest));
    }
    std::vector<std::uint64_t> ranks;
    ranks.reserve(request_.question.machines.size());
    for (const MachineChoice& choice : request_.question.machines) {
      ranks.push_back(choice.machine.ranks);
    }
    Result<double> batch =
        batch_of(*request_.model,
                 {.stated = plan_.training.global_batch, .sequence = *sequence, .ranks = ranks});
    if (!batch) return wrong("global-batch", batch.error().message);
    job.global_batch = *batch;
    note_defaults(*sequence);
    return set_input();
  }

  Status set_input() {
    if (plan_.training.input_rate.empty()) return {};
    Result<BytesPerSecond> rate =
        quantity_option<BytesPerSecond>("input-rate", plan_.training.input_rate);
    if (!rate) return forward_error(rate);
    TrainingJob& job = request_.question.job;
    const Result<InputStall> reading =
        input_stall({.storage = *rate}, {.bytes = input_bytes(job), .hidden = Seconds(0)});
    if (!reading) return wrong("input-rate", reading.error().message);
    job.input_seconds = reading->reading.value();
    return {};
  }

  void note_defaults(double sequence) {
    const TrainingJob& job = request_.question.job;
    if (!plan_.training.sequence && unit_of(*request_.model) == SampleUnit::kTokens)
      request_.assumptions.push_back(fmt::format("--seq {}", sequence));
    if (!plan_.training.global_batch) {
      request_.assumptions.push_back(fmt::format("--global-batch {}", job.global_batch));
    }
    for (const MachineChoice& choice : request_.question.machines) {
      const Machine& machine = choice.machine;
      const bool narrow = job.precision.format != NumberFormat::kFp16;
      if (!narrow || machine.peak_of(job.precision.format) > 0) continue;
      const std::string text = fmt::format("{} has no rate for {}: the 16-bit rate is used",
                                           machine.accelerator->id, word_of(job.precision.format));
      auto& all = request_.assumptions;
      if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
    }
  }

  const CommandOptions& options_;
  const PlanOptions& plan_;
  EconomicsOptions economics_;
  std::optional<FleetSpec> fleet_;  ///< of --fleet
  PlanRequest request_;
};

}  // namespace

Result<QuestionFacts> question_facts(const CommandOptions& options, const std::string& model,
                                     const FactOverlay& fleet) {
  Result<Facts> facts = load_facts(options, fleet);
  if (!facts) return forward_error(facts);
  Result<Model> loaded = load_model(model, facts->models());
  if (!loaded) return forward_error(loaded);
  if (!loaded->known_type) {
    return wrong("model", fmt::format("{}: unknown model_type \"{}\"; a model with the Llama "
                                      "architecture may state \"llama\"",
                                      model, loaded->type));
  }
  QuestionFacts question;
  question.facts = std::make_unique<Facts>(*std::move(facts));
  question.model = std::make_unique<Model>(*std::move(loaded));
  return question;
}

Result<EconomicsOptions> economics_option(const PlanOptions& plan) {
  EconomicsOptions economics;
  if (!plan.cost.price.empty()) {
    Result<PriceBasis> basis = word_option<PriceBasis>("price", plan.cost.price);
    if (!basis) return forward_error(basis);
    economics.basis = *basis;
  }
  if (plan.cost.utilisation && !(*plan.cost.utilisation > 0 && *plan.cost.utilisation <= 1)) {
    return wrong("utilisation",
                 fmt::format("{}: expected more than 0, at most 1", *plan.cost.utilisation));
  }
  economics.price.owned.utilisation = plan.cost.utilisation;
  if (!plan.cost.region.empty()) economics.site.region = plan.cost.region;
  if (!plan.cost.storage.empty()) economics.storage = plan.cost.storage;
  if (!plan.cost.power_cap.empty()) {
    Result<Watts> cap = quantity_option<Watts>("power-cap", plan.cost.power_cap);
    if (!cap) return forward_error(cap);
    economics.power.cap = *cap;
  }
  return economics;
}

Result<PlanRequest> plan_request(const CommandOptions& options, const PlanOptions& plan) {
  return RequestBuilder(options, plan).build();
}

}  // namespace orrery
