// inference/request/chat_prompt.hpp - a chat as the text of a prompt, by the model's chat template.
//
// A pure function. Cost: that of the template, which is bounded.
#pragma once

#include <cstdint>
#include <string>

#include "inference/engine/served_model.hpp"
#include "inference/request/completion_request.hpp"
#include "inference/server/api_error.hpp"

namespace orrery {

/// Renders messages and tools, up to where the assistant's answer begins. `now` is seconds since
/// 1970. Error: what the template raises, or why it cannot render these messages.
[[nodiscard]] ApiResult<std::string> chat_prompt(const ModelChat& chat,
                                                 const CompletionRequest& request,
                                                 std::int64_t now);

}  // namespace orrery
