#include "planner/serving/serving_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "base/format/field_writer.hpp"
#include "perf/runs/run_text.hpp"
#include "planner/serving/serving_refusal.hpp"

namespace orrery {
namespace {

constexpr double kTokensMax = 1e8;
constexpr double kRateMax = 1e9;

/// An instance over several scale-up domains has at most so many times the devices of the smallest
/// one that fits.
constexpr double kSpread = 4;

/// Instances for which the machine has whole places; 0: as many as needed.
double instances_in(const ServingChoice& choice, const ServingPlan& plan) {
  if (!choice.accelerators) return 0;
  const auto there = static_cast<double>(*choice.accelerators);
  const double domains = domains_of(plan, choice.domain);
  if (domains <= 1) return std::floor(there / devices_of(plan));
  return std::floor(std::floor(there / choice.domain) / domains);
}

/// Whether the engine can hand a prompt's cache to another instance.
bool hands_over(std::string_view engine) {
  return engine == "vllm" || engine == "sglang" || engine == "tensorrt-llm";
}

/// Layouts of one machine in one pair of number formats.
class MachineSearch {
 public:
  MachineSearch(const PlannerFacts& facts, const ServingQuestion& question, std::size_t machine)
      : facts_(facts),
        question_(question),
        machine_(machine),
        rack_(rack_size(facts.catalog, *question.machines[machine].node)),
        shortfall_(facts, question, question.machines[machine]) {
    const ServingChoice& choice = question.machines[machine];
    if (!choice.joined || !hands_over(question.engine)) return;
    between_ = {.domain = static_cast<double>(std::bit_floor(choice.domain)),
                .between = network_of(*choice.joined, facts.calibration)};
  }

  /// Errors: a model that generates no tokens.
  Status search(const Economics& economics) {
    const ServingChoice& choice = question_.machines[machine_];
    for (const ServingNumbers& numbers :
         serving_numbers(*choice.accelerator, *question_.model, question_.formats)) {
      const ServingRun run = run_of(question_, choice, numbers);
      std::vector<std::string> unread;
      Result<ServingJob> job = serving_job_of(run, unread);
      if (!job) return forward_error(job);
      search_layouts(economics, run, numbers, *std::move(job));
    }
    return {};
  }

  [[nodiscard]] std::vector<ServingOffer> take_offers() { return std::move(offers_); }
  [[nodiscard]] std::optional<ApartOffer> take_apart() { return std::move(apart_); }
  [[nodiscard]] std::uint64_t layouts() const { return layouts_; }
  [[nodiscard]] Error why() const { return shortfall_.explain(); }
  [[nodiscard]] const std::optional<RackSize>& rack() const { return rack_; }

 private:
  void search_layouts(const Economics& economics, const ServingRun& run,
                      const ServingNumbers& numbers, ServingJob job) {
    const ServingChoice& choice = question_.machines[machine_];
    std::map<double, ServingConstants> constants;  // they differ by the size of the instance alone
    double fits = INFINITY;                        // devices of the smallest instance that fits
    ApartSearch apart({.rate = question_.rate,
                       .accelerators = choice.accelerators,
                       .limits = question_.limits,
                       .network = between_.value_or(ServingNetwork{})});
    for (const ServingPlan& plan : serving_layouts(job.shape, largest_instance(choice))) {
      if (domains_of(plan, choice.domain) > 1 && devices_of(plan) > kSpread * fits) break;
      job.plan = plan;
      auto known = constants.find(devices_of(plan));
      if (known == constants.end()) {
        known =
            constants.emplace(devices_of(plan), constants_of(job, run, facts_.calibration)).first;
      }
      ++layouts_;
      if (!try_layout(economics, numbers, job, known->second)) continue;
      const double domains = domains_of(plan, choice.domain);
      fits = std::min(fits, domains > 1 ? devices_of(plan) : 0);
      const double taken = domains > 1 ? domains * choice.domain : devices_of(plan);
      if (between_) apart.add(job, known->second, taken);
    }
    if (const std::optional<ApartPair> pair = apart.best()) {
      offer_apart(economics, numbers, apart, *pair);
    }
  }

