#include "verbs/serve/serving_json.hpp"

#include "base/format/field_writer.hpp"

namespace orrery {
namespace {

struct Figure {
  std::string_view name;
  double value;
  const ServingInterval& interval;
};

}  // namespace

const std::array<ServingTerm, 6>& serving_terms() {
  static constexpr std::array<ServingTerm, 6> kServingTerms{{
      {"matmul", "matrix products outside the experts, prompts included", &StepTime::matmul},
      {"experts", "products of the routed experts, and reading their weights", &StepTime::experts},
      {"attention", "scores and values, and reading the cache", &StepTime::attention},
      {"elementwise", "norms, activations, residuals and small kernels", &StepTime::elementwise},
      {"collective", "exchanges between the devices of an instance", &StepTime::collective},
      {"host", "scheduling, sampling and answering on the host", &StepTime::host},
  }};
  return kServingTerms;
}

void add_serving_figures(Json& json, const ServingPrediction& prediction,
                         const ServingIntervals& intervals) {
  const std::array<Figure, 6> figures{{
      {"tokens_s_total", prediction.tokens_total.value(), intervals.throughput},
      {"output_tokens_s", prediction.output_tokens.value(), intervals.throughput},
      {"requests_s", prediction.requests, intervals.throughput},
      {"ttft_s", prediction.ttft.value(), intervals.first_token},
      {"tpot_s", prediction.tpot.value(), intervals.latency},
      {"e2e_s", prediction.e2e.value(), intervals.latency},
  }};
  for (const Figure& figure : figures) {
    const std::string name(figure.name);
    json[name] = figure.value;
    json[name + "_low"] = figure.value * figure.interval.low;
    json[name + "_high"] = figure.value * figure.interval.high;
  }
}

Json serving_breakdown_json(const StepTime& time) {
  Json json = Json::object();
  for (const ServingTerm& term : serving_terms()) {
    json[std::string(term.name)] = time.*term.seconds;
  }
  return json;
}

void add_serving_layout(Json& json, const ServingPlan& plan) {
  const auto whole = [](double value) { return static_cast<std::int64_t>(value); };
  json["tp"] = whole(plan.tp);
  json["pp"] = whole(plan.pp);
  json["ep"] = whole(plan.ep);
  json["attention_dp"] = whole(plan.attention_dp);
  json["replicas"] = whole(plan.replicas);
}

double bytes_used(const ServingPrediction& prediction, const ServingPlan& plan) {
  return prediction.memory.used(prediction.batch, plan.attention_dp);
}

Json serving_estimate_json(const std::string& id, const ServingEstimate& estimate) {
  const ServingPrediction& prediction = estimate.prediction;
  const ServingPlan& plan = estimate.job.plan;
  Json json;
  json["id"] = id;
  add_serving_figures(json, prediction,
                      {estimate.throughput, estimate.latency, estimate.first_token});
  json["batch"] = prediction.batch;
  json["memory_bytes"] = bytes_used(prediction, plan);
  json["fits"] = prediction.fits;
  add_serving_layout(json["plan"], plan);
  json["breakdown"] = serving_breakdown_json(prediction.breakdown);
  json["warnings"] = estimate.warnings;
  return json;
}

}  // namespace orrery
