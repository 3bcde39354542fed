#include "verbs/serve/rehearsal_answer.hpp"

#include <fmt/format.h>

#include "base/text/count_text.hpp"
#include "base/text/text_table.hpp"
#include "planner/serving/serving_space.hpp"
#include "verbs/plan/plan_text.hpp"

namespace orrery {
namespace {

Json quantiles_json(const QuantilesOf& of) {
  return {{"mean", of.mean}, {"p50", of.p50}, {"p90", of.p90}, {"p99", of.p99}};
}

Json rehearsed_json(const RehearsedOffer& offer, const ServingQuestion& question) {
  Json json = {{"machine", question.machines[offer.plan.machine].label},
               {"layout", print_layout(offer.plan.plan)},
               {"numbers", print_numbers(offer.plan.numbers)},
               {"instances", offer.instances}};
  if (!offer.found()) {
    json["reason"] = offer.why;
    return json;
  }
  json["accelerators"] = offer.instances * devices_of(offer.plan.plan);
  json["ttft_s"] = quantiles_json(offer.figures.all.ttft);
  json["tpot_s"] = quantiles_json(offer.figures.all.tpot);
  json["slo_attained"] = attained_by(offer.figures);
  json["slo_attained_with_a_failure"] = attained_by(offer.disturbed);
  json["usd_per_million_tokens"] =
      offer.usd_per_million > 0 ? Json(offer.usd_per_million) : Json(nullptr);
  return json;
}

std::string target_text(const RehearsalTerms& terms) {
  std::string text;
  const auto add = [&text](const char* name, double seconds) {
    if (seconds > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, duration_text(seconds));
  };
  add("TTFT", terms.targets.ttft_s);
  add("TPOT", terms.targets.tpot_s);
  return text.empty() ? "an answer" : text;
}

std::string table_of(const std::vector<RehearsedOffer>& offers, const ServingQuestion& question) {
  TextTable table({{"machine"},
                   {"layout"},
                   {"numbers"},
                   {"instances", Align::kRight},
                   {"accelerators", Align::kRight},
                   {"TTFT p50", Align::kRight},
                   {"p99", Align::kRight},
                   {"TPOT p50", Align::kRight},
                   {"p99", Align::kRight},
                   {"kept", Align::kRight},
                   {"one fails", Align::kRight},
                   {"$/M tokens", Align::kRight}});
  std::string without;
  for (const RehearsedOffer& offer : offers) {
    const std::string& machine = question.machines[offer.plan.machine].label;
    if (!offer.found()) {
      without += fmt::format("No number of instances suffices on {}, {}: {}.\n", machine,
                             print_layout(offer.plan.plan), offer.why);
      continue;
    }
    const ClassFigures& all = offer.figures.all;
    table.add({machine, print_layout(offer.plan.plan), print_numbers(offer.plan.numbers),
               fmt::to_string(offer.instances),
               fmt::format("{:.0f}", offer.instances * devices_of(offer.plan.plan)),
               duration_text(all.ttft.p50), duration_text(all.ttft.p99),
               duration_text(all.tpot.p50), duration_text(all.tpot.p99),
               fmt::format("{:.2f} %", attained_by(offer.figures) * 100),
               fmt::format("{:.2f} %", attained_by(offer.disturbed) * 100),
               offer.usd_per_million > 0 ? fmt::format("{:.3g}", offer.usd_per_million) : "?"});
  }
  return (table.empty() ? "" : table.text()) + without;
}

}  // namespace

void add_rehearsal(const ServeRequest& request, const ServingAnswer& answer, VerbAnswer& shown) {
  const ServingQuestion& question = request.question;
  RehearsalTerms terms;
  if (question.limits.ttft) terms.targets.ttft_s = question.limits.ttft->value();
  if (question.limits.tpot) terms.targets.tpot_s = question.limits.tpot->value();
  const std::vector<RehearsedOffer> offers = rehearse(request, answer, *request.trace, terms);
  shown.text = fmt::format(
      "Rehearsed with {} in {}: the fewest instances with which {:.0f} % of the requests "
      "keep {}, also while one instance is away for {} from the busiest minute on\n\n{}\n"
      "Planned for the means of these requests:\n\n{}",
      counted(request.trace->requests.size(), "request"),
      duration_text(request.trace->span.count_seconds()), terms.attained * 100, target_text(terms),
      duration_text(terms.cold_start.count_seconds()), table_of(offers, question), shown.text);
  shown.json["rehearsed"] = Json::array();
  for (const RehearsedOffer& offer : offers) {
    shown.json["rehearsed"].push_back(rehearsed_json(offer, question));
  }
}

}  // namespace orrery
