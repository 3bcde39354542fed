#include "api/http/http_routes.hpp"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/json_util.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "api/grpc/method_summary.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Json = nlohmann::json;

/// The routes; the first match counts.
constexpr std::array kRoutes{
    HttpRoute{"POST", "/v1/jobs", "SubmitJob"},
    HttpRoute{"GET", "/v1/jobs", "ListJobs"},
    HttpRoute{"GET", "/v1/jobs/{id}/log", "ReadLog", true},
    HttpRoute{"GET", "/v1/jobs/{id}", "GetJob"},
    HttpRoute{"POST", "/v1/jobs/{id}:cancel", "CancelJob"},
    HttpRoute{"POST", "/v1/jobs/{id}:change", "ChangeJob"},
    HttpRoute{"POST", "/v1/jobs/{id}:hold", "HoldJob"},
    HttpRoute{"POST", "/v1/jobs/{id}:release", "ReleaseJob"},
    HttpRoute{"POST", "/v1/jobs/{id}:key", "AddServiceKey"},
    HttpRoute{"POST", "/v1/jobs/{id}:update", "UpdateService"},
    HttpRoute{"POST", "/v1/jobs/{id}:requeue", "RequeueJob"},
    HttpRoute{"GET", "/v1/jobs/{id}:wait", "WaitJob"},
    HttpRoute{"GET", "/v1/jobs/{id}:explain", "ExplainJob"},
    HttpRoute{"GET", "/v1/nodes", "ListNodes"},
    HttpRoute{"GET", "/v1/nodes/{name}", "GetNode"},
    HttpRoute{"POST", "/v1/nodes/{name}:drain", "DrainNode"},
    HttpRoute{"POST", "/v1/nodes/{name}:resume", "ResumeNode"},
    HttpRoute{"POST", "/v1/nodes/{name}:fence", "FenceNode"},
    HttpRoute{"POST", "/v1/nodes/{name}:burn-in", "BurnInNode"},
    HttpRoute{"POST", "/v1/nodes/{node}:token", "MakeJoinToken"},
    HttpRoute{"POST", "/v1/fleet", "ApplyFleet"},
    HttpRoute{"GET", "/v1/holds", "ListHolds"},
    HttpRoute{"GET", "/v1/power", "ListPowerDomains"},
    HttpRoute{"POST", "/v1/power/{name}:cap", "SetPowerCap"},
    HttpRoute{"GET", "/v1/users", "ListUsers"},
    HttpRoute{"POST", "/v1/users", "AddUser"},
    HttpRoute{"POST", "/v1/users/{name}:remove", "RemoveUser"},
    HttpRoute{"POST", "/v1/users/{name}:rotate", "RotateUser"},
    HttpRoute{"GET", "/v1/tenants", "ListTenants"},
    HttpRoute{"GET", "/v1/cluster", "GetCluster"},
    HttpRoute{"POST", "/v1/store:compact", "CompactStore"},
    HttpRoute{"GET", "/v1/events:list", "ListEvents"},
    HttpRoute{"GET", "/v1/events", "WatchEvents", true},
};

struct PathMatch {
  std::string field;  ///< empty: the path has none
  std::string value;
};

/// A field reaches up to the next part of the pattern; a name of a node may hold slashes.
std::optional<PathMatch> match(std::string_view pattern, std::string_view path) {
  const std::size_t open = pattern.find('{');
  if (open == std::string_view::npos) {
    return pattern == path ? std::optional(PathMatch()) : std::nullopt;
  }
  const std::size_t close = pattern.find('}');
  const std::string_view before = pattern.substr(0, open);
  const std::string_view after = pattern.substr(close + 1);
  if (!path.starts_with(before) || !path.ends_with(after)) return std::nullopt;
  if (path.size() <= before.size() + after.size()) return std::nullopt;
  const std::string_view value =
      path.substr(before.size(), path.size() - before.size() - after.size());
  if (value.find(':') != std::string_view::npos) return std::nullopt;
  return PathMatch{std::string(pattern.substr(open + 1, close - open - 1)), std::string(value)};
}

/// Sets a field from text: texts and numbers unchanged, booleans by their words; the parser checks
/// the values.
Status set_field(Json& object, const Descriptor& type, const std::string& name,
                 const std::string& value) {
  if (first_invalid_utf8(name + value) < name.size() + value.size()) {
    return input_error({}, "a name or value of the request is no UTF-8");
  }
  const FieldDescriptor* field = type.FindFieldByName(name);
  if (field == nullptr || field->is_repeated()) {
    return input_error({}, fmt::format("{} has no field \"{}\"", type.name(), name));
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    object[name] = value == "true" || value == "1" || value.empty();
  } else {
    object[name] = value;
  }
  return {};
}

