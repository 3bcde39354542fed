#include "gateway/passed_headers.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "gateway/stream/stream_marks.hpp"

namespace orrery {
namespace {

constexpr std::string_view kRequestId = "x-request-id";

constexpr std::array<std::string_view, 12> kOfConnection = {
    "connection", "keep-alive",     "proxy-authenticate", "proxy-authorization",
    "te",         "trailer",        "transfer-encoding",  "upgrade",
    "expect",     "content-length", kRequestId,           kContinueHeader};
/// Accept-Encoding: an answer that is compressed could not be followed.
constexpr std::array<std::string_view, 3> kOfClient = {"authorization", "host", "accept-encoding"};

bool is_in(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::any_of(names, [&](std::string_view each) { return same_token(each, name); });
}

std::vector<WebHeader> without(const WebHeaders& received, std::span<const std::string_view> more,
                               std::string_view request_id) {
  std::vector<WebHeader> passed;
  passed.reserve(received.size() + 1);
  const std::string_view listed = received.find("connection").value_or("");
  for (std::size_t i = 0; i < received.size(); ++i) {
    const WebHeader each = received.at(i);
    if (is_in(kOfConnection, each.name) || is_in(more, each.name)) continue;
    if (!listed.empty() && lists_token(listed, each.name)) continue;
    passed.push_back(each);
  }
  passed.push_back({kRequestId, request_id});
  return passed;
}

}  // namespace

std::vector<WebHeader> headers_upstream(const WebHeaders& received, std::string_view request_id) {
  return without(received, kOfClient, request_id);
}

std::vector<WebHeader> headers_downstream(const WebHeaders& received, std::string_view request_id) {
  return without(received, {}, request_id);
}

}  // namespace orrery
