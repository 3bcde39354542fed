// tests/fuzz/fuzz_http.cpp - any text as an HTTP request: its lines are verb, path, query
// ("name=value" with '&' between) and body. A request that parses as a method's message is shown as
// JSON.
#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "api/http/http_routes.hpp"
#include "base/assert.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {
namespace {

std::string_view cut(std::string_view& text, char at) {
  const std::size_t end = std::min(text.find(at), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

HttpRequest request_of(std::string_view text) {
  HttpRequest request;
  request.verb = cut(text, '\n');
  request.path = cut(text, '\n');
  std::string_view query = cut(text, '\n');
  while (!query.empty()) {
    std::string_view value = cut(query, '&');
    const std::string_view name = cut(value, '=');
    request.query.insert_or_assign(std::string(name), std::string(value));
  }
  request.body = text;
  return request;
}

/// The empty request of a method, as its service names it.
Method method_named(const std::string& name) {
  const auto* service = v1::Job::descriptor()->file()->FindServiceByName("Orrery");
  const auto* type = service->FindMethodByName(name)->input_type();
  const auto* empty = google::protobuf::MessageFactory::generated_factory()->GetPrototype(type);
  return {.request = [empty] { return std::unique_ptr<google::protobuf::Message>(empty->New()); },
          .handle = {}};
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const HttpRequest request = request_of({reinterpret_cast<const char*>(data), size});
  const HttpRoute* route = find_route(request);
  if (route == nullptr) return 0;
  const auto message = message_of(*route, request, method_named(std::string(route->method)));
  if (!message) return 0;
  ORRERY_ASSERT(!message_json(**message).empty(), "what was taken can be shown");
  return 0;
}
