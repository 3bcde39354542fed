// orrery compare
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "apps/orrery/plan_options.hpp"
#include "base/format/field_writer.hpp"
#include "base/text/quantity_text.hpp"
#include "base/text/text_table.hpp"
#include "planner/launch/layout_text.hpp"
#include "verbs/plan/benchmark_report.hpp"
#include "verbs/plan/plan_json.hpp"
#include "verbs/plan/plan_text.hpp"

namespace orrery {
namespace {

struct CompareCall {
  PlanOptions options;
  std::vector<std::string> fleets;
  std::string benchmark;
  std::string runs = "data/runs/training_runs.json";
};

/// One type or fleet, and its best plan or why it has none.
struct Contender {
  std::string name;
  PlanRequest request;
  Result<PlanAnswer> answer;

  [[nodiscard]] const PlanOffer* best() const { return answer ? &answer->plans.front() : nullptr; }
  [[nodiscard]] const MachineChoice& machine() const {
    return request.question.machines[best()->machine];
  }
};

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// The options of each contender; all train the same batch.
Result<std::vector<PlanOptions>> contenders_of(const CommandOptions& options,
                                               const CompareCall& call) {
  std::vector<PlanOptions> all;
  PlanOptions plan = call.options;
  plan.top = 1;
  if (!plan.accelerators.empty()) {
    Result<PlanRequest> joint = plan_request(options, plan);
    if (!joint) return forward_error(joint);
    plan.global_batch = joint->question.job.global_batch;
    for (const std::string& each : split(call.options.accelerators)) {
      plan.accelerators = each;
      all.push_back(plan);
    }
    plan.accelerators.clear();
  }
  for (const std::string& fleet : call.fleets) {
    plan.fleet = fleet;
    all.push_back(plan);
    if (plan.global_batch) continue;
    Result<PlanRequest> first = plan_request(options, plan);
    if (!first) return forward_error(first);
    plan.global_batch = all.back().global_batch = first->question.job.global_batch;
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

void print_contenders(const std::vector<Contender>& contenders) {
  const Contender* first = nullptr;
  for (const Contender& each : contenders) {
    if (first == nullptr && each.best() != nullptr) first = &each;
  }
  print_text(job_text(contenders.front().request.question));
  if (first != nullptr && first->answer->run.length) {
    const RunLength& run = first->answer->run;
    print_text(", a run of " + print_run(run.unit, *run.length));
  }
  print_text("\n\n" + contenders_table(contenders));
  for (const Contender& each : contenders) {
    if (each.best() == nullptr) {
      print_text(fmt::format("\n{} has no plan: {}\n", each.name, each.answer.error().message));
    } else if (&each != first) {
      print_text(fmt::format("\n{} against {}: {}\n", each.name, first->name,
                             loss_text(*first->best(), *each.best())));
    }
  }
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

Status run_compare(const CommandOptions& options, const CompareCall& call) {
  if (!call.benchmark.empty()) {
    const Result<Facts> facts = load_facts(options);
    if (!facts) return tl::unexpected(facts.error());
    const Result<VerbAnswer> answer =
        report_benchmark(*facts, {.name = call.benchmark, .runs = call.runs});
    if (!answer) return tl::unexpected(answer.error());
    print_answer(options, *answer);
    return {};
  }
  if (call.options.model.empty()) return input_error({}, "expected --model or --benchmark");
  Result<std::vector<PlanOptions>> plans = contenders_of(options, call);
  if (!plans) return forward_error(plans);
  std::vector<Contender> contenders;
  bool any = false;
  for (const PlanOptions& plan_options : *plans) {
    Result<PlanRequest> request = plan_request(options, plan_options);
    if (!request) return forward_error(request);
    const std::string name =
        plan_options.fleet.empty() ? plan_options.accelerators : plan_options.fleet;
    Result<PlanAnswer> answer = plan(request->facts(), request->question);
    any = any || answer.has_value();
    contenders.push_back({name, *std::move(request), std::move(answer)});
  }
  if (!any) return tl::unexpected<Error>(contenders.front().answer.error());
  if (options.output == OutputFormat::kJson) {
    print_json(contenders_json(contenders));
  } else {
    print_contenders(contenders);
  }
  return {};
}

}  // namespace

void add_compare_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto call = std::make_shared<CompareCall>();
  CLI::App* verb = app.add_subcommand(
      "compare",
      "compare accelerator types or fleets for one workload, or predictions with measurements");
  add_plan_options(*verb, call->options);
  verb->get_option("--model")->required(false);
  verb->remove_option(verb->get_option("--fleet"));
  verb->add_option("--fleet", call->fleets, "fleet spec; may be repeated")->type_name("FILE");
  verb->add_option("--benchmark", call->benchmark,
                   "compare measured rows with predictions: mlperf:gpt3, mlperf:lora");
  verb->add_option("--runs", call->runs, "file of the measured rows")
      ->type_name("FILE")
      ->capture_default_str();
  verb->callback([&options, &chosen, call] {
    chosen = [&options, call] { return run_compare(options, *call); };
  });
}

}  // namespace orrery