  /// Keeps it if it is the best of the machine.
  void offer_apart(const Economics& economics, const ServingNumbers& numbers,
                   const ApartSearch& search, const ApartPair& pair) {
    ApartOffer offer{.machine = machine_, .numbers = numbers};
    offer.cache = pair.prompts->job.formats.kv;
    offer.prompts = pair.prompts->job.plan;
    offer.prompts.replicas = pair.size.prompts;
    offer.answers = pair.answers->job.plan;
    offer.answers.replicas = pair.size.answers;
    offer.concurrency = pair.answers->answer->batch;
    offer.figures = search.figures(pair);
    offer.transfer = pair.transfer;
    offer.requests = pair.size.requests;
    offer.requests_max = pair.requests_max;
    const ServingLoad& load = pair.answers->job.load;
    offer.quote = quote_of(search.expense(economics, pair), rack_,
                           {.generated = offer.requests * load.output,
                            .total = offer.requests * (load.input + load.output),
                            .accelerators = offer.accelerators()});
    const std::optional<double> score = score_of(offer.quote, question_.objective);
    if (!score) return;
    if (!apart_ || *score < *score_of(apart_->quote, question_.objective)) {
      apart_ = std::move(offer);
    }
  }

  /// Returns whether the instance fits.
  bool try_layout(const Economics& economics, const ServingNumbers& numbers, ServingJob& job,
                  const ServingConstants& constants) {
    const CapacityAnswer found = serving_capacity(job, constants, question_.limits);
    const double each = devices_of(job.plan);
    const std::optional<std::uint64_t> there = question_.machines[machine_].accelerators;
    const double room = instances_in(question_.machines[machine_], job.plan);
    double instances = there ? room : 1;
    ServingAttempt attempt{.plan = job.plan, .numbers = numbers, .least = found.least};
    if (found.capacity) {
      const double requests = found.capacity->prediction.requests;
      if (question_.rate) instances = std::ceil(*question_.rate / requests * (1 - 1e-9));
      attempt.requests_max = room * requests;
      attempt.accelerators = instances * each;
    }
    shortfall_.add(attempt);
    if (found.capacity && !(there && instances > room)) {
      offer(economics, job, constants, {numbers, *found.capacity, instances});
    }
    return found.least.fits && is_finite(found.least);
  }

  struct Loaded {
    ServingNumbers numbers;
    ServingCapacity capacity;
    double instances = 1;
  };

  void offer(const Economics& economics, ServingJob job, const ServingConstants& constants,
             const Loaded& loaded) {
    const ServingCapacity& capacity = loaded.capacity;
    ServingOffer offer{.machine = machine_, .plan = job.plan, .numbers = loaded.numbers};
    offer.plan.replicas = loaded.instances;
    offer.cache = job.formats.kv;
    offer.concurrency = capacity.concurrency;
    offer.requests_max = capacity.prediction.requests * loaded.instances;
    offer.prediction = capacity.prediction;
    offer.bounds = {capacity.bound};
    if (question_.rate) {
      job.load.concurrency = capacity.concurrency;
      job.load.rate = *question_.rate / loaded.instances;
      const ServingPrediction at_rate = predict_serving(job, constants);
      if (is_finite(at_rate)) offer.prediction = at_rate;
      offer.bounds.push_back(ServingBound::kRate);
    }
    offer.quote = quote_of(economics, rack_, {job, constants, offer.prediction, loaded.instances});
    ServingPrediction& all = offer.prediction;
    all.tokens_total = all.tokens_total * loaded.instances;
    all.output_tokens = all.output_tokens * loaded.instances;
    all.requests *= loaded.instances;
    if (score_of(offer.quote, question_.objective)) offers_.push_back(std::move(offer));
  }

