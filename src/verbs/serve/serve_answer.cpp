#include "verbs/serve/serve_answer.hpp"
#include "verbs/serve/apart_answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/format/field_writer.hpp"
#include "base/text/count_text.hpp"
#include "base/text/text_table.hpp"
#include "planner/launch/serving_flags.hpp"
#include "verbs/plan/plan_text.hpp"
#include "verbs/serve/rehearsal_answer.hpp"
#include "verbs/serve/serving_json.hpp"

namespace orrery {
namespace {

constexpr double kGibibyte = 1u << 30;
constexpr std::size_t kWidth = 100;

Json number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

/// An offered rate is the throughput as far as the instances can serve it.
ServingInterval throughput_of(const ServingQuestion& question, const ServingOffer& offer) {
  if (!question.rate) return offer.throughput;
  const double reach = offer.requests_max * offer.throughput.low / offer.prediction.requests;
  return {.low = std::min(1.0, reach), .high = 1};
}

std::vector<std::string> bounds_of(const ServingOffer& offer) {
  std::vector<std::string> words;
  words.reserve(offer.bounds.size());
  for (const ServingBound bound : offer.bounds) words.emplace_back(word_of(bound));
  return words;
}

Json memory_json(const ServingPrediction& prediction, const ServingPlan& plan) {
  const ServingMemory& memory = prediction.memory;
  return {{"weights", memory.weights},
          {"activations", memory.activations},
          {"kv", bytes_used(prediction, plan) - memory.weights - memory.activations},
          {"kv_sequence", memory.sequence},
          {"available", memory.available},
          {"sequences", memory.sequences}};
}

Json offer_json(const ServingOffer& offer, const ServingQuestion& question) {
  const ServingChoice& machine = question.machines[offer.machine];
  const ServingPrediction& prediction = offer.prediction;
  const ServingQuote& quote = offer.quote;
  Json json;
  json["machine"] = machine.label;
  json["accelerator"] = machine.accelerator->id;
  json["accelerators"] = static_cast<std::int64_t>(offer.accelerators());
  json["replica_accelerators"] = static_cast<std::int64_t>(devices_of(offer.plan));
  json["replica_nodes"] = instance_nodes(machine, offer.plan);
  add_serving_layout(json, offer.plan);
  json["weights"] = word_of(offer.numbers.weights);
  json["activations"] = word_of(offer.numbers.activations);
  json["kv"] = word_of(offer.cache);
  add_serving_figures(json, prediction,
                      {throughput_of(question, offer), offer.latency, offer.first_token});
  json["requests_s_max"] = offer.requests_max;
  json["batch"] = prediction.batch;
  json["concurrency"] = offer.concurrency;
  json["limits"] = bounds_of(offer);
  json["memory_bytes"] = bytes_used(prediction, offer.plan);
  json["memory"] = memory_json(prediction, offer.plan);
  json["fits"] = prediction.fits;
  json["usd_per_million_output_tokens"] = number(quote.dollars_per_million);
  json["usd_per_million_tokens"] = number(quote.dollars_per_million_total);
  json["usd_per_hour"] = quote.price ? number((*quote.price * kHour).value()) : Json(nullptr);
  json["power_w"] = quote.power ? number(quote.power->value()) : Json(nullptr);
  json["output_tokens_s_per_watt"] = number(quote.tokens_per_joule);
  json["output_tokens_s_per_rack"] = number(quote.tokens_per_rack);
  json["token_s"] = prediction.breakdown.total();
  json["breakdown"] = serving_breakdown_json(prediction.breakdown);
  return json;
}

std::string or_unknown(const std::optional<double>& figure, int digits) {
  return figure ? fmt::format("{:.{}g}", *figure, digits) : "?";
}

std::string offers_table(const std::vector<ServingOffer>& offers, const ServingQuestion& question) {
  TextTable table({{"#", Align::kRight},
                   {"machine"},
                   {"numbers"},
                   {"layout"},
                   {"x", Align::kRight},
                   {"batch", Align::kRight},
                   {"TTFT", Align::kRight},
                   {"TPOT", Align::kRight},
                   {"tokens/s", Align::kRight},
                   {"$/M tokens", Align::kRight},
                   {"tokens/s/W", Align::kRight},
                   {"tokens/s/rack", Align::kRight}});
  std::size_t rank = 0;
  for (const ServingOffer& offer : offers) {
    const ServingPrediction& p = offer.prediction;
    table.add({std::to_string(++rank), question.machines[offer.machine].label,
               print_numbers(offer.numbers), print_layout(offer.plan),
               print_count(offer.plan.replicas), fmt::format("{:.4g}", p.batch),
               duration_text(p.ttft.value()), duration_text(p.tpot.value()),
               print_count(std::round(p.output_tokens.value())),
               or_unknown(offer.quote.dollars_per_million, 4),
               or_unknown(offer.quote.tokens_per_joule, 3),
               offer.quote.tokens_per_rack ? print_count(std::round(*offer.quote.tokens_per_rack))
                                           : "?"});
  }
  return table.text();
}

std::string terms_table(const ServingOffer& offer) {
  TextTable table({{"term"}, {"time", Align::kRight}, {"share", Align::kRight}, {"meaning"}});
  const StepTime& time = offer.prediction.breakdown;
  for (const ServingTerm& term : serving_terms()) {
    const double seconds = time.*term.seconds;
    if (seconds <= 0) continue;
    table.add({std::string(term.name), duration_text(seconds),
               fmt::format("{:.1f} %", seconds / time.total() * 100), std::string(term.meaning)});
  }
  table.add({"token", duration_text(time.total()), "100.0 %",
             "one token of one sequence, with its share of the prompt"});
  return table.text();
}

std::string_view meaning_of(ServingBound bound) {
  switch (bound) {
    case ServingBound::kThroughput:
      return "throughput: a larger batch would not be faster";
    case ServingBound::kMemory:
      return "memory for the KV cache";
    case ServingBound::kScheduler:
      return "the engine's limit on running sequences";
    case ServingBound::kFirstToken:
      return "--ttft";
    case ServingBound::kTokenTime:
      return "--tpot";
    case ServingBound::kRate:
      return "the request rate";
  }
  return "";
}

std::string best_text(const ServingOffer& offer, const ServingQuestion& question) {
  const ServingPrediction& p = offer.prediction;
  const ServingMemory& memory = p.memory;
  const auto gib = [](double bytes) { return fmt::format("{:.1f}", bytes / kGibibyte); };
  const auto around = [](double value, const ServingInterval& interval) {
    return fmt::format("{} ({} to {})", duration_text(value), duration_text(value * interval.low),
                       duration_text(value * interval.high));
  };
  std::vector<std::string> bounds;
  bounds.reserve(offer.bounds.size());
  for (const ServingBound bound : offer.bounds) bounds.emplace_back(meaning_of(bound));
  const ServingInterval through = throughput_of(question, offer);
  const double tokens = p.output_tokens.value();
  const std::uint32_t nodes = instance_nodes(question.machines[offer.machine], offer.plan);
  return fmt::format(
      "{}, {} x {}{}: {:.4g} requests/s of at most {:.4g}, {} output tokens/s ({} to "
      "{}).\n"
      "TTFT {}, TPOT {}, whole request {}.\n"
      "{:.4g} running sequences per instance, at most {:.0f} in flight; limited by: {}.\n"
      "Memory per device, GiB: weights {}, activations {}, KV cache {} ({} per sequence); total {} "
      "of {}.\n",
      counted(static_cast<std::uint64_t>(offer.accelerators()), "accelerator"),
      print_count(offer.plan.replicas), devices_of(offer.plan),
      nodes > 1 ? fmt::format(" over {} nodes", nodes) : "", p.requests, offer.requests_max,
      print_count(std::round(tokens)), print_count(std::round(tokens * through.low)),
      print_count(std::round(tokens * through.high)), around(p.ttft.value(), offer.first_token),
      around(p.tpot.value(), offer.latency), around(p.e2e.value(), offer.latency), p.batch,
      offer.concurrency, fmt::join(bounds, ", "), gib(memory.weights), gib(memory.activations),
      gib(bytes_used(p, offer.plan) - memory.weights - memory.activations),
      fmt::format("{:.3f}", memory.sequence / kGibibyte), gib(bytes_used(p, offer.plan)),
      gib(memory.available));
}

std::vector<std::string> all_assumptions(const ServingAnswer& answer, const ServeRequest& request) {
  std::vector<std::string> all = request.assumptions;
  all.insert(all.end(), answer.assumptions.begin(), answer.assumptions.end());
  return all;
}

std::string assumptions_text(const ServingAnswer& answer, const ServeRequest& request) {
  std::vector<std::string> all = all_assumptions(answer, request);
  for (const ServingRefusal& refusal : answer.refused) {
    all.push_back("no plan: " + refusal.why.message);
  }
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

std::string best_by_text(const ServingAnswer& answer, const ServingQuestion& question) {
  std::string text;
  for (const auto& entry : enum_words(ServingObjective{})) {
    const auto& offer = answer.by_objective[static_cast<std::size_t>(entry.value)];
    if (!offer || entry.value == question.objective) continue;
    text += fmt::format("Best by {}: {} x {} on {}, {}.\n", entry.word, offer->plan.replicas,
                        print_layout(offer->plan), question.machines[offer->machine].label,
                        print_numbers(offer->numbers));
  }
  return text;
}

/// The best plan that the engine has options for.
Result<VerbAnswer> launch_of(const ServeRequest& request, const ServingAnswer& answer,
                             EngineName engine) {
  std::optional<Error> why;
  for (const ServingOffer& offer : answer.plans) {
    Result<std::string> text = serving_launch_text({request.question, offer}, engine);
    if (!text) {
      if (!why) why = text.error();
      continue;
    }
    Json json = {
        {"engine", word_of(engine)}, {"layout", print_layout(offer.plan)}, {"text", *text}};
    return VerbAnswer{*std::move(text), std::move(json), TextKind::kBytes};
  }
  return tl::unexpected(*std::move(why));
}

/// The best plan with prompts apart that the engine has options for.
Result<VerbAnswer> apart_launch_of(const ServeRequest& request, const ServingAnswer& answer,
                                   EngineName engine) {
  std::optional<Error> why;
  for (const ApartOffer& offer : answer.apart) {
    Result<std::string> text = apart_launch_text({request.question, offer}, engine);
    if (!text) {
      if (!why) why = text.error();
      continue;
    }
    Json json = {{"engine", word_of(engine)},
                 {"prefill", print_layout(offer.prompts)},
                 {"decode", print_layout(offer.answers)},
                 {"text", *text}};
    return VerbAnswer{*std::move(text), std::move(json), TextKind::kBytes};
  }
  if (why) return tl::unexpected(*std::move(why));
  return infeasible(
      "--apart: no plan has prefill and decode apart: it takes answers of two tokens, an engine "
      "that hands caches over (vllm, sglang, tensorrt-llm) and a known network between nodes");
}

}  // namespace

Json serving_answer_json(const ServingAnswer& answer, const ServeRequest& request) {
  const ServingQuestion& question = request.question;
  const auto list = [&](const std::vector<ServingOffer>& offers) {
    Json json = Json::array();
    for (const ServingOffer& offer : offers) json.push_back(offer_json(offer, question));
    return json;
  };
  Json json;
  json["plans"] = list(answer.plans);
  json["by_accelerator"] = list(answer.by_machine);
  json["apart"] = Json::array();
  for (const ApartOffer& offer : answer.apart) json["apart"].push_back(apart_json(offer, question));
  for (const auto& entry : enum_words(ServingObjective{})) {
    const auto& offer = answer.by_objective[static_cast<std::size_t>(entry.value)];
    json["best_by"][std::string(entry.word)] = offer ? offer_json(*offer, question) : Json(nullptr);
  }
  json["assumptions"] = all_assumptions(answer, request);
  json["refused"] = Json::array();
  for (const ServingRefusal& refusal : answer.refused) {
    json["refused"].push_back(
        {{"machine", question.machines[refusal.machine].label}, {"reason", refusal.why.message}});
  }
  for (const ServingTerm& term : serving_terms()) {
    json["terms"][std::string(term.name)] = term.meaning;
  }
  json["layouts"] = answer.layouts;
  return json;
}

std::string serving_answer_text(const ServingAnswer& answer, const ServeRequest& request) {
  const ServingQuestion& question = request.question;
  std::string text =
      fmt::format("{}, requests of {} + {} tokens{}\n{} layouts.\n\n", question.model->name,
                  print_count(question.input), print_count(question.output),
                  question.rate ? fmt::format(", {} per second", *question.rate) : "",
                  print_count(static_cast<double>(answer.layouts)));
  text += offers_table(answer.plans, question);
  if (answer.by_machine.size() > 1) {
    text += "\nBest plan of each machine\n" + offers_table(answer.by_machine, question);
  }
  text += apart_text(answer, question);
  const ServingOffer& best = answer.plans.front();
  text += "\nTime per token of plan 1, by term\n" + terms_table(best) + "\n" +
          best_text(best, question);
  return text + best_by_text(answer, question) + assumptions_text(answer, request);
}

Result<VerbAnswer> report_serving(const CommandOptions& options, const ServeCall& call) {
  const Result<ServeRequest> request = serve_request(options, call);
  if (!request) return tl::unexpected(request.error());
  const Result<ServingAnswer> answer = plan_serving(request->facts(), request->question);
  if (!answer) return tl::unexpected(answer.error());
  if (call.serve.emit && call.serve.prompts == PrefillPlace::kApart) {
    return apart_launch_of(*request, *answer, *call.serve.emit);
  }
  if (call.serve.emit) return launch_of(*request, *answer, *call.serve.emit);
  VerbAnswer shown{serving_answer_text(*answer, *request), serving_answer_json(*answer, *request)};
  if (request->trace) add_rehearsal(*request, *answer, shown);
  return shown;
}

}  // namespace orrery
