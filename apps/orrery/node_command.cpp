// orrery nodes, node, drain, resume
#include <fmt/format.h>

#include <memory>

#include "api/views.hpp"
#include "apps/orrery/command.hpp"
#include "apps/orrery/live_lists.hpp"
#include "apps/orrery/live_text.hpp"
#include "apps/orrery/live_verb.hpp"

namespace orrery {
namespace {

struct NodeAsked {
  std::string name;
  std::string why;
  std::string from;
  std::string to;
  bool at_once = false;
};

Status print_nodes(const CommandOptions& options, LiveSession& session, const NodeAsked&) {
  Result<v1::ListNodesResponse> nodes = list_nodes(session);
  if (!nodes) return forward_error(nodes);
  if (options.output == OutputFormat::kJson) {
    print_answer(*nodes);
  } else {
    print_text(LiveText::of(options).nodes({nodes->nodes().begin(), nodes->nodes().end()}));
  }
  return {};
}

Status print_node(const CommandOptions& options, LiveSession& session, const NodeAsked& asked) {
  if (asked.name.empty())
    return input_error({}, "node: expected its name, or fence, burn-in or token and its name");
  v1::GetNodeRequest request;
  request.set_name(asked.name);
  auto node = session.client().call<v1::Node>("GetNode", request);
  if (!node) return forward_error(node);
  if (options.output == OutputFormat::kJson) {
    print_answer(*node);
  } else {
    print_text(LiveText::of(options).node(*node));
  }
  return {};
}

/// What a change made of the node.
Status print_changed(const CommandOptions& options, Result<v1::NodeResponse> changed) {
  if (!changed) return forward_error(changed);
  const v1::Node& node = changed->node();
  if (options.output == OutputFormat::kJson) {
    print_answer(node);
  } else {
    const std::string state = LiveText::of(options).state(node.health());
    const std::string jobs =
        node.jobs_size() > 0 ? fmt::format(", {} jobs on it", node.jobs_size()) : "";
    print_text(fmt::format("{} is {}{}\n", node.name(), state, jobs));
  }
  return {};
}

/// An instant of an option, if it is given.
Status set_instant(std::string_view option, const std::string& text,
                   google::protobuf::Timestamp* (v1::DrainNodeRequest::*at)(),
                   v1::DrainNodeRequest& request) {
  if (text.empty()) return {};
  const Result<Instant> instant = Instant::parse(text);
  if (!instant) return input_error({}, fmt::format("{}: {}", option, instant.error().message));
  *(request.*at)() = timestamp_of(*instant);
  return {};
}

Status drain_node(const CommandOptions& options, LiveSession& session, const NodeAsked& asked) {
  v1::DrainNodeRequest request;
  request.set_request_id(session.request_id());
  request.set_name(asked.name);
  request.set_why(asked.why);
  request.set_at_once(asked.at_once);
  using Request = v1::DrainNodeRequest;
  Status set = set_instant("--from", asked.from, &Request::mutable_from, request);
  if (set) set = set_instant("--to", asked.to, &Request::mutable_to, request);
  if (!set) return set;
  return print_changed(options, session.client().call<v1::NodeResponse>("DrainNode", request));
}

v1::NodeRequest change_of(LiveSession& session, const NodeAsked& asked) {
  v1::NodeRequest request;
  request.set_request_id(session.request_id());
  request.set_name(asked.name);
  return request;
}

Status resume_node(const CommandOptions& options, LiveSession& session, const NodeAsked& asked) {
  return print_changed(
      options, session.client().call<v1::NodeResponse>("ResumeNode", change_of(session, asked)));
}

Status fence_node(const CommandOptions& options, LiveSession& session, const NodeAsked& asked) {
  return print_changed(
      options, session.client().call<v1::NodeResponse>("FenceNode", change_of(session, asked)));
}

Status burn_in_node(const CommandOptions& options, LiveSession& session, const NodeAsked& asked) {
  const auto begun =
      session.client().call<v1::NodeResponse>("BurnInNode", change_of(session, asked));
  if (!begun) return tl::unexpected(begun.error());
  if (options.output == OutputFormat::kJson) {
    print_answer(begun->node());
  } else {
    print_text(
        fmt::format("{0} tries itself out: `orrery node {0}` says how it ends\n", asked.name));
  }
  return {};
}

Status make_join_token(const CommandOptions& options, LiveSession& session,
                       const NodeAsked& asked) {
  v1::MakeJoinTokenRequest request;
  request.set_node(asked.name);
  const auto made = session.client().call<v1::MakeJoinTokenResponse>("MakeJoinToken", request);
  if (!made) return tl::unexpected(made.error());
  if (options.output == OutputFormat::kJson) {
    print_answer(*made);
  } else {
    print_message(
        fmt::format("on {0}, within an hour: orrery-agent --node {0} --join @FILE --ca "
                    "CA --controller {1} --dir DIR, with this in FILE\n",
                    asked.name, session.client().address()));
    print_text(made->token() + "\n");
  }
  return {};
}

}  // namespace

void add_node_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<NodeAsked>();
  const auto run = [&](CLI::App& added, LiveVerb<NodeAsked> verb) {
    run_live<NodeAsked>(added, options, chosen, {asked, verb});
  };
  const auto named = [&](CLI::App& parent, const char* name, const char* what) -> CLI::App& {
    CLI::App& added = *parent.add_subcommand(name, what);
    added.add_option("name", asked->name, "of the node")->type_name("NODE")->required();
    return added;
  };
  run(*app.add_subcommand("nodes", "the machines of a running cluster"), print_nodes);
  CLI::App& node = *app.add_subcommand("node", "all that is known of one machine");
  node.add_option("name", asked->name, "of the node")->type_name("NODE");
  node.footer(
      "Examples:\n  orrery node node-3\n"
      "  orrery node token node-3    > FILE  (then there: orrery-agent --node node-3 --join @FILE "
      "..)\n"
      "  orrery node burn-in node-3  (once it is drained; then: orrery node node-3)\n"
      "  orrery node fence node-3    (only when nothing can run there any more)");
  run(named(node, "fence",
            "declare a lost machine switched off for good, so that its jobs start elsewhere"),
      fence_node);
  run(named(node, "burn-in",
            "try a drained machine out: its processors and memory, or what its "
            "operator has set"),
      burn_in_node);
  run(named(node, "token", "print a token by which the machine's agent joins, once"),
      make_join_token);
  run(node, print_node);
  CLI::App& drain = named(app, "drain", "start no new work on a machine");
  drain.add_option("--why", asked->why, "for whoever sees it")->type_name("TEXT");
  drain.add_flag("--now", asked->at_once, "and move what runs there elsewhere");
  drain.add_option("--from", asked->from, "empty it then (2026-12-01T06:00:00Z), with --to")
      ->type_name("TIME");
  drain.add_option("--to", asked->to, "and let it work again then")->type_name("TIME");
  drain.footer(
      "Examples:\n  orrery drain node-3 --why \"new disk\"\n  orrery resume node-3\n"
      "  orrery drain node-3 --from 2026-12-01T06:00:00Z --to 2026-12-01T08:00:00Z\n"
      "      (a maintenance window: what would not be done by then starts elsewhere)");
  run(drain, drain_node);
  run(named(app, "resume", "start work on a drained machine again"), resume_node);
}

}  // namespace orrery
