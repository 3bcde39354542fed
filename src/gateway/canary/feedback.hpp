// gateway/canary/feedback.hpp - scores of answers, from clients or graders: POST /v1/feedback with
// {"request": "ID", "score": 0.8}.
//
// A function of the core's state. It counts for the revision that answered the request, while a
// canary is judged. Cost: O(decisions kept).
#pragma once

#include <string>
#include <string_view>

#include "gateway/error_answer.hpp"
#include "gateway/gateway_core.hpp"

namespace orrery {

/// Notes a score; returns the JSON of the answer. Errors: 400, what is wrong with the body; 404, no
/// decision about the request is kept, or the key may not call its service; 409, it has a score.
[[nodiscard]] tl::expected<std::string, ErrorAnswer> note_feedback(GatewayCore& core,
                                                                   const RoutedKey& key,
                                                                   std::string_view body);

}  // namespace orrery
