#include "verbs/nodes/node_change.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/views.hpp"
#include "base/assert.hpp"
#include "base/text/count_text.hpp"
#include "base/text/terminal_text.hpp"

namespace orrery {
namespace {

/// Returns each name once, in the order given.
std::vector<std::string> each_once(const std::vector<std::string>& names) {
  std::vector<std::string> once;
  for (const std::string& name : names) {
    if (std::find(once.begin(), once.end(), name) == once.end()) once.push_back(name);
  }
  return once;
}

/// Takes an instant of an option, if it is given.
Status set_instant(std::string_view option, const std::string& text,
                   google::protobuf::Timestamp* (v1::DrainNodeRequest::*at)(),
                   v1::DrainNodeRequest& request) {
  if (text.empty()) return {};
  const Result<Instant> instant = Instant::parse(text);
  if (!instant) return input_error({}, fmt::format("{}: {}", option, instant.error().message));
  *(request.*at)() = timestamp_of(*instant);
  return {};
}

}  // namespace

v1::NodeRequest node_request(LiveSession& session, const std::string& name) {
  v1::NodeRequest request;
  request.set_request_id(session.request_id());
  request.set_name(name);
  return request;
}

std::shared_ptr<const google::protobuf::Message> NodeChanges::message() const {
  if (asked == 1) {
    ORRERY_ASSERT(!changed.empty(), "a node was changed");
    return std::make_shared<const v1::Node>(changed.front());
  }
  auto list = std::make_shared<v1::ListNodesResponse>();
  for (const v1::Node& node : changed) *list->add_nodes() = node;
  return list;
}

Status NodeChanges::status() const {
  if (!failed) return {};
  return tl::unexpected(
      Error{failed->kind, fmt::format("{} of {} nodes were changed", changed.size(), asked), {}});
}

Result<NodeChanges> change_nodes(const std::vector<std::string>& names, const NodeChange& change,
                                 const LiveProgress& said) {
  const std::vector<std::string> nodes = each_once(names);
  NodeChanges changes{.changed = {}, .failed = {}, .asked = nodes.size()};
  for (const std::string& name : nodes) {
    const Result<v1::NodeResponse> answer = change(name);
    if (answer) {
      changes.changed.push_back(answer->node());
      said.text(changed_text(changes.changed.back()));
      continue;
    }
    if (nodes.size() == 1) return tl::unexpected(answer.error());
    said.message(fmt::format("{}: {}\n", name, answer.error().text()));
    if (!changes.failed) changes.failed = answer.error();
  }
  return changes;
}

Result<v1::DrainNodeRequest> drain_request(const DrainOptions& options) {
  using Request = v1::DrainNodeRequest;
  Request request;
  request.set_why(options.why);
  request.set_at_once(options.at_once);
  Status set = set_instant("--from", options.from, &Request::mutable_from, request);
  if (set) set = set_instant("--to", options.to, &Request::mutable_to, request);
  if (!set) return forward_error(set);
  return request;
}

NodeChange drain_by(LiveSession& session, v1::DrainNodeRequest request) {
  return [&session, request = std::move(request)](const std::string& name) {
    v1::DrainNodeRequest one = request;
    one.set_request_id(session.request_id());
    one.set_name(name);
    return session.client().call<v1::NodeResponse>("DrainNode", one);
  };
}

NodeChange resume_by(LiveSession& session) {
  return [&session](const std::string& name) {
    return session.client().call<v1::NodeResponse>("ResumeNode", node_request(session, name));
  };
}

std::string changed_text(const v1::Node& node) {
  const auto count = static_cast<std::uint64_t>(node.jobs_size());
  const std::string jobs = count > 0 ? fmt::format(", running {}", counted(count, "job")) : "";
  const bool drained_later = node.drain() && node.health() == "absent";
  const std::string later = drained_later ? ", and drained when it is lent again" : "";
  return one_line(fmt::format("{} is {}{}{}", node.name(), node.health(), jobs, later)) + "\n";
}

}  // namespace orrery
