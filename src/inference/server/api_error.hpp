// inference/server/api_error.hpp - an answer that tells a client what is wrong, in the form of
// OpenAI's API.
//
// Plain values and pure functions.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace orrery {

struct ApiError {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::string param;  ///< the parameter at fault; "": null
  std::string code;   ///< for programs; "": null
};

template <class T>
using ApiResult = tl::expected<T, ApiError>;

/// Returns {"error": {"message", "type", "param", "code"}}. Bytes that are no UTF-8 are replaced.
[[nodiscard]] std::string api_error_body(const ApiError& error);

/// Returns the same for an answer that the HTTP server makes by itself.
[[nodiscard]] std::string web_error_body(int status, std::string_view message);

}  // namespace orrery
