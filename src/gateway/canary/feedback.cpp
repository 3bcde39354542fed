#include "gateway/canary/feedback.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace orrery {

tl::expected<std::string, ErrorAnswer> note_feedback(GatewayCore& core, const RoutedKey& key,
                                                     std::string_view body) {
  const nlohmann::json read = nlohmann::json::parse(body, nullptr, false);
  if (!read.is_object()) {
    return tl::unexpected(bad_request("expected a JSON object with request and score", ""));
  }
  const auto request = read.find("request");
  if (request == read.end() || !request->is_string()) {
    return tl::unexpected(
        bad_request("expected the id of a request, as in x-request-id", "request"));
  }
  const auto score = read.find("score");
  const double value = score != read.end() && score->is_number() ? score->get<double>() : -1;
  if (!(value >= 0 && value <= 1)) {
    return tl::unexpected(bad_request("expected a number from 0 to 1, 1 is best", "score"));
  }
  RouteRecord* const record = core.history().find_chosen(request->get_ref<const std::string&>());
  if (record == nullptr) return tl::unexpected(unknown_request());
  GatewayService& service = core.services().at(record->service);
  if (!may_call(key, service.tenant)) return tl::unexpected(unknown_request());
  if (record->scored) {
    return tl::unexpected(ErrorAnswer{.status = 409,
                                      .message = "The request has a score already.",
                                      .type = "invalid_request_error",
                                      .param = "request",
                                      .code = "already_scored"});
  }
  record->scored = true;
  const auto& candidates = record->decision.candidates;
  const auto chosen =
      std::ranges::find(candidates, CandidateVerdict::kChosen, &RouteCandidate::verdict);
  service.canary.add_score(chosen->revision, record->epoch, value);
  const nlohmann::ordered_json answer = {{"request", *request},
                                         {"service", service.name},
                                         {"job", chosen->replica.job},
                                         {"revision", chosen->revision}};
  return answer.dump();
}

}  // namespace orrery
