#include "planner/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/format/field_writer.hpp"
#include "base/text/quantity_text.hpp"
#include "perf/machine/measured_parts.hpp"
#include "perf/software_release.hpp"
#include "perf/training/training_estimate.hpp"
#include "planner/infeasible.hpp"
#include "planner/launch/training_stack.hpp"
#include "planner/run_estimate.hpp"

namespace orrery {
namespace {

/// Number of plans of each machine from which the Pareto set is chosen.
constexpr std::size_t kKept = 32;

class Planner {
 public:
  Planner(const PlannerFacts& facts, const PlanQuestion& question)
      : facts_(facts), question_(question) {}

  Result<PlanAnswer> answer() {
    answer_.run = run_length_of(question_.job, question_.run);
    if (question_.objective == Objective::kTimeUnderBudget && !answer_.run.length) {
      return input_error({}, answer_.run.assumption + "; the objective needs it");
    }
    if (!answer_.run.assumption.empty()) answer_.assumptions.push_back(answer_.run.assumption);
    for (std::size_t i = 0; i < question_.machines.size(); ++i) {
      if (Status done = ask(i); !done) return forward_error(done);
    }
    if (offers_.empty()) return tl::unexpected<Error>(nothing_fits());
    std::stable_sort(offers_.begin(), offers_.end(),
                     [](const PlanOffer& a, const PlanOffer& b) { return a.score < b.score; });
    set_pareto();
    if (Status kept = keep_affordable(); !kept) return forward_error(kept);
    if (offers_.size() > question_.best) offers_.resize(question_.best);
    answer_.plans = std::move(offers_);
    return std::move(answer_);
  }

 private:
  Status ask(std::size_t machine) {
    MachineChoice choice = question_.machines[machine];
    if (Status runs = check_training_stack(facts_.catalog, *choice.machine.accelerator); !runs) {
      answer_.refused.push_back({machine, runs.error()});
      return {};
    }
    if (Status capped = apply_power_cap(facts_, choice.economics.power, choice.machine); !capped) {
      return capped;
    }
    Result<TrainingModel> model =
        TrainingModel::make(question_.job, choice.machine, facts_.calibration);
    if (!model) return forward_error(model);
    Result<Economics> economics =
        economics_of(facts_, choice.machine, model->work(), choice.economics);
    if (!economics) return forward_error(economics);
    if (std::optional<Error> missing = missing_figure(*economics)) {
      answer_.refused.push_back({machine, *std::move(missing)});
      return {};
    }
    const SearchResult found = search_on(*model, choice.machine, *economics);
    count(found.counters);
    if (found.best.empty()) {
      answer_.refused.push_back({machine, why_no_plan(facts_, question_, machine, found)});
      return {};
    }
    note(machine, *economics);
    for (const RankedPlan& ranked : found.best) offer(machine, *model, *economics, ranked);
    return {};
  }

  [[nodiscard]] std::optional<Error> missing_figure(const Economics& economics) const {
    const auto refuse = [](const std::string& why) {
      return Error{.kind = ErrorKind::kInfeasible, .message = why};
    };
    const bool dollars = question_.objective == Objective::kCost ||
                         question_.objective == Objective::kTimeUnderBudget;
    if (dollars && !economics.price.value) return refuse(economics.price.missing);
    const bool joules = question_.objective == Objective::kEnergy || (dollars && economics.owned);
    if (joules && !economics.power.value) return refuse(economics.power.missing);
    return std::nullopt;
  }

  [[nodiscard]] SearchResult search_on(const TrainingModel& model, const Machine& machine,
                                       const Economics& economics) {
    PlanSpace space = question_.space;
    space.tp_max = space_of(machine).tp_max;
    SearchOptions options{.best = std::max(question_.best, kKept), .effort = question_.effort};
    if (question_.objective == Objective::kEnergy) {
      options.score = [&economics](const ParallelPlan&, const StepCost& cost) {
        return step_energy(economics, cost).value_or(Joules(INFINITY)).value();
      };
      options.floor = [&economics](double seconds) {
        return floor_of_energy(economics, seconds).value();
      };
    }
    if (question_.progress) {
      options.progress = [this](const SearchCounters& now) {
        SearchCounters all = answer_.counters;
        add(all, now);
        question_.progress(all);
      };
    }
    return search(model, space, options);
  }

  static void add(SearchCounters& sum, const SearchCounters& more) {
    sum.invalid += more.invalid;
    sum.enumerated += more.enumerated;
    sum.out_of_memory += more.out_of_memory;
    sum.pruned += more.pruned;
    sum.evaluated += more.evaluated;
  }
  void count(const SearchCounters& more) { add(answer_.counters, more); }

  void note(std::size_t machine, const Economics& economics) {
    const auto add_once = [&](const std::string& text) {
      auto& all = answer_.assumptions;
      if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
    };
    const Machine& here = question_.machines[machine].machine;
    if (const std::string software = software_text(here); !software.empty()) add_once(software);
    if (const std::string doubt = evidence_text(*here.accelerator); !doubt.empty()) {
      add_once(doubt);
    }
    for (const std::string& text : here.assumptions) add_once(text);
    for (const std::string& text : training_lacks(*here.accelerator, question_.job)) {
      add_once(text);
    }
    for (const std::string& text : economics.assumptions) add_once(text);
    for (const std::string& missing : {economics.power.missing, economics.price.missing}) {
      if (!missing.empty()) add_once("left out: " + missing);
    }
  }

