// gateway/error_answer.hpp - errors as clients of OpenAI's API read them:
// {"error":{"message","type","param","code"}}.
//
// Plain values and functions.
#pragma once

#include <string>
#include <string_view>

namespace orrery {

struct ErrorAnswer {
  int status = 500;
  std::string message;
  std::string_view type = "server_error";
  std::string_view param = {};  ///< the field of the request that is wrong; empty: null
  std::string_view code = {};   ///< empty: null
};

/// JSON in one line. Bytes of the message that are no UTF-8 are replaced.
[[nodiscard]] std::string error_json(const ErrorAnswer& error);
/// JSON for what a server answers itself, by its status.
[[nodiscard]] std::string error_json_of(int status, std::string_view message);

/// There is no such model, or it is another tenant's.
[[nodiscard]] ErrorAnswer unknown_model(std::string_view model);
/// Its replicas and its queue are full.
[[nodiscard]] ErrorAnswer overloaded(std::string_view model);
[[nodiscard]] ErrorAnswer without_replica(std::string_view model);
/// Each replica was tried.
[[nodiscard]] ErrorAnswer all_failed(std::string_view model);
/// No decision about a request is kept.
[[nodiscard]] ErrorAnswer unknown_request();

[[nodiscard]] ErrorAnswer bad_request(std::string message, std::string_view param);

}  // namespace orrery
