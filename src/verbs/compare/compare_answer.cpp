#include "verbs/compare/compare_answer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/quantity_text.hpp"
#include "base/text/text_table.hpp"
#include "planner/launch/layout_text.hpp"
#include "verbs/option_text.hpp"
#include "verbs/plan/plan_json.hpp"
#include "verbs/plan/plan_text.hpp"

namespace orrery {
namespace {

/// Returns the options of each contender; all train the same batch.
Result<std::vector<PlanOptions>> contenders_of(const CommandOptions& options,
                                               const CompareCall& call) {
  std::vector<PlanOptions> all;
  PlanOptions plan = call.options;
  plan.top = 1;
  if (!plan.machines.accelerators.empty()) {
    const Result<PlanRequest> joint = plan_request(options, plan);
    if (!joint) return tl::unexpected(joint.error());
    plan.training.global_batch = joint->question.job.global_batch;
    for (const std::string& each : pieces(call.options.machines.accelerators)) {
      plan.machines.accelerators = each;
      all.push_back(plan);
    }
    plan.machines.accelerators.clear();
  }
  for (const std::string& fleet : call.fleets) {
    plan.machines.fleet = fleet;
    all.push_back(plan);
    if (plan.training.global_batch) continue;
    const Result<PlanRequest> first = plan_request(options, plan);
    if (!first) return tl::unexpected(first.error());
    plan.training.global_batch = all.back().training.global_batch =
        first->question.job.global_batch;
  }
  if (all.size() < 2) {
    return input_error(
        {}, "expected two or more machines: --accelerators TYPE:N,TYPE:N or --fleet FILE");
  }
  return all;
}

std::string contenders_table(const std::vector<Contender>& contenders) {
  const std::string_view unit = word_of(unit_of(*contenders.front().request.model));
  TextTable table({{"of"},
                   {"machine"},
                   {"layout"},
                   {"step", Align::kRight},
                   {"MFU (16-bit)", Align::kRight},
                   {std::string(unit) + "/s", Align::kRight},
                   {"run", Align::kRight},
                   {"cost", Align::kRight},
                   {"energy", Align::kRight},
                   {std::string(unit) + "/s/W", Align::kRight},
                   {"pJ/FLOP", Align::kRight},
                   {"goodput", Align::kRight}});
  for (const Contender& each : contenders) {
    const PlanOffer* best = each.best();
    if (best == nullptr) continue;
    const PlanQuote& quote = best->quote;
    const auto& per_flop = quote.joules_per_flop;
    table.add(
        {each.name, each.machine().label, print_layout(best->plan),
         duration_text(best->cost.seconds), fmt::format("{:.1f} %", best->mfu * 100),
         rate_number(quote.tokens_per_second),
         quote.run_time ? duration_text(quote.run_time->value()) : "-",
         quote.run_cost ? print(*quote.run_cost) : "?",
         quote.run_energy ? print(quote.run_energy->facility) : "?",
         quote.tokens_per_second_watt ? fmt::format("{:.3g}", *quote.tokens_per_second_watt) : "?",
         per_flop ? fmt::format("{:.3g}", per_flop->value() * 1e12) : "?",
         quote.goodput ? fmt::format("{:.1f} %", quote.goodput->effective * 100) : "?"});
  }
  return table.text();
}

std::string contenders_text(const std::vector<Contender>& contenders) {
  const auto found = std::ranges::find_if(
      contenders, [](const Contender& each) { return each.best() != nullptr; });
  const Contender* first = found == contenders.end() ? nullptr : &*found;
  std::string text = job_text(contenders.front().request.question);
  if (first != nullptr && first->answer->run.length) {
    const RunLength& run = first->answer->run;
    text += ", a run of " + print_run(run.unit, *run.length);
  }
  text += "\n\n" + contenders_table(contenders);
  for (const Contender& each : contenders) {
    if (each.best() == nullptr) {
      text += fmt::format("\n{} has no plan: {}\n", each.name, each.answer.error().message);
    } else if (&each != first) {
      text += fmt::format("\n{} against {}: {}\n", each.name, first->name,
                          loss_text(*first->best(), *each.best()));
    }
  }
  return text;
}

Json contenders_json(const std::vector<Contender>& contenders) {
  Json rows = Json::array();
  for (const Contender& each : contenders) {
    Json row = {{"name", each.name}};
    if (each.best() != nullptr) {
      row["plan"] = offer_json(*each.best(), each.machine(), each.answer->run);
      row["assumptions"] = each.request.assumptions;
      for (const std::string& text : each.answer->assumptions) row["assumptions"].push_back(text);
    } else {
      row["error"] = each.answer.error().message;
    }
    rows.push_back(std::move(row));
  }
  return {{"rows", rows}};
}

Result<VerbAnswer> compare_benchmark(const CommandOptions& options,
                                     const BenchmarkQuestion& question) {
  const Result<Facts> facts = load_facts(options);
  if (!facts) return tl::unexpected(facts.error());
  return report_benchmark(*facts, question);
}

}  // namespace

VerbAnswer contenders_answer(const std::vector<Contender>& contenders) {
  return {contenders_text(contenders), contenders_json(contenders)};
}

Result<VerbAnswer> report_comparison(const CommandOptions& options, const CompareCall& call) {
  if (!call.benchmark.name.empty()) return compare_benchmark(options, call.benchmark);
  if (call.options.model.empty()) return input_error({}, "expected --model or --benchmark");
  Result<std::vector<PlanOptions>> plans = contenders_of(options, call);
  if (!plans) return forward_error(plans);
  std::vector<Contender> contenders;
  bool any = false;
  for (const PlanOptions& plan_options : *plans) {
    Result<PlanRequest> request = plan_request(options, plan_options);
    if (!request) return forward_error(request);
    const PlanMachines& machines = plan_options.machines;
    Result<PlanAnswer> answer = plan(request->facts(), request->question);
    any = any || answer.has_value();
    contenders.push_back({machines.fleet.empty() ? machines.accelerators : machines.fleet,
                          *std::move(request), std::move(answer)});
  }
  if (!any) return tl::unexpected(contenders.front().answer.error());
  return contenders_answer(contenders);
}

}  // namespace orrery