  /// The software for which plans on the machine are priced; empty where releases make no
  /// difference.
  [[nodiscard]] std::string software_text(const Machine& machine) const {
    if (!has_releases(machine)) return {};
    const std::optional<double>& release = question_.job.release;
    if (release) {
      return fmt::format(
          "software: NeMo release {} for plans that Megatron runs; --release states "
          "another",
          release_name(*release));
    }
    const std::optional<double> first =
        facts_.calibration.find("release.unknown." + machine.generation);
    if (!first) return {};
    return fmt::format(
        "software: no release; computation on {} takes {:.2f} times as long, as with "
        "its first software",
        machine.generation, *first);
  }

  void offer(std::size_t machine, const TrainingModel& model, const Economics& economics,
             const RankedPlan& ranked) {
    const double sequence = model.work().token_model ? question_.job.sequence.value() : 1;
    const RunSize size{.length = answer_.run.length,
                       .step_length = question_.job.global_batch * sequence,
                       .step_flops = model.model_flops()};
    PlanOffer offer{.machine = machine, .plan = ranked.plan, .cost = ranked.cost};
    const std::string kind = kind_of_question({.job = question_.job,
                                               .machine = question_.machines[machine].machine,
                                               .plan = ranked.plan});
    const Accelerator& accelerator = *question_.machines[machine].machine.accelerator;
    const Interval interval =
        interval_on(facts_.calibration, accelerator, kind, ranked.cost.seconds);
    offer.seconds_low = interval.low;
    offer.seconds_high = interval.high;
    offer.mfu = model.utilisation(ranked.cost.seconds);
    offer.format_mfu = model.format_utilisation(ranked.cost.seconds);
    offer.quote = quote_of(economics, ranked.cost, size);
    offer.score = score_of(offer);
    offers_.push_back(std::move(offer));
  }

  [[nodiscard]] double score_of(const PlanOffer& offer) const {
    switch (question_.objective) {
      case Objective::kTime:
      case Objective::kTimeUnderBudget:
        return offer.cost.seconds;
      case Objective::kCost:
        return offer.quote.step_cost.value_or(Dollars(INFINITY)).value();
      case Objective::kEnergy:
        return offer.quote.step_energy.value_or(Joules(INFINITY)).value();
    }
    return offer.cost.seconds;
  }

  Status keep_affordable() {
    if (question_.objective != Objective::kTimeUnderBudget) return {};
    const Dollars budget = question_.budget.value_or(Dollars(0));
    Dollars least(INFINITY);
    for (const PlanOffer& offer : offers_) {
      least = std::min(least, offer.quote.run_cost.value_or(Dollars(INFINITY)));
    }
    std::erase_if(offers_, [&](const PlanOffer& offer) {
      return offer.quote.run_cost.value_or(Dollars(INFINITY)) > budget;
    });
    if (!offers_.empty()) return {};
    return infeasible(fmt::format("no plan finishes {} for {}; the cheapest run costs {}",
                                  print_run(answer_.run.unit, answer_.run.length.value_or(0)),
                                  print(budget), print(least)));
  }

  static bool dominates(const PlanOffer& a, const PlanOffer& b) {
    const auto value = [](const auto& figure) { return figure ? figure->value() : 0; };
    const std::array<double, 3> one = {a.cost.seconds, value(a.quote.step_cost),
                                       value(a.quote.step_energy)};
    const std::array<double, 3> two = {b.cost.seconds, value(b.quote.step_cost),
                                       value(b.quote.step_energy)};
    bool better = false;
    for (std::size_t i = 0; i < one.size(); ++i) {
      if (one[i] > two[i]) return false;
      better = better || one[i] < two[i];
    }
    return better;
  }

  void set_pareto() {
    for (const PlanOffer& candidate : offers_) {
      const bool beaten = std::any_of(offers_.begin(), offers_.end(), [&](const PlanOffer& other) {
        return dominates(other, candidate);
      });
      if (!beaten) answer_.pareto.push_back(candidate);
    }
    std::stable_sort(
        answer_.pareto.begin(), answer_.pareto.end(),
        [](const PlanOffer& a, const PlanOffer& b) { return a.cost.seconds < b.cost.seconds; });
  }

  [[nodiscard]] Error nothing_fits() const {
    if (answer_.refused.size() == 1) return answer_.refused.front().why;
    Error all{.kind = ErrorKind::kInfeasible, .message = "no machine has a plan:"};
    for (const MachineRefusal& refusal : answer_.refused)
      all.message += "\n  " + refusal.why.message;
    return all;
  }

  const PlannerFacts& facts_;
  const PlanQuestion& question_;
  std::vector<PlanOffer> offers_;
  PlanAnswer answer_;
};

}  // namespace

Result<PlanAnswer> plan(const PlannerFacts& facts, const PlanQuestion& question) {
  if (question.machines.empty()) return input_error({}, "no machine to plan for");
  return Planner(facts, question).answer();
}

std::vector<TermDifference> differences(const Breakdown& one, const Breakdown& other) {
  std::vector<TermDifference> all;
  for (std::size_t i = 0; i < kTerms; ++i) {
    all.push_back({static_cast<Term>(i), other.seconds[i] - one.seconds[i]});
  }
  std::stable_sort(all.begin(), all.end(), [](const TermDifference& a, const TermDifference& b) {
    return std::abs(a.seconds) > std::abs(b.seconds);
  });
  return all;
}

}  // namespace orrery
