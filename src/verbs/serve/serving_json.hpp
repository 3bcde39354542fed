// verbs/serve/serving_json.hpp - predictions of inference services for programs, and what their
// terms mean.
#pragma once

#include <array>
#include <string_view>

#include "base/format/field_writer.hpp"
#include "perf/serving/serving_estimate.hpp"

namespace orrery {

/// One cause of the time a generated token takes.
struct ServingTerm {
  std::string_view name;
  std::string_view meaning;
  double StepTime::* seconds;
};
[[nodiscard]] const std::array<ServingTerm, 6>& serving_terms();

/// The factors of the three kinds of figures.
struct ServingIntervals {
  ServingInterval throughput;
  ServingInterval latency;
  ServingInterval first_token;
};

/// tokens_s_total, output_tokens_s, requests_s, ttft_s, tpot_s and e2e_s, each with _low and _high.
/// Precondition: every figure is finite.
void add_serving_figures(Json& json, const ServingPrediction& prediction,
                         const ServingIntervals& intervals);

/// Returns seconds by cause, which sum to the time of a token.
[[nodiscard]] Json serving_breakdown_json(const StepTime& time);

/// Returns a row of a run file: the figures and {id, batch, memory_bytes, fits, plan, breakdown,
/// warnings}. Precondition: every figure is finite.
[[nodiscard]] Json serving_estimate_json(const std::string& id, const ServingEstimate& estimate);

/// Adds {tp, pp, ep, attention_dp, replicas}, whole numbers.
void add_serving_layout(Json& json, const ServingPlan& plan);

/// Returns the bytes used on the fullest device, with the caches of the running sequences.
[[nodiscard]] double bytes_used(const ServingPrediction& prediction, const ServingPlan& plan);

}  // namespace orrery
