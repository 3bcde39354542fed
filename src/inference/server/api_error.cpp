#include "inference/server/api_error.hpp"

#include <nlohmann/json.hpp>

namespace orrery {

std::string api_error_body(const ApiError& error) {
  using Json = nlohmann::ordered_json;
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  const Json body{{"error",
                   {{"message", error.message},
                    {"type", error.type},
                    {"param", or_null(error.param)},
                    {"code", or_null(error.code)}}}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string web_error_body(int status, std::string_view message) {
  return api_error_body({.status = status,
                         .message = std::string(message),
                         .type = status < 500 ? "invalid_request_error" : "server_error"});
}

}  // namespace orrery