Result<Json> json_body(const std::string& body) {
  if (body.empty()) return Json::object();
  // Json::dump() calls itself for each level, so the depth of a body has to be bounded.
  constexpr int kDepthMax = 64;
  bool deep = false;
  Json json = Json::parse(
      body,
      [&deep](int depth, Json::parse_event_t, Json&) {
        deep = deep || depth > kDepthMax;
        return !deep;
      },
      false);
  if (deep) {
    return input_error({}, fmt::format("the body is nested more than {} levels deep", kDepthMax));
  }
  if (!json.is_object()) return input_error({}, "the body is no JSON object");
  return json;
}

Status fill(const HttpRequest& request, const PathMatch& matched, Message& message) {
  Result<Json> object = json_body(request.body);
  if (!object) return forward_error(object);
  const Descriptor& type = *message.GetDescriptor();
  for (const auto& [name, value] : request.query) {
    if (Status set = set_field(*object, type, name, value); !set) return set;
  }
  if (!matched.field.empty()) {
    if (Status set = set_field(*object, type, matched.field, matched.value); !set) return set;
  }
  const auto parsed = google::protobuf::util::JsonStringToMessage(object->dump(), &message);
  if (parsed.ok()) return {};
  return input_error({}, std::string(parsed.message()));
}

}  // namespace

std::span<const HttpRoute> http_routes() { return kRoutes; }

const HttpRoute* find_route(const HttpRequest& request) {
  for (const HttpRoute& route : kRoutes) {
    if (route.verb == request.verb && match(route.path, request.path)) return &route;
  }
  return nullptr;
}

Result<std::shared_ptr<Message>> message_of(const HttpRoute& route, const HttpRequest& request,
                                            const Method& method) {
  std::shared_ptr<Message> message = method.request();
  const std::optional<PathMatch> matched = match(route.path, request.path);
  if (Status filled = fill(request, *matched, *message); !filled) return forward_error(filled);
  return message;
}

std::string message_json(const Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  // Only a message that holds an Any of an unknown type can fail.
  static_cast<void>(google::protobuf::util::MessageToJsonString(message, &json, options));
  return json;
}

// --- OpenAPI ------------------------------------------------------------------------------------

namespace {

Json schema_of(const FieldDescriptor& field) {
  Json one;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      one = {{"type", "boolean"}};
      break;
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_UINT32:
      one = {{"type", "integer"}, {"format", "int32"}};
      break;
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT64:
      one = {{"type", "string"}, {"format", "int64"}};
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      one = {{"type", "number"}};
      break;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      one = field.message_type()->full_name() == "google.protobuf.Timestamp"
                ? Json{{"type", "string"}, {"format", "date-time"}}
                : Json{{"$ref", "#/components/schemas/" + field.message_type()->name()}};
      break;
    case FieldDescriptor::CPPTYPE_STRING:
    case FieldDescriptor::CPPTYPE_ENUM:
      one = {{"type", "string"}};
      if (field.type() == FieldDescriptor::TYPE_BYTES) one["format"] = "byte";
      break;
  }
  if (!field.is_repeated()) return one;
  return {{"type", "array"}, {"items", one}};
}

/// Adds the schema of a type, and those of the types in it.
void add_schema(const Descriptor& type, Json& schemas) {
  if (schemas.contains(type.name())) return;
  Json properties = Json::object();
  schemas[type.name()] = nullptr;
  for (int at = 0; at < type.field_count(); ++at) {
    const FieldDescriptor& field = *type.field(at);
    properties[field.name()] = schema_of(field);
    const bool nested = field.message_type() != nullptr &&
                        field.message_type()->full_name() != "google.protobuf.Timestamp";
    if (nested) add_schema(*field.message_type(), schemas);
  }
  schemas[type.name()] = {{"type", "object"}, {"properties", properties}};
}

Json parameters_of(const HttpRoute& route, const Descriptor& type) {
  Json parameters = Json::array();
  for (int at = 0; at < type.field_count(); ++at) {
    const FieldDescriptor& field = *type.field(at);
    const bool in_path = route.path.find("{" + field.name() + "}") != std::string_view::npos;
    if (!in_path && route.verb != "GET") continue;
    parameters.push_back({{"name", field.name()},
                          {"in", in_path ? "path" : "query"},
                          {"required", in_path},
                          {"schema", schema_of(field)}});
  }
  return parameters;
}

