// api/http/http_routes.hpp - the methods by HTTP paths: the method of a request, and the message
// that its path, query and body make.
//
// One constant table, from which the OpenAPI document is made too. Pure; any thread.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "api/grpc/method_table.hpp"
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

/// Returns nullptr where no route has that path. O(routes).
[[nodiscard]] const HttpRoute* find_route(const HttpRequest& request);

/// Makes the message of a request: fields of the body first, then of the query, then of the path.
/// Errors (kInput): what is wrong with a field or the body. Precondition: the route is the
/// request's.
[[nodiscard]] Result<std::shared_ptr<google::protobuf::Message>> message_of(
    const HttpRoute& route, const HttpRequest& request, const Method& method);

/// Returns a message as JSON: names as in the schema, 64-bit numbers as texts, zeros included.
[[nodiscard]] std::string message_json(const google::protobuf::Message& message);

/// Returns the OpenAPI 3.0 document of the routes.
[[nodiscard]] std::string open_api_json(const MethodTable& methods);

}  // namespace orrery
