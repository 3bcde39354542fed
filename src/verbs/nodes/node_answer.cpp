#include "verbs/nodes/node_answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/text/terminal_text.hpp"
#include "verbs/cluster/live_lists.hpp"
#include "verbs/nodes/node_change.hpp"

namespace orrery {
namespace {

Result<v1::Node> get_node(LiveSession& session, const std::string& name) {
  v1::GetNodeRequest request;
  request.set_name(name);
  return session.client().call<v1::Node>("GetNode", request);
}

std::string shown(const std::string& text) { return terminal_text(text, Newlines::kKept); }

}  // namespace

Result<LiveAnswer> answer_nodes(const LiveCall& call) {
  Result<v1::ListNodesResponse> nodes = list_nodes(call.session);
  if (!nodes) return forward_error(nodes);
  std::string text = call.text.nodes({nodes->nodes().begin(), nodes->nodes().end()});
  return live_answer(*std::move(nodes), std::move(text));
}

Result<std::string> unknown_nodes_note(LiveSession& session) {
  const auto cluster = session.client().call<v1::Cluster>("GetCluster", v1::GetClusterRequest());
  if (!cluster) return tl::unexpected(cluster.error());
  return unknown_nodes_text(*cluster);
}

std::string unknown_nodes_text(const v1::Cluster& cluster) {
  if (cluster.unknown_nodes().empty()) return "";
  return fmt::format(
      "note: fleet.yaml names {}, which this cluster does not have: `orrery fleet apply "
      "DIR/fleet.yaml` adds them\n",
      one_line(fmt::format("{}", fmt::join(cluster.unknown_nodes(), ", "))));
}

Result<LiveAnswer> answer_node(const LiveCall& call, const std::string& name) {
  if (name.empty()) {
    return input_error(
        {}, "node: expected the name of a node, or fence, burn-in or token and the name of a node");
  }
  Result<v1::Node> node = get_node(call.session, name);
  if (!node) return forward_error(node);
  std::string text = call.text.node(*node);
  return live_answer(*std::move(node), std::move(text));
}

std::string FenceWarning::question() const {
  return fmt::format(
      "{} must be switched off, so that no process runs on it any more; {}.\n"
      "Is it switched off? [y/N] ",
      node, jobs);
}

Error FenceWarning::without_terminal() const {
  return {ErrorKind::kInput,
          fmt::format("fence: {} must be switched off, so that no process runs on it any more; {}. "
                      "Expected --yes, which confirms that it is",
                      node, jobs),
          {}};
}

FenceWarning fence_warning(const v1::Node& node) {
  return {node.name(), node.jobs().empty()
                           ? "no job waits for the node"
                           : fmt::format("these jobs will restart on other nodes: {}",
                                         fmt::join(node.jobs(), ", "))};
}

Status confirmed(const std::string& answer) {
  if (answer == "y" || answer == "Y" || answer == "yes") return {};
  return input_error({}, "fence: nothing was changed");
}

Result<LiveAnswer> fence_node(const LiveCall& call, const std::string& name,
                              const std::function<Status(const FenceWarning&)>& confirm) {
  const Result<v1::Node> before = get_node(call.session, name);
  if (!before) return tl::unexpected(before.error());
  if (confirm && before->health() == "lost") {
    if (Status sure = confirm(fence_warning(*before)); !sure) return forward_error(sure);
  }
  const auto fenced =
      call.session.client().call<v1::NodeResponse>("FenceNode", node_request(call.session, name));
  if (!fenced) return tl::unexpected(fenced.error());
  if (call.options.output == OutputFormat::kJson) return live_answer(fenced->node(), "");
  std::string text = shown(fmt::format(
      "{} is fenced: its jobs no longer count as running, and it accepts jobs again when its agent "
      "reconnects\n",
      name));
  for (const std::uint64_t id : before->jobs()) {
    v1::GetJobRequest request;
    request.set_id(id);
    const auto job = call.session.client().call<v1::Job>("GetJob", request);
    if (!job) continue;
    text += one_line(fmt::format("job {} ({}) is {}", id, job->name(), job->phase())) + "\n";
  }
  return live_answer(fenced->node(), std::move(text));
}

Result<LiveAnswer> burn_in_node(const LiveCall& call, const std::string& name) {
  const auto begun =
      call.session.client().call<v1::NodeResponse>("BurnInNode", node_request(call.session, name));
  if (!begun) return tl::unexpected(begun.error());
  return live_answer(
      begun->node(),
      shown(fmt::format("burn-in started on {0}; `orrery node {0}` shows the result\n", name)));
}

Result<LiveAnswer> make_join_token(const LiveCall& call, const std::string& name) {
  v1::MakeJoinTokenRequest request;
  request.set_node(name);
  auto made = call.session.client().call<v1::MakeJoinTokenResponse>("MakeJoinToken", request);
  if (!made) return forward_error(made);
  return join_answer(*std::move(made),
                     {name, fmt::format("{}", fmt::join(call.session.client().addresses(), ",")),
                      cluster_directory(call.options)});
}

LiveAnswer join_answer(v1::MakeJoinTokenResponse made, const JoinPlace& place) {
  std::string note;
  if (!made.connected_agent().empty()) {
    note = fmt::format(
        "note: {} already has an agent, at {}: the agent that joins with this token replaces it "
        "permanently, and the processes of the old agent are killed\n",
        place.node, one_line(made.connected_agent()));
  }
  note += fmt::format(
      "Within one hour, run on {0}, with a copy of {2}/tls/ca.pem and this token in FILE:\n"
      "  orrery-agent --node {0} --controller {1} --ca ca.pem --dir /var/lib/orrery/agent --join "
      "@FILE\n",
      place.node, place.controllers, place.directory);
  std::string token = shown(made.token() + "\n");
  LiveAnswer answer = live_answer(std::move(made), std::move(token));
  answer.before = shown(note);
  return answer;
}

}  // namespace orrery