Json content(std::string_view kind, const Descriptor& type) {
  const Json schema = {{"$ref", "#/components/schemas/" + type.name()}};
  return {{"content", {{std::string(kind), {{"schema", schema}}}}}};
}

struct ErrorAnswer {
  std::string_view code;
  std::string_view name;  ///< among the components
  std::string_view text;
};
constexpr std::array kErrorAnswers{
    ErrorAnswer{"400", "BadRequest", "A field or the body is wrong; the message says which"},
    ErrorAnswer{"401", "Unauthorized", "There is no token, it is not known, or it has expired"},
    ErrorAnswer{"403", "Forbidden", "The role or the tenant of the caller does not allow it"},
    ErrorAnswer{"404", "NotFound", "There is no such thing, or it is of another tenant"},
    ErrorAnswer{"409", "Conflict", "The state of the thing does not allow it"},
    ErrorAnswer{"429", "TooManyRequests", "Too much at once, or the controller's disk is full"}};

Json reference(std::string_view kind, std::string_view name) {
  return {{"$ref", fmt::format("#/components/{}/{}", kind, name)}};
}

Json error_answers() {
  const Json body = {{"application/json", {{"schema", reference("schemas", "Error")}}}};
  Json answers = Json::object();
  for (const ErrorAnswer& error : kErrorAnswers) {
    answers[std::string(error.name)] = {{"description", error.text}, {"content", body}};
  }
  return answers;
}

Json responses_of(const HttpRoute& route, const Descriptor& type) {
  Json answer = content(route.stream ? "text/event-stream" : "application/json", type);
  answer["description"] = "OK";
  Json responses = {{"200", answer}};
  for (const ErrorAnswer& error : kErrorAnswers) {
    responses[std::string(error.code)] = reference("responses", error.name);
  }
  return responses;
}

Json operation_of(const HttpRoute& route, const google::protobuf::MethodDescriptor& rpc) {
  Json operation = {{"operationId", route.method},
                    {"parameters", parameters_of(route, *rpc.input_type())},
                    {"responses", responses_of(route, *rpc.output_type())}};
  if (const MethodSummary* summary = method_summary(route.method)) {
    operation["summary"] = summary->text;
    operation["tags"] = Json::array({summary->tag});
  }
  if (route.verb == "POST") {
    operation["requestBody"] = content("application/json", *rpc.input_type());
  }
  return operation;
}

Json error_schema() {
  return {{"type", "object"},
          {"required", Json::array({"code", "message"})},
          {"properties",
           {{"code", {{"type", "integer"}, {"description", "a status code of gRPC"}}},
            {"message", {{"type", "string"}}}}}};
}

}  // namespace

std::string open_api_json(const MethodTable& methods) {
  const Descriptor* any = methods.find("GetCluster")->request()->GetDescriptor();
  const auto* service = any->file()->FindServiceByName("Orrery");
  Json paths = Json::object();
  Json schemas = {{"Error", error_schema()}};
  for (const HttpRoute& route : kRoutes) {
    const auto& rpc = *service->FindMethodByName(std::string(route.method));
    // The request of a GET is in its parameters.
    if (route.verb == "POST") add_schema(*rpc.input_type(), schemas);
    add_schema(*rpc.output_type(), schemas);
    const std::string verb = route.verb == "GET" ? "get" : "post";
    paths[std::string(route.path)][verb] = operation_of(route, rpc);
  }
  const Json bearer = {{"type", "http"}, {"scheme", "bearer"}};
  const Json license = {{"name", "Apache-2.0"},
                        {"url", "https://www.apache.org/licenses/LICENSE-2.0"}};
  const Json document = {
      {"openapi", "3.0.3"},
      {"info",
       {{"title", "Orrery"},
        {"version", "v1"},
        {"description", "Exec, which sends in both directions, is over gRPC alone."},
        {"license", license}}},
      {"servers", Json::array({{{"url", "/"}}})},
      {"security", Json::array({{{"token", Json::array()}}})},
      {"paths", paths},
      {"components",
       {{"schemas", schemas},
        {"responses", error_answers()},
        {"securitySchemes", {{"token", bearer}}}}}};
  return document.dump(2);
}

}  // namespace orrery
