#include "verbs/plan/plan_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/format/field_writer.hpp"
#include "base/text/quantity_text.hpp"
#include "base/text/text_table.hpp"
#include "planner/launch/layout_text.hpp"

namespace orrery {
namespace {

constexpr double kGibibyte = 1u << 30;
constexpr double kDay = 86400;
/// Terms named when two plans are compared.
constexpr std::size_t kTermsNamed = 3;
constexpr std::size_t kWidth = 100;

std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }

template <class Q>
std::string or_unknown(const std::optional<Q>& figure) {
  return figure ? print(*figure) : "?";
}

std::string plans_table(const PlanAnswer& answer, const PlanRequest& request) {
  TextTable table({{"#", Align::kRight},
                   {"machine"},
                   {"layout"},
                   {"step", Align::kRight},
                   {"80 % interval", Align::kRight},
                   {"MFU (16-bit)", Align::kRight},
                   {"memory", Align::kRight},
                   {"cost per step", Align::kRight},
                   {"energy", Align::kRight}});
  std::size_t rank = 0;
  for (const PlanOffer& offer : answer.plans) {
    table.add({std::to_string(++rank), request.question.machines[offer.machine].label,
               print_layout(offer.plan), duration_text(offer.cost.seconds),
               duration_text(offer.seconds_low) + " to " + duration_text(offer.seconds_high),
               percent(offer.mfu), fmt::format("{:.1f} GiB", offer.cost.memory.total() / kGibibyte),
               or_unknown(offer.quote.step_cost), or_unknown(offer.quote.step_energy)});
  }
  return table.text();
}

std::string terms_table(const PlanOffer& offer) {
  TextTable table({{"term"}, {"time", Align::kRight}, {"share", Align::kRight}, {"meaning"}});
  for (std::size_t i = 0; i < kTerms; ++i) {
    const double seconds = offer.cost.terms.seconds[i];
    if (seconds <= 0) continue;
    table.add({std::string(kTermNames[i]), duration_text(seconds),
               percent(seconds / offer.cost.seconds),
               std::string(meaning_of(static_cast<Term>(i)))});
  }
  table.add({"step", duration_text(offer.cost.seconds), "100.0 %", ""});
  return table.text();
}

std::string memory_text(const TrainingMemory& m) {
  const auto gib = [](double bytes) { return fmt::format("{:.1f}", bytes / kGibibyte); };
  return fmt::format(
      "Memory of the fullest rank, GiB: weights {}, gradients {}, optimizer {}, activations {}, "
      "transient {}, gathered {}, runtime {}; total {}.\n",
      gib(m.weights), gib(m.gradients), gib(m.optimizer), gib(m.activations), gib(m.transient),
      gib(m.gathered), gib(m.runtime), gib(m.total()));
}

std::string rate_text(const PlanQuote& quote, SampleUnit unit) {
  const std::string_view word = word_of(unit);
  std::string text = fmt::format("{} {}/s", rate_number(quote.tokens_per_second), word);
  if (quote.tokens_per_second_watt) {
    text += fmt::format(", {:.3g} {}/s per watt, {:.3g} pJ/FLOP, power {}",
                        *quote.tokens_per_second_watt, word, quote.joules_per_flop->value() * 1e12,
                        print(*quote.power));
  }
  return text + ".\n";
}

/// What a run of no stated length costs by the piece.
std::string thousand_text(const PlanQuote& quote, double step_seconds, SampleUnit unit) {
  constexpr double kThousand = 1000;
  const double steps = kThousand / (quote.tokens_per_second * step_seconds);
  std::string text =
      fmt::format("1,000 {}: {}", word_of(unit), duration_text(steps * step_seconds));
  if (quote.step_cost) text += ", " + print(*quote.step_cost * steps);
  if (quote.step_energy) text += ", " + print(*quote.step_energy * steps);
  return text + ", without failures.\n";
}

std::string mfu_text(const PlanOffer& offer, NumberFormat format) {
  std::string text = fmt::format("MFU {} of the dense 16-bit peak", percent(offer.mfu));
  if (offer.format_mfu != offer.mfu) {
    text += fmt::format(", {} of the {} peak", percent(offer.format_mfu), word_of(format));
  }
  return text + ". ";
}

std::string run_text(const PlanOffer& offer, const RunLength& run) {
  const PlanQuote& quote = offer.quote;
  std::string text = rate_text(quote, run.unit);
  if (!run.length || !quote.run_steps || !quote.run_time) {
    return text + thousand_text(quote, offer.cost.seconds, run.unit);
  }
  text += fmt::format("A run of {}: {} steps, {}", print_run(run.unit, *run.length),
                      print_count(*quote.run_steps), duration_text(quote.run_time->value()));
  if (quote.run_cost) text += ", " + print(*quote.run_cost);
  if (quote.run_energy) {
    text += fmt::format(", {} kWh at the meter, {} t of CO2",
                        print_count(std::round(kilowatt_hours(quote.run_energy->facility))),
                        print_count(std::round(quote.run_energy->carbon.value() / 1e6)));
  }
  text += ".\n";
  if (quote.goodput) {
    const Goodput& g = *quote.goodput;
    text += fmt::format(
        "Goodput {} with a checkpoint every {}: lost work {}, restarts {}, detection {}, "
        "checkpoints {}.\n",
        percent(g.effective), duration_text(g.interval.value()), percent(g.lost_work),
        percent(g.restart + g.reading), percent(g.detection), percent(g.checkpoints));
  }
  return text;
}

std::string pareto_text(const PlanAnswer& answer, const PlanRequest& request) {
  if (answer.pareto.size() < 2) return "";
  TextTable table({{"machine"},
                   {"layout"},
                   {"step", Align::kRight},
                   {"cost per step", Align::kRight},
                   {"energy", Align::kRight}});
  for (const PlanOffer& offer : answer.pareto) {
    table.add({request.question.machines[offer.machine].label, print_layout(offer.plan),
               duration_text(offer.cost.seconds), or_unknown(offer.quote.step_cost),
               or_unknown(offer.quote.step_energy)});
  }
  return "\nBest trade-offs between time, cost and energy\n" + table.text();
}

std::string assumptions_text(const PlanAnswer& answer, const PlanRequest& request) {
  std::vector<std::string> all = request.assumptions;
  all.insert(all.end(), answer.assumptions.begin(), answer.assumptions.end());
  for (const MachineRefusal& refusal : answer.refused) {
    all.push_back("no plan: " + refusal.why.message);
  }
  if (all.empty()) return "";
  std::string text = "\nAssumptions\n";
  for (const std::string& each : all) {
    std::string_view mark = "- ";
    for (const std::string& line : wrapped(each, kWidth - 2)) {
      text += fmt::format("{}{}\n", mark, line);
      mark = "  ";
    }
  }
  return text;
}

}  // namespace

