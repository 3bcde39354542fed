#include "gateway/picker/picker_messages.hpp"

#include <algorithm>

namespace orrery {
namespace {

constexpr std::string_view kBalancing = "envoy.lb";
constexpr std::string_view kSubsetHint = "envoy.lb.subset_hint";
constexpr std::string_view kDestination = "x-gateway-destination-endpoint";
constexpr std::string_view kSubset = "x-gateway-destination-endpoint-subset";
constexpr std::string_view kServed = "x-gateway-destination-endpoint-served";

/// Envoy refuses messages of more than 64 KiB.
constexpr std::size_t kPieceMax = 60'000;

const google::protobuf::Value* metadata_of(const ext_proc::ProcessingRequest& message,
                                           std::string_view space, std::string_view name) {
  const auto& spaces = message.metadata_context().filter_metadata();
  const auto found = spaces.find(std::string(space));
  if (found == spaces.end()) return nullptr;
  const auto value = found->second.fields().find(std::string(name));
  return value == found->second.fields().end() ? nullptr : &value->second;
}

/// Adds the endpoints of a text, which commas separate.
void add_endpoints(std::string_view text, std::vector<std::string>& endpoints) {
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view each = text.substr(0, comma);
    while (each.starts_with(' ')) each.remove_prefix(1);
    while (each.ends_with(' ')) each.remove_suffix(1);
    if (!each.empty()) endpoints.emplace_back(each);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
}

}  // namespace

std::optional<std::string_view> header_of(const ext_proc::HttpHeaders& headers,
                                          std::string_view name) {
  for (const ext_proc::HeaderValue& each : headers.headers().headers()) {
    if (each.key() != name) continue;
    return each.raw_value().empty() ? std::string_view(each.value()) : each.raw_value();
  }
  return std::nullopt;
}

std::optional<std::vector<std::string>> subset_of(const ext_proc::ProcessingRequest& message) {
  const google::protobuf::Value* value = metadata_of(message, kSubsetHint, kSubset);
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> endpoints;
  add_endpoints(value->string_value(), endpoints);
  for (const google::protobuf::Value& each : value->list_value().values()) {
    add_endpoints(each.string_value(), endpoints);
  }
  return endpoints;
}

std::string_view served_of(const ext_proc::ProcessingRequest& message) {
  const google::protobuf::Value* value = metadata_of(message, kBalancing, kServed);
  return value == nullptr ? std::string_view() : value->string_value();
}

void set_header(ext_proc::HeaderMutation& mutation, std::string_view name, std::string_view value) {
  ext_proc::HeaderValueOption& option = *mutation.add_set_headers();
  option.set_append_action(ext_proc::HeaderValueOption::OVERWRITE_IF_EXISTS_OR_ADD);
  option.mutable_header()->set_key(std::string(name));
  option.mutable_header()->set_raw_value(std::string(value));
}

void set_route(const PickedRoute& route, ext_proc::ProcessingResponse& answer,
               ext_proc::CommonResponse& common) {
  ext_proc::HeaderMutation& headers = *common.mutable_header_mutation();
  set_header(headers, kDestination, route.endpoints);
  set_header(headers, "x-request-id", route.request_id);
  if (route.authorization == PickedRoute::Authorization::kRemoved) {
    headers.add_remove_headers("authorization");
  }
  // The route may depend on the header.
  common.set_clear_route_cache(true);
  google::protobuf::Value& space =
      (*answer.mutable_dynamic_metadata()->mutable_fields())[std::string(kBalancing)];
  google::protobuf::Value& value =
      (*space.mutable_struct_value()->mutable_fields())[std::string(kDestination)];
  value.set_string_value(route.endpoints);
}

ext_proc::ProcessingResponse immediate_answer(int status, std::span<const WebHeader> headers,
                                              std::string_view body) {
  ext_proc::ProcessingResponse answer;
  ext_proc::ImmediateResponse& immediate = *answer.mutable_immediate_response();
  immediate.mutable_status()->set_code(status);
  for (const WebHeader& each : headers) {
    set_header(*immediate.mutable_headers(), each.name, each.value);
  }
  immediate.set_body(std::string(body));
  return answer;
}

std::vector<ext_proc::StreamedBodyResponse> pieces_of(std::string_view body, BodyEnd end) {
  std::vector<ext_proc::StreamedBodyResponse> pieces;
  do {
    const std::string_view piece = body.substr(0, kPieceMax);
    body.remove_prefix(piece.size());
    pieces.emplace_back().set_body(std::string(piece));
  } while (!body.empty());
  pieces.back().set_end_of_stream(end == BodyEnd::kEnded);
  return pieces;
}

}  // namespace orrery