  const PlannerFacts& facts_;
  const ServingQuestion& question_;
  std::size_t machine_;
  std::optional<RackSize> rack_;
  ServingShortfall shortfall_;
  std::optional<ServingNetwork> between_;  ///< over which caches travel; none: they cannot
  std::vector<ServingOffer> offers_;
  std::optional<ApartOffer> apart_;
  std::uint64_t layouts_ = 0;
};

class ServingPlanner {
 public:
  ServingPlanner(const PlannerFacts& facts, const ServingQuestion& question)
      : facts_(facts), question_(question) {}

  Result<ServingAnswer> answer() {
    for (std::size_t i = 0; i < question_.machines.size(); ++i) {
      if (Status done = ask(i); !done) return forward_error(done);
    }
    if (offers_.empty()) return tl::unexpected<Error>(nothing_fits());
    for (std::size_t i = 0; i < kServingObjectives; ++i) {
      answer_.by_objective[i] = best_for(static_cast<ServingObjective>(i));
    }
    sort(offers_, question_.objective);
    sort(answer_.apart, question_.objective);
    set_best_of_machines();
    if (offers_.size() > question_.best) offers_.resize(question_.best);
    answer_.plans = std::move(offers_);
    if (Status done = set_all_intervals(); !done) return forward_error(done);
    note_machines();
    note_question();
    return std::move(answer_);
  }

 private:
  Status ask(std::size_t machine) {
    const ServingChoice& choice = question_.machines[machine];
    if (std::optional<Error> unsupported = unsupported_engine(choice)) {
      answer_.refused.push_back({machine, *std::move(unsupported)});
      return {};
    }
    Result<Economics> economics = running_costs_of(facts_, *choice.node, choice.economics);
    if (!economics) return forward_error(economics);
    MachineSearch search(facts_, question_, machine);
    if (std::optional<Error> missing = missing_figure(choice, *economics, search.rack())) {
      answer_.refused.push_back({machine, *std::move(missing)});
      return {};
    }
    if (Status done = search.search(*economics); !done) return done;
    answer_.layouts += search.layouts();
    if (std::optional<ApartOffer> apart = search.take_apart()) {
      answer_.apart.push_back(*std::move(apart));
    }
    std::vector<ServingOffer> found = search.take_offers();
    if (found.empty()) {
      answer_.refused.push_back({machine, search.why()});
      return {};
    }
    backgrounds_.emplace(machine, Background{*std::move(economics), search.rack()});
    offers_.insert(offers_.end(), found.begin(), found.end());
    return {};
  }

  [[nodiscard]] static Error refusal(const ServingChoice& choice, const std::string& why) {
    return {.kind = ErrorKind::kInfeasible, .message = choice.label + ": " + why};
  }