std::string_view meaning_of(Term term) {
  switch (term) {
    case Term::kMatmul:
      return "matrix products of the layers, forward and backward";
    case Term::kAttention:
      return "attention scores and their product with the values";
    case Term::kElementwise:
      return "norms, activations, residuals and casts, bound by memory";
    case Term::kRecompute:
      return "forward pass repeated in the backward pass to save memory";
    case Term::kEnds:
      return "embedding, output matrix and loss on the slowest stage";
    case Term::kTensorParallel:
      return "activations exchanged inside tensor-parallel groups, not hidden";
    case Term::kContextParallel:
      return "keys and values exchanged along the sequence, not hidden";
    case Term::kExpertParallel:
      return "tokens sent to experts and back, not hidden";
    case Term::kShard:
      return "sharded parameters gathered before use, not hidden";
    case Term::kPipelineSend:
      return "activations sent from stage to stage, not hidden";
    case Term::kPipelineBubble:
      return "stages that wait for the first and last micro-batches";
    case Term::kDataParallel:
      return "gradients reduced between replicas, not hidden";
    case Term::kOptimizer:
      return "update of the weights";
    case Term::kOffload:
      return "traffic to host memory, not hidden";
    case Term::kInput:
      return "waiting for training data";
    case Term::kLaunch:
      return "host work and gaps between kernels";
    case Term::kStraggler:
      return "waiting for the slowest rank";
  }
  return "";
}

