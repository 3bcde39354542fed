#include "gateway/error_answer.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace orrery {
namespace {

nlohmann::ordered_json text_or_null(std::string_view text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}

}  // namespace

std::string error_json(const ErrorAnswer& error) {
  nlohmann::ordered_json inner;
  inner["message"] = error.message;
  inner["type"] = error.type;
  inner["param"] = text_or_null(error.param);
  inner["code"] = text_or_null(error.code);
  const nlohmann::ordered_json outer = {{"error", std::move(inner)}};
  return outer.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string error_json_of(int status, std::string_view message) {
  return error_json({.status = status,
                     .message = std::string(message),
                     .type = status < 500 ? "invalid_request_error" : "server_error"});
}

ErrorAnswer unknown_model(std::string_view model) {
  return {
      .status = 404,
      .message = fmt::format("The model '{}' does not exist, or the key may not use it.", model),
      .type = "invalid_request_error",
      .param = "model",
      .code = "model_not_found"};
}

ErrorAnswer overloaded(std::string_view model) {
  return {.status = 429,
          .message = fmt::format("The replicas of model '{}' are full. Try again later.", model),
          .type = "rate_limit_error",
          .code = "overloaded"};
}

ErrorAnswer without_replica(std::string_view model) {
  return {.status = 503,
          .message = fmt::format("Model '{}' has no replica that is ready.", model),
          .type = "server_error",
          .code = "no_replica"};
}

ErrorAnswer all_failed(std::string_view model) {
  return {.status = 502,
          .message = fmt::format("Every replica of model '{}' failed to answer.", model),
          .type = "server_error",
          .code = "replicas_failed"};
}

ErrorAnswer unknown_request() {
  return {.status = 404,
          .message = "No decision about this request is kept.",
          .type = "invalid_request_error",
          .code = "request_not_found"};
}

ErrorAnswer bad_request(std::string message, std::string_view param) {
  return {.status = 400,
          .message = std::move(message),
          .type = "invalid_request_error",
          .param = param};
}

}  // namespace orrery
