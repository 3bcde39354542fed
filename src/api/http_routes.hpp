// api/http_routes.hpp - the same methods by paths: which one a request of HTTP means, and the
// message its path, query and body make.
//
// One constant table, from which the OpenAPI document is made too. Pure; any thread.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "api/method_table.hpp"
#include "base/error.hpp"

namespace orrery {

struct HttpRoute {
  std::string_view verb;  ///< "GET" or "POST"
  std::string_view path;  ///< "/v1/jobs/{id}:cancel"; a field of the message stands in braces
  std::string_view method;
  bool stream = false;  ///< answered by server-sent events
};

[[nodiscard]] std::span<const HttpRoute> http_routes();

struct HttpRequest {
  std::string verb;
  std::string path;                          ///< decoded, without the query
  std::map<std::string, std::string> query;  ///< decoded
  std::string body;                          ///< JSON, or empty
};

struct RoutedCall {
  const HttpRoute* route = nullptr;
  const Method* method = nullptr;
  std::shared_ptr<google::protobuf::Message> message;
};

/// `message` of a RoutedCall: fields of the body first, then of the query, then of the path.
/// Errors: kInput, what is wrong with a field or the body; kInfeasible, no such path.
[[nodiscard]] Result<RoutedCall> route_request(const HttpRequest& request,
                                               const MethodTable& methods);

/// A message as JSON: names as in the schema, 64-bit numbers as texts, zeros and all.
[[nodiscard]] std::string message_json(const google::protobuf::Message& message);

/// The OpenAPI 3.0 document of the routes.
[[nodiscard]] std::string open_api_json(const MethodTable& methods);

}  // namespace orrery