std::string job_text(const PlanQuestion& question) {
  const SampleUnit unit = unit_of(*question.job.model);
  return fmt::format("{}, {} {} of {} tokens, {}", question.job.model->name,
                     print_count(question.job.global_batch),
                     unit == SampleUnit::kTokens ? "sequences" : word_of(unit),
                     print_count(question.job.sequence.value()),
                     word_of(question.job.precision.format));
}

std::string duration_text(double seconds) {
  // Up to where three digits would be a whole unit more, not "1e+03 ms".
  if (seconds < 0.9995e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 600) return fmt::format("{:.3g} s", seconds);
  if (seconds < kHour.value()) return fmt::format("{:.3g} min", seconds / 60);
  if (seconds < 2 * kDay) return fmt::format("{:.3g} h", seconds / kHour.value());
  const double days = seconds / kDay;
  if (days < 999.5) return fmt::format("{:.3g} days", days);
  return fmt::format("{} days", print_count(std::round(days)));
}

std::string rate_number(double rate) {
  return rate >= 100 ? print_count(std::round(rate)) : fmt::format("{:.3g}", rate);
}

std::string loss_text(const PlanOffer& winner, const PlanOffer& loser) {
  const double longer = loser.cost.seconds - winner.cost.seconds;
  std::vector<std::string> terms;
  for (const TermDifference& each : differences(winner.cost.terms, loser.cost.terms)) {
    if (terms.size() == kTermsNamed || std::abs(each.seconds) < 1e-3 * winner.cost.seconds) break;
    terms.push_back(fmt::format("{} {}{}", kTermNames[static_cast<std::size_t>(each.term)],
                                each.seconds < 0 ? "-" : "+",
                                duration_text(std::abs(each.seconds))));
  }
  const std::string head =
      fmt::format("{} {}", duration_text(std::abs(longer)), longer < 0 ? "shorter" : "longer");
  if (terms.empty()) return head + ", no term differs by more than 0.1 %";
  return fmt::format("{}: {}", head, fmt::join(terms, ", "));
}

std::string answer_text(const PlanAnswer& answer, const PlanRequest& request) {
  const SearchCounters& c = answer.counters;
  std::string text = fmt::format(
      "{}\n{} layouts: {} do not fit in memory, {} cannot be among the best, {} evaluated.\n\n",
      job_text(request.question), print_count(static_cast<double>(c.enumerated)),
      print_count(static_cast<double>(c.out_of_memory)), print_count(static_cast<double>(c.pruned)),
      print_count(static_cast<double>(c.evaluated)));
  text += plans_table(answer, request);
  const PlanOffer& best = answer.plans.front();
  text += "\nStep time of plan 1, by term\n" + terms_table(best) + "\n";
  text += memory_text(best.cost.memory);
  text += mfu_text(best, request.question.job.precision.format) + run_text(best, answer.run);
  if (answer.plans.size() > 1) {
    text += "Step of plan 2 against plan 1: " + loss_text(best, answer.plans[1]) + ".\n";
  }
  return text + pareto_text(answer, request) + assumptions_text(answer, request);
}

std::string sensitivity_text(const std::vector<Sensitivity>& sensitivities) {
  TextTable table({{"+1 % of"},
                   {"step", Align::kRight},
                   {"cost of the run", Align::kRight},
                   {"energy", Align::kRight},
                   {"-1 %: step", Align::kRight},
                   {"cost of the run", Align::kRight},
                   {"energy", Align::kRight}});
  const auto shown = [](const std::optional<double>& change) {
    return change ? fmt::format("{:+.3f} %", *change * 100) : std::string("?");
  };
  for (const Sensitivity& each : sensitivities) {
    table.add({std::string(word_of(each.figure)), shown(each.up.step), shown(each.up.cost),
               shown(each.up.energy), shown(each.down.step), shown(each.down.cost),
               shown(each.down.energy)});
  }
  return "\nEffect of a 1 % change of each hardware figure on the best plan\n" + table.text();
}

}  // namespace orrery
