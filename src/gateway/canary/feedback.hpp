// gateway/canary/feedback.hpp - scores of answers, from clients or graders: POST /v1/feedback with
// {"model": "chat", "revision": 2, "score": 0.8}, to any gateway and at any time.
//
// A function of the core's state. A score counts while a canary of the model is judged, for the
// revision that the answer's header x-orrery-revision named. Cost: O(replicas of the service).
#pragma once

#include <optional>
#include <string_view>

#include "gateway/error_answer.hpp"
#include "gateway/gateway_core.hpp"

namespace orrery {

/// Notes a score; returns what is wrong, if anything is. 400: the body; 404: the key may not call
/// such a model, or no replica of it has the revision.
[[nodiscard]] std::optional<ErrorAnswer> note_feedback(GatewayCore& core, const RoutedKey& key,
                                                       std::string_view body);

}  // namespace orrery
