#include "verbs/plan/plan_json.hpp"

#include <cmath>

#include "base/format/field_writer.hpp"
#include "planner/launch/layout_text.hpp"

namespace orrery {
namespace {

constexpr double kGramsPerKilogram = 1000;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

template <class Dim>
Json number(const std::optional<Quantity<Dim>>& value) {
  return value ? number(value->value()) : Json(nullptr);
}

Json memory_json(const TrainingMemory& memory) {
  return {{"weights", memory.weights},     {"gradients", memory.gradients},
          {"optimizer", memory.optimizer}, {"activations", memory.activations},
          {"transient", memory.transient}, {"gathered", memory.gathered},
          {"runtime", memory.runtime}};
}

Json goodput_json(const std::optional<Goodput>& goodput) {
  if (!goodput) return nullptr;
  return {
      {"effective", goodput->effective},     {"checkpoint_interval_s", goodput->interval.value()},
      {"checkpoints", goodput->checkpoints}, {"lost_work", goodput->lost_work},
      {"detection", goodput->detection},     {"restart", goodput->restart},
      {"reading", goodput->reading}};
}

Json run_json(const PlanQuote& quote, const RunLength& run) {
  if (!run.length || !quote.run_time) return nullptr;
  Json json;
  json[word_of(run.unit)] = *run.length;
  json["steps"] = number(quote.run_steps);
  json["time_s"] = number(quote.run_time);
  json["cost_usd"] = number(quote.run_cost);
  const auto& energy = quote.run_energy;
  json["energy_kwh"] = energy ? number(kilowatt_hours(energy->facility)) : Json(nullptr);
  json["co2_kg"] = energy ? number(energy->carbon.value() / kGramsPerKilogram) : Json(nullptr);
  return json;
}

Json change_json(const FigureChange& change) {
  return {{"step", number(change.step)},
          {"run", number(change.run)},
          {"cost", number(change.cost)},
          {"energy", number(change.energy)},
          {"layout", print_layout(change.plan)}};
}

}  // namespace

Json breakdown_json(const Breakdown& terms) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kTerms; ++i) json[kTermNames[i]] = number(terms.seconds[i]);
  return json;
}

Json offer_json(const PlanOffer& offer, const MachineChoice& machine, const RunLength& run) {
  const PlanQuote& quote = offer.quote;
  Json json = layout_json(offer.plan);
  json["machine"] = machine.label;
  json["accelerator"] = machine.machine.accelerator->id;
  json["accelerators"] = machine.machine.ranks / machine.machine.ranks_per_accelerator;
  json["step_s"] = number(offer.cost.seconds);
  json["step_s_low"] = number(offer.seconds_low);
  json["step_s_high"] = number(offer.seconds_high);
  json["mfu"] = number(offer.mfu);
  json["mfu_peak"] = "16-bit dense";
  json["mfu_of_format"] = number(offer.format_mfu);
  json["memory_bytes"] = number(offer.cost.memory.total());
  json["cost_usd"] = number(quote.step_cost);
  json["energy_j"] = number(quote.step_energy);
  json["j_per_flop"] =
      quote.joules_per_flop ? number(quote.joules_per_flop->value()) : Json(nullptr);
  json["power_w"] = number(quote.power);
  const std::string unit(word_of(run.unit));
  json[unit + "_per_s"] = number(quote.tokens_per_second);
  json[unit + "_per_s_per_watt"] = number(quote.tokens_per_second_watt);
  json["breakdown"] = breakdown_json(offer.cost.terms);
  json["memory"] = memory_json(offer.cost.memory);
  json["goodput"] = goodput_json(quote.goodput);
  json["run"] = run_json(quote, run);
  return json;
}

Json answer_json(const PlanAnswer& answer, const PlanRequest& request) {
  const std::vector<MachineChoice>& machines = request.question.machines;
  const auto list = [&](const std::vector<PlanOffer>& offers) {
    Json json = Json::array();
    for (const PlanOffer& offer : offers) {
      json.push_back(offer_json(offer, machines[offer.machine], answer.run));
    }
    return json;
  };
  Json json;
  json["plans"] = list(answer.plans);
  json["pareto"] = list(answer.pareto);
  json["assumptions"] = request.assumptions;
  for (const std::string& text : answer.assumptions) json["assumptions"].push_back(text);
  const SearchCounters& c = answer.counters;
  json["counters"] = {{"invalid", c.invalid},
                      {"enumerated", c.enumerated},
                      {"out_of_memory", c.out_of_memory},
                      {"pruned", c.pruned},
                      {"evaluated", c.evaluated}};
  json["refused"] = Json::array();
  for (const MachineRefusal& refusal : answer.refused) {
    json["refused"].push_back(
        {{"machine", machines[refusal.machine].label}, {"reason", refusal.why.message}});
  }
  return json;
}

Json sensitivity_json(const std::vector<Sensitivity>& sensitivities) {
  Json json = Json::array();
  for (const Sensitivity& each : sensitivities) {
    json.push_back({{"figure", word_of(each.figure)},
                    {"plus_1_percent", change_json(each.up)},
                    {"minus_1_percent", change_json(each.down)}});
  }
  return json;
}

}  // namespace orrery