  /// Whether the engine runs there by the catalog; an engine that it does not know may run.
  [[nodiscard]] std::optional<Error> unsupported_engine(const ServingChoice& choice) {
    std::vector<std::string> unread;
    const ServingEngine engine =
        read_engine_text(question_.engine, question_.engine_version, unread);
    const Framework* framework = facts_.catalog.find<Framework>(engine.family);
    if (framework == nullptr) return std::nullopt;
    const Catalog::StackAnswer stack = facts_.catalog.stack(*framework, *choice.accelerator);
    const std::string_view on = choice.accelerator->id;
    if (stack.platform == nullptr) return std::nullopt;
    if (stack.support == Support::kNo) {
      return refusal(choice, fmt::format("{} does not run on {}; --engine names another",
                                         framework->name, on));
    }
    if (stack.support == Support::kExperimental) {
      note_once(fmt::format("{} on {} is experimental", framework->name, on));
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Error> missing_figure(const ServingChoice& choice,
                                                    const Economics& economics,
                                                    const std::optional<RackSize>& rack) const {
    switch (question_.objective) {
      case ServingObjective::kCost:
        if (!economics.price.value) return refusal(choice, economics.price.missing);
        if (!economics.owned || economics.power.value) return std::nullopt;
        return refusal(choice, economics.power.missing);
      case ServingObjective::kEnergy:
        if (economics.power.value) return std::nullopt;
        return refusal(choice, economics.power.missing);
      case ServingObjective::kRack:
        if (rack) return std::nullopt;
        return refusal(
            choice, fmt::format("--objective rack needs the accelerators of a rack: no row of the "
                                "catalog's systems with nodes of {} states nodes_per_rack or "
                                "rack_accelerators; --catalog DIR may add one",
                                choice.node->id));
    }
    return std::nullopt;
  }

  void note_once(const std::string& text) {
    auto& all = answer_.assumptions;
    if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
  }

  void note(const ServingOffer& offer) {
    const ServingChoice& choice = question_.machines[offer.machine];
    const auto& [economics, rack] = backgrounds_.at(offer.machine);
    const double domains = domains_of(offer.plan, choice.domain);
    if (domains <= 1) {
      note_once(fmt::format("{} in nodes of {}; an instance within {} of them",
                            choice.accelerator->id, choice.node->id,
                            std::min(choice.domain, kInstanceMax)));
    } else {
      note_once(fmt::format(
          "{}: no {} of them hold the model in {}, so an instance spans several, over {}",
          choice.label, choice.domain, print_numbers(offer.numbers),
          choice.joined->assumptions.front()));
    }
    if (instance_nodes(choice, offer.plan) > 1) {
      note_once(
          "a replica of a live service is one node: an instance over several is started "
          "with the command of --emit on each");
    }
    for (const std::string& text : economics.assumptions) note_once(text);
    for (const std::string& missing : {economics.power.missing, economics.price.missing}) {
      if (!missing.empty()) note_once("left out: " + missing);
    }
    if (rack) {
      note_once(fmt::format("{} of {} per rack, as in {}", rack->accelerators,
                            choice.accelerator->id, rack->system));
    }
  }

  /// The assumptions on which the listed offers rest.
  void note_machines() {
    for (const ServingOffer& offer : answer_.plans) note(offer);
    for (const std::optional<ServingOffer>& offer : answer_.by_objective) {
      if (offer) note(*offer);
    }
  }

  void note_question() {
    note_once(
        "limits and latencies are means over evenly spaced requests, without reserve for bursts or "
        "failed instances");
    const bool narrow =
        std::any_of(answer_.plans.begin(), answer_.plans.end(), [&](const ServingOffer& offer) {
          return question_.formats.empty() && !question_.model->quantized_format &&
                 offer.numbers.weights != NumberFormat::kBf16 &&
                 offer.numbers.weights != NumberFormat::kFp16;
        });
    if (narrow)
      note_once("weights in a narrower format than published are assumed to be accurate enough");
    if (question_.engine_version.empty()) {
      note_once(fmt::format("{} of a current release", question_.engine));
    }
    const auto* model = std::get_if<Transformer>(&question_.model->architecture);
    const double tokens = question_.input + question_.output;
    if (model != nullptr && model->positions_max > 0 &&
        tokens > static_cast<double>(model->positions_max)) {
      note_once(fmt::format("requests of {} tokens exceed the maximum of the model, {} tokens",
                            tokens, model->positions_max));
    }
  }

  template <class Offer>
  static void sort(std::vector<Offer>& offers, ServingObjective objective) {
    std::stable_sort(offers.begin(), offers.end(), [&](const Offer& a, const Offer& b) {
      const double one = score_of(a.quote, objective).value_or(INFINITY);
      const double other = score_of(b.quote, objective).value_or(INFINITY);
      if (one != other) return one < other;
      return a.accelerators() < b.accelerators();
    });
  }

  [[nodiscard]] std::optional<ServingOffer> best_for(ServingObjective objective) const {
    const ServingOffer* best = nullptr;
    for (const ServingOffer& offer : offers_) {
      const std::optional<double> score = score_of(offer.quote, objective);
      if (!score) continue;
      if (best == nullptr || *score < *score_of(best->quote, objective)) best = &offer;
    }
    return best == nullptr ? std::nullopt : std::optional(*best);
  }

  /// Precondition: the offers are sorted.
  void set_best_of_machines() {
    std::vector<bool> seen(question_.machines.size(), false);
    for (const ServingOffer& offer : offers_) {
      if (seen[offer.machine]) continue;
      seen[offer.machine] = true;
      answer_.by_machine.push_back(offer);
    }
  }

  Status set_intervals(ServingOffer& offer) const {
    Result<ServingEstimate> estimate =
        estimate_serving(run_of(question_, offer), facts_.calibration);
    if (!estimate) return forward_error(estimate);
    offer.throughput = estimate->throughput;
    offer.latency = estimate->latency;
    offer.first_token = estimate->first_token;
    return {};
  }

  Status set_all_intervals() {
    Status done;
    for (std::vector<ServingOffer>* list : {&answer_.plans, &answer_.by_machine}) {
      for (ServingOffer& offer : *list) {
        if (done) done = set_intervals(offer);
      }
    }
    for (std::optional<ServingOffer>& offer : answer_.by_objective) {
      if (done && offer) done = set_intervals(*offer);
    }
    return done;
  }

  /// Instances of two kinds may serve what joint ones cannot.
  [[nodiscard]] Error with_apart(Error why) const {
    if (answer_.apart.empty()) return why;
    const ApartOffer& offer = answer_.apart.front();
    why.message +=
        fmt::format("; {:.0f} x {} for prefill and {:.0f} x {} for decode apart on {}",
                    offer.prompts.replicas, print_layout(offer.prompts), offer.answers.replicas,
                    print_layout(offer.answers), question_.machines[offer.machine].label);
    return why;
  }

  [[nodiscard]] Error nothing_fits() const {
    if (answer_.refused.size() == 1) return with_apart(answer_.refused.front().why);
    Error all{.kind = ErrorKind::kInfeasible, .message = "no machine has a service:"};
    for (const ServingRefusal& refusal : answer_.refused) {
      all.message += "\n  " + refusal.why.message;
    }
    return with_apart(std::move(all));
  }

  struct Background {
    Economics economics;
    std::optional<RackSize> rack;
  };

  const PlannerFacts& facts_;
  const ServingQuestion& question_;
  std::map<std::size_t, Background> backgrounds_;  // backgrounds of machines with offers
  std::vector<ServingOffer> offers_;
  ServingAnswer answer_;
};

Status check(const ServingQuestion& question) {
  const auto whole = [](std::string_view what, double value) -> Status {
    if (value >= 1 && value <= kTokensMax && std::floor(value) == value) return {};
    return input_error({}, fmt::format("{}: {}: expected a whole number from 1 to {:.0f}", what,
                                       value, kTokensMax));
  };
  const auto positive = [](std::string_view what, double value) -> Status {
    if (value > 0 && value <= kRateMax) return {};
    return input_error(
        {}, fmt::format("{}: {}: expected more than 0 and at most {:.0f}", what, value, kRateMax));
  };
  Status checked = whole("input-tokens", question.input);
  if (checked) checked = whole("output-tokens", question.output);
  if (checked && question.rate) checked = positive("rate", *question.rate);
  if (checked && question.limits.ttft) checked = positive("ttft", question.limits.ttft->value());
  if (checked && question.limits.tpot) checked = positive("tpot", question.limits.tpot->value());
  if (checked && question.machines.empty()) checked = input_error({}, "no machine to plan for");
  return checked;
}

}  // namespace

ServingChoice serving_choice(const Catalog& catalog, const Accelerator& accelerator,
                             std::optional<std::uint64_t> accelerators) {
  const NodeType& node = catalog.default_node(accelerator);
  const bool joined = accelerator.scale_up.bandwidth_per_direction.has_value();
  const int domain =
      std::max(node.accelerators_per_node, joined ? node.scale_up_domain_accelerators : 1);
  ServingChoice choice{
      .label = accelerators ? fmt::format("{}:{}", accelerator.id, *accelerators) : accelerator.id,
      .accelerator = &accelerator,
      .node = &node,
      .accelerators = accelerators,
      .domain = static_cast<std::uint32_t>(std::max(1, domain)),
      .economics = {}};
  if (node.compute_bandwidth.value() > 0 || accelerator.typical_scale_out) {
    Result<Machine> machine = machine_of(
        catalog, {.accelerator = &accelerator, .accelerators = kInstanceMax, .scale_out = true});
    if (machine) choice.joined = *std::move(machine);
  }
  return choice;
}

std::uint32_t largest_instance(const ServingChoice& choice) {
  const std::uint64_t there =
      choice.accelerators.value_or(std::uint64_t{kInstanceMax} * choice.domain);
  const std::uint64_t domains = choice.joined ? there / choice.domain : 0;
  const std::uint64_t most = domains < 2 ? std::min<std::uint64_t>(there, choice.domain)
                                         : domains * std::bit_floor(choice.domain);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(most, kInstanceMax));
}

std::uint32_t instance_nodes(const ServingChoice& choice, const ServingPlan& plan) {
  const int of_node = choice.node != nullptr ? choice.node->accelerators_per_node : 0;
  const auto each = of_node > 0 ? static_cast<std::uint32_t>(of_node) : choice.domain;
  return static_cast<std::uint32_t>(std::ceil(devices_of(plan) / std::bit_floor(each)));
}

std::optional<double> score_of(const ServingQuote& quote, ServingObjective objective) {
  switch (objective) {
    case ServingObjective::kCost:
      return quote.dollars_per_million;
    case ServingObjective::kEnergy:
      if (!quote.tokens_per_joule) return std::nullopt;
      return 1 / *quote.tokens_per_joule;
    case ServingObjective::kRack:
      if (!quote.tokens_per_rack) return std::nullopt;
      return -*quote.tokens_per_rack;
  }
  return std::nullopt;
}

ServingRun run_of(const ServingQuestion& question, const ServingChoice& choice,
                  const ServingNumbers& numbers) {
  ServingRun run;
  run.id = choice.label;
  run.model = *question.model;
  run.accelerator = choice.accelerator;
  if (choice.joined) run.joined = JoinedDomains{.domain = choice.domain, .machine = *choice.joined};
  run.power_limit = choice.economics.power.cap;
  run.count = 1;
  run.engine_text = question.engine;
  run.version_text = question.engine_version;
  run.weights = numbers.weights;
  run.activations = numbers.activations;
  run.input_tokens = question.input;
  run.output_tokens = question.output;
  run.scenario = ServingRun::kServer;
  return run;
}

ServingRun run_of(const ServingQuestion& question, const ServingOffer& offer) {
  ServingRun run = run_of(question, question.machines[offer.machine], offer.numbers);
  const auto whole = [](double value) { return static_cast<std::uint32_t>(value); };
  run.count = whole(devices_of(offer.plan));
  run.plan.tp = whole(offer.plan.tp);
  run.plan.pp = whole(offer.plan.pp);
  run.plan.ep = whole(offer.plan.ep);
  run.plan.attention_dp = whole(offer.plan.attention_dp);
  run.concurrency = offer.concurrency;
  if (question.rate) run.request_rate = *question.rate / offer.plan.replicas;
  return run;
}

Result<ServingAnswer> plan_serving(const PlannerFacts& facts, const ServingQuestion& question) {
  if (Status checked = check(question); !checked) return forward_error(checked);
  return ServingPlanner(facts, question).answer();
}

}  // namespace orrery
