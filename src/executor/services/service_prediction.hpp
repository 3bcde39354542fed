// executor/services/service_prediction.hpp - what a service is expected to do, from the pace of its
// replicas and the requests that its gateways have measured.
//
// Pure.
#pragma once

#include <optional>
#include <vector>

#include "serving/gateway_report.hpp"
#include "serving/replica.hpp"

namespace orrery {

/// What a service is expected to do, from the pace of its replicas; rates are of all of them.
struct ServicePrediction {
  double ttft_s = 0;       ///< of the mean prompt, computed alone
  double tpot_s = 0;       ///< with one request on a replica
  double tpot_full_s = 0;  ///< with all slots in use
  double tokens_s = 0;     ///< output tokens with all slots in use
  double usd_per_million_tokens = 0;
};

/// Returns what replicas of these paces do with the mean request of `measured`. A request of a full
/// replica waits for the prefill of as many others as end meanwhile, so a token costs its step and
/// the prefill of one prompt shared by the tokens of an answer. `dollars_s`: of all replicas. None:
/// a pace is not known, or there were no requests.
[[nodiscard]] std::optional<ServicePrediction> predict_service(
    const std::vector<ReplicaReport>& ready, const ServiceReport& measured, double dollars_s);

}  // namespace orrery
