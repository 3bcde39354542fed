#include "inference/request/chat_prompt.hpp"

#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr std::size_t kShownMax = 400;

}  // namespace

ApiResult<std::string> chat_prompt(const ModelChat& chat, const CompletionRequest& request,
                                   std::int64_t now) {
  const Result<std::string> text =
      render_chat(chat, {request.prompt.messages, request.prompt.tools}, now);
  if (text) return *text;
  return tl::unexpected(
      ApiError{.message = "messages: the chat template of this model refuses them: " +
                          printable(text.error().message, kShownMax),
               .param = "messages",
               .code = "invalid_value"});
}

}  // namespace orrery
