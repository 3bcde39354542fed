// orrery nodes, node, drain, resume
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/views.hpp"
#include "apps/orrery/command.hpp"
#include "apps/orrery/live_verb.hpp"
#include "apps/orrery/output.hpp"
#include "base/text/count_text.hpp"
#include "verbs/cluster/live_lists.hpp"
#include "verbs/cluster/live_text.hpp"

namespace orrery {
namespace {

struct NodeAsked {
  std::string name;
  std::vector<std::string> names;  ///< names of nodes, for verbs that take several
  std::string why;
  std::string from;
  std::string to;
  bool at_once = false;
  bool yes = false;
};

/// Returns each name once, in the order given.
std::vector<std::string> names_of(const NodeAsked& asked) {
  std::vector<std::string> names;
  for (const std::string& name : asked.names) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

Status print_nodes(const CommandOptions& options, LiveSession& session, const NodeAsked&) {
  Result<v1::ListNodesResponse> nodes = list_nodes(session);
  if (!nodes) return forward_error(nodes);
  if (options.output == OutputFormat::kJson) {
    print_answer(*nodes);
  } else {
    print_shown(LiveText::of(options).nodes({nodes->nodes().begin(), nodes->nodes().end()}));
  }
  const auto cluster = session.client().call<v1::Cluster>("GetCluster", v1::GetClusterRequest());
  if (!cluster) return tl::unexpected(cluster.error());
  if (cluster->unknown_nodes_size() > 0) {
    print_message(fmt::format(
        "note: fleet.yaml names {}, which this cluster does not have: `orrery fleet apply "
        "DIR/fleet.yaml` adds them\n",
        one_line(fmt::format("{}", fmt::join(cluster->unknown_nodes(), ", ")))));
  }
  return {};
}

Status print_node(const CommandOptions& options, LiveSession& session, const NodeAsked& asked) {
  if (asked.name.empty())
    return input_error(
        {}, "node: expected the name of a node, or fence, burn-in or token and the name of a node");
  v1::GetNodeRequest request;
  request.set_name(asked.name);
  auto node = session.client().call<v1::Node>("GetNode", request);
  if (!node) return forward_error(node);
  if (options.output == OutputFormat::kJson) {
    print_answer(*node);
  } else {
    print_shown(LiveText::of(options).node(*node));
  }
  return {};
}

using Changed = Result<v1::NodeResponse>;

std::string changed_text(const v1::Node& node) {
  const auto count = static_cast<std::uint64_t>(node.jobs_size());
  const std::string jobs = count > 0 ? fmt::format(", running {}", counted(count, "job")) : "";
  return one_line(fmt::format("{} is {}{}", node.name(), node.health(), jobs)) + "\n";
}

/// What a change made of each node; one that is refused keeps none of the others from it. A list
/// of one answers with an object, as JSON.
template <class Change>
Status change_each(const CommandOptions& options, const NodeAsked& asked, const Change& change) {
  const std::vector<std::string> names = names_of(asked);
  std::vector<v1::Node> changed;
  std::optional<Error> failed;
  for (const std::string& name : names) {
    const Changed answer = change(name);
    if (answer) {
      changed.push_back(answer->node());
      if (options.output == OutputFormat::kText) print_text(changed_text(changed.back()));
      continue;
    }
    if (names.size() == 1) return tl::unexpected(answer.error());
    print_message(fmt::format("{}: {}\n", name, answer.error().text()));
    if (!failed) failed = answer.error();
  }
  if (options.output == OutputFormat::kJson) {
    if (names.size() == 1) {
      print_answer(changed.front());
    } else {
      v1::ListNodesResponse list;
      for (v1::Node& node : changed) *list.add_nodes() = std::move(node);
      print_answer(list);
    }
  }
  if (!failed) return {};
  return tl::unexpected(Error{
      failed->kind, fmt::format("{} of {} nodes were changed", changed.size(), names.size()), {}});
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
  request.set_why(asked.why);
  request.set_at_once(asked.at_once);
  using Request = v1::DrainNodeRequest;
  Status set = set_instant("--from", asked.from, &Request::mutable_from, request);
  if (set) set = set_instant("--to", asked.to, &Request::mutable_to, request);
  if (!set) return set;
  return change_each(options, asked, [&](const std::string& name) {
    request.set_request_id(session.request_id());
    request.set_name(name);
    return session.client().call<v1::NodeResponse>("DrainNode", request);
  });
}

v1::NodeRequest change_of(LiveSession& session, const std::string& name) {
  v1::NodeRequest request;
  request.set_request_id(session.request_id());
  request.set_name(name);
  return request;
}

Status resume_node(const CommandOptions& options, LiveSession& session, const NodeAsked& asked) {
  return change_each(options, asked, [&](const std::string& name) {
    return session.client().call<v1::NodeResponse>("ResumeNode", change_of(session, name));
  });
}

/// The user has to confirm at the terminal; without a terminal --yes is needed.
Status confirm_fence(const v1::Node& node) {
  const std::string jobs =
      node.jobs().empty()
          ? "no job waits for the node"
          : fmt::format("these jobs will restart on other nodes: {}", fmt::join(node.jobs(), ", "));
  if (::isatty(STDIN_FILENO) == 0) {
    return input_error({}, fmt::format("fence: {} must be switched off, so that no process runs on "
                                       "it any more; {}. Expected --yes, which confirms that it is",
                                       node.name(), jobs));
  }
  print_message(
      fmt::format("{} must be switched off, so that no process runs on it any more; {}.\n"
                  "Is it switched off? [y/N] ",
                  node.name(), jobs));
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return {};
  return input_error({}, "fence: nothing was changed");
}

Status fence_node(const CommandOptions& options, LiveSession& session, const NodeAsked& asked) {
  v1::GetNodeRequest which;
  which.set_name(asked.name);
  const auto before = session.client().call<v1::Node>("GetNode", which);
  if (!before) return tl::unexpected(before.error());
  if (!asked.yes && before->health() == "lost") {
    if (Status sure = confirm_fence(*before); !sure) return sure;
  }
  const Changed fenced =
      session.client().call<v1::NodeResponse>("FenceNode", change_of(session, asked.name));
  if (!fenced) return tl::unexpected(fenced.error());
  if (options.output == OutputFormat::kJson) {
    print_answer(fenced->node());
    return {};
  }
  std::string text = fmt::format(
      "{} is fenced: its jobs no longer count as running, and it accepts jobs again when its agent "
      "reconnects\n",
      asked.name);
  for (const std::uint64_t id : before->jobs()) {
    v1::GetJobRequest request;
    request.set_id(id);
    const auto job = session.client().call<v1::Job>("GetJob", request);
    if (!job) continue;
    text += one_line(fmt::format("job {} ({}) is {}", id, job->name(), job->phase())) + "\n";
  }
  print_text(text);
  return {};
}

Status burn_in_node(const CommandOptions& options, LiveSession& session, const NodeAsked& asked) {
  const auto begun =
      session.client().call<v1::NodeResponse>("BurnInNode", change_of(session, asked.name));
  if (!begun) return tl::unexpected(begun.error());
  if (options.output == OutputFormat::kJson) {
    print_answer(begun->node());
  } else {
    print_text(
        fmt::format("burn-in started on {0}; `orrery node {0}` shows the result\n", asked.name));
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
    if (!made->connected_agent().empty()) {
      print_message(
          fmt::format("note: {} already has an agent, at {}: the agent that joins with this token "
                      "replaces it permanently, and the processes of the old agent are killed\n",
                      asked.name, one_line(made->connected_agent())));
    }
    print_message(fmt::format(
        "Within one hour, run on {0}, with a copy of {2}/tls/ca.pem and this token in FILE:\n"
        "  orrery-agent --node {0} --controller {1} --ca ca.pem --dir /var/lib/orrery/agent --join "
        "@FILE\n",
        asked.name, session.client().address(), cluster_directory(options)));
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
    added.add_option("name", asked->name, "name of the node")->type_name("NODE")->required();
    return added;
  };
  const auto several = [&](const char* name, const char* what) -> CLI::App& {
    CLI::App& added = *app.add_subcommand(name, what);
    added.add_option("names", asked->names, "names of the nodes, separated by spaces or commas")
        ->type_name("NODE")
        ->delimiter(',')
        ->required();
    return added;
  };
  run(*app.add_subcommand("nodes", "list the nodes of a running cluster"), print_nodes);
  CLI::App& node = *app.add_subcommand("node", "show the details of one node");
  node.add_option("name", asked->name, "name of the node")->type_name("NODE");
  node.footer(
      "Examples:\n  orrery node node-3\n"
      "  orrery node token node-3    > FILE  (then on node-3: orrery-agent --node node-3 --join "
      "@FILE ..)\n"
      "  orrery node burn-in node-3  (on a drained node; `orrery node node-3` shows the result)\n"
      "  orrery node fence node-3    (only if the node is switched off)");
  CLI::App& fence =
      named(node, "fence",
            "declare a lost node switched off, so that its jobs can restart on other nodes");
  fence.add_flag("--yes", asked->yes, "confirm without a prompt that the node is switched off");
  run(fence, fence_node);
  run(named(node, "burn-in",
            "test a drained node: processors and memory, or the test set by its operator"),
      burn_in_node);
  run(named(node, "token", "print a single-use token with which an agent joins"), make_join_token);
  run(node, print_node);
  CLI::App& drain = several("drain", "drain nodes, so that no new jobs start on them");
  drain.add_option("--why", asked->why, "reason, shown with the nodes, in events and in the log")
      ->type_name("TEXT");
  drain.add_flag("--now", asked->at_once,
                 "also stop running jobs, which restart on other nodes; works on nodes that are "
                 "already draining");
  drain.add_option("--from", asked->from, "start of a maintenance window; needs --to")
      ->type_name("TIME");
  drain.add_option("--to", asked->to, "end of the maintenance window")->type_name("TIME");
  drain.footer(
      "Examples:\n  orrery drain node-3 --why \"new disk\"\n  orrery resume node-3\n"
      "  orrery drain node-3,node-4 --now\n"
      "  orrery drain node-3 --from 2026-12-01T06:00:00Z --to 2026-12-01T08:00:00Z\n"
      "      (a maintenance window: jobs that would not end before it start on other nodes)");
  run(drain, drain_node);
  run(several("resume", "return drained nodes to service"), resume_node);
}

}  // namespace orrery
