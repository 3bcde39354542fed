#include "executor/services/service_prediction.hpp"

#include <algorithm>

namespace orrery {

std::optional<ServicePrediction> predict_service(const std::vector<ReplicaReport>& ready,
                                                 const ServiceReport& measured, double dollars_s) {
  ServicePrediction made;
  if (ready.empty() || measured.window_requests == 0) return std::nullopt;
  const auto requests = static_cast<double>(measured.window_requests);
  const double prompt = static_cast<double>(measured.window_prompt_tokens) / requests;
  const double output = static_cast<double>(measured.window_output_tokens) / requests;
  const auto replicas = static_cast<double>(ready.size());
  double requests_s = 0;
  for (const ReplicaReport& each : ready) {
    const ReplicaPace& pace = each.pace;
    if (pace.prefill_tokens_s <= 0 || pace.step_s <= 0 || pace.step_full_s <= 0) {
      return std::nullopt;
    }
    const double prefill_s = prompt / pace.prefill_tokens_s;
    made.ttft_s += (prefill_s + pace.step_s) / replicas;
    made.tpot_s += pace.step_s / replicas;
    made.tpot_full_s += pace.step_full_s / replicas;
    requests_s += 1 / (prefill_s + output * pace.step_full_s / std::max(each.slots, 1U));
  }
  made.tokens_s = requests_s * output;
  if (prompt + output > 0) {
    made.usd_per_million_tokens = dollars_s * 1e6 / (requests_s * (prompt + output));
  }
  return made;
}

}  // namespace orrery
