#include "inference/request/chat_prompt.hpp"

#include <nlohmann/json.hpp>

#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr std::size_t kShownMax = 400;

}  // namespace

ApiResult<std::string> chat_prompt(const ModelChat& chat, const CompletionRequest& request,
                                   std::int64_t now) {
  nlohmann::ordered_json variables{{"messages", request.prompt.messages},
                                   {"tools", request.prompt.tools},
                                   {"documents", nullptr},
                                   {"add_generation_prompt", true}};
  if (!chat.bos.empty()) variables["bos_token"] = chat.bos;
  if (!chat.eos.empty()) variables["eos_token"] = chat.eos;
  const Result<std::string> text =
      chat.chat_template.render({.variables = std::move(variables), .now = now, .limits = {}});
  if (text) return *text;
  return tl::unexpected(
      ApiError{.message = "messages: the chat template of this model refuses them: " +
                          printable(text.error().message, kShownMax),
               .param = "messages",
               .code = "invalid_value"});
}

}  // namespace orrery
