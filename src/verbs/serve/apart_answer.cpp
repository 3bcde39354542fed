#include "verbs/serve/apart_answer.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/text/text_table.hpp"
#include "verbs/plan/plan_text.hpp"
#include "verbs/serve/serving_json.hpp"

namespace orrery {
namespace {

constexpr std::size_t kTextWidth = 100;

Json figure(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

std::string apart_table(const std::vector<ApartOffer>& offers, const ServingQuestion& question) {
  TextTable table({{"machine"},
                   {"numbers"},
                   {"prefill"},
                   {"x", Align::kRight},
                   {"decode"},
                   {"x", Align::kRight},
                   {"batch", Align::kRight},
                   {"KV sent in", Align::kRight},
                   {"TTFT", Align::kRight},
                   {"TPOT", Align::kRight},
                   {"tokens/s", Align::kRight},
                   {"$/M tokens", Align::kRight}});
  for (const ApartOffer& offer : offers) {
    const auto& dollars = offer.quote.dollars_per_million;
    table.add({question.machines[offer.machine].label, print_numbers(offer.numbers),
               print_layout(offer.prompts), print_count(offer.prompts.replicas),
               print_layout(offer.answers), print_count(offer.answers.replicas),
               fmt::format("{:.4g}", offer.figures.answer.batch),
               duration_text(offer.transfer.value()), duration_text(offer.figures.ttft.value()),
               duration_text(offer.figures.tpot.value()),
               print_count(std::round(offer.requests * question.output)),
               dollars ? fmt::format("{:.4g}", *dollars) : "?"});
  }
  return table.text();
}

/// How the best one compares with the best joint plan, and the figures that decide it.
std::string verdict(const ApartOffer& apart, const ServingOffer& joint) {
  const auto& one = apart.quote.dollars_per_million;
  const auto& other = joint.quote.dollars_per_million;
  std::string text;
  if (one && other) {
    const double more = *one / *other - 1;
    text = std::abs(more) < 5e-4 ? "A token costs as much as in plan 1. "
                                 : fmt::format("A token costs {:.1f} % {} than in plan 1. ",
                                               std::abs(more) * 100, more > 0 ? "more" : "less");
  }
  return text +
         fmt::format(
             "Prefill instances compute {:.0f} % of the time; a decode instance, which no prompt "
             "delays, runs {:.4g} of at most {:.0f} sequences, one of plan 1 {:.4g} of {:.0f}; "
             "instances of both kinds hold the weights.",
             apart.figures.busy * 100, apart.figures.answer.batch, apart.concurrency,
             joint.prediction.batch, joint.concurrency);
}

}  // namespace

Json apart_json(const ApartOffer& offer, const ServingQuestion& question) {
  const ServingChoice& machine = question.machines[offer.machine];
  const ServingQuote& quote = offer.quote;
  const ApartFigures& figures = offer.figures;
  Json json = {{"machine", machine.label},
               {"accelerator", machine.accelerator->id},
               {"accelerators", static_cast<std::int64_t>(offer.accelerators())},
               {"weights", word_of(offer.numbers.weights)},
               {"activations", word_of(offer.numbers.activations)},
               {"kv", word_of(offer.cache)}};
  add_serving_layout(json["prefill"], offer.prompts);
  add_serving_layout(json["decode"], offer.answers);
  json["prefill"]["busy"] = figures.busy;
  json["decode"]["batch"] = figures.answer.batch;
  json["decode"]["concurrency"] = offer.concurrency;
  json["kv_transfer_s"] = offer.transfer.value();
  json["ttft_s"] = figures.ttft.value();
  json["tpot_s"] = figures.tpot.value();
  json["e2e_s"] = figures.e2e.value();
  json["requests_s"] = offer.requests;
  json["requests_s_max"] = offer.requests_max;
  json["output_tokens_s"] = offer.requests * question.output;
  json["usd_per_million_output_tokens"] = figure(quote.dollars_per_million);
  json["usd_per_million_tokens"] = figure(quote.dollars_per_million_total);
  json["usd_per_hour"] = quote.price ? Json((*quote.price * kHour).value()) : Json(nullptr);
  json["power_w"] = quote.power ? Json(quote.power->value()) : Json(nullptr);
  return json;
}

std::string apart_text(const ServingAnswer& answer, const ServingQuestion& question) {
  if (answer.apart.empty()) return "";
  std::string text =
      "\nPrefill and decode apart, best of each machine\n" + apart_table(answer.apart, question);
  const std::string told = verdict(answer.apart.front(), answer.plans.front());
  for (const std::string& line : wrapped(told, kTextWidth)) text += line + "\n";
  return text;
}

}  // namespace orrery
