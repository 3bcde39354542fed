// orrery nodes, node, drain, resume
#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "apps/orrery/command.hpp"
#include "apps/orrery/live_verb.hpp"
#include "apps/orrery/output.hpp"
#include "verbs/nodes/node_answer.hpp"
#include "verbs/nodes/node_change.hpp"

namespace orrery {
namespace {

struct NodeOptions {
  std::string name;
  std::vector<std::string> names;  ///< names of nodes, for verbs that take several
  DrainOptions drain;
  bool yes = false;
};

Status print_nodes(const CommandOptions& options, LiveSession& session, const NodeOptions&) {
  const Status printed = print_live(options, answer_nodes(live_call(options, session)));
  if (!printed) return printed;
  const Result<std::string> note = unknown_nodes_note(session);
  if (!note) return tl::unexpected(note.error());
  print_message(*note);
  return {};
}

Result<LiveAnswer> ask_node(const LiveCall& call, const NodeOptions& asked) {
  return answer_node(call, asked.name);
}

Status change_each(const CommandOptions& options, const NodeOptions& asked,
                   const NodeChange& change) {
  const Result<NodeChanges> changes = change_nodes(asked.names, change, live_progress(options));
  if (!changes) return tl::unexpected(changes.error());
  if (options.output == OutputFormat::kJson) print_answer(*changes->message());
  return changes->status();
}

Status drain_nodes(const CommandOptions& options, LiveSession& session, const NodeOptions& asked) {
  const Result<v1::DrainNodeRequest> request = drain_request(asked.drain);
  if (!request) return tl::unexpected(request.error());
  return change_each(options, asked, drain_by(session, *request));
}

Status resume_nodes(const CommandOptions& options, LiveSession& session, const NodeOptions& asked) {
  return change_each(options, asked, resume_by(session));
}

/// The user has to confirm at the terminal; without a terminal --yes is needed.
Status confirm_at_terminal(const FenceWarning& warning) {
  if (::isatty(STDIN_FILENO) == 0) return tl::unexpected(warning.without_terminal());
  print_message(warning.question());
  std::string answer;
  std::getline(std::cin, answer);
  return confirmed(answer);
}

Result<LiveAnswer> ask_to_fence(const LiveCall& call, const NodeOptions& asked) {
  if (asked.yes) return fence_node(call, asked.name, {});
  return fence_node(call, asked.name, confirm_at_terminal);
}

Result<LiveAnswer> ask_to_burn_in(const LiveCall& call, const NodeOptions& asked) {
  return burn_in_node(call, asked.name);
}

Result<LiveAnswer> ask_for_token(const LiveCall& call, const NodeOptions& asked) {
  return make_join_token(call, asked.name);
}

}  // namespace

void add_node_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<NodeOptions>();
  const auto run = [&](CLI::App& added, LiveVerb<NodeOptions> verb) {
    run_live<NodeOptions>(added, options, chosen, {asked, verb});
  };
  const auto ask = [&](CLI::App& added, LiveQuestion<NodeOptions> question) {
    ask_live<NodeOptions>(added, options, chosen, {asked, question});
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
  ask(fence, ask_to_fence);
  ask(named(node, "burn-in",
            "test a drained node: processors and memory, or the test set by its operator"),
      ask_to_burn_in);
  ask(named(node, "token", "print a single-use token with which an agent joins"), ask_for_token);
  ask(node, ask_node);
  CLI::App& drain = several("drain", "drain nodes, so that no new jobs start on them");
  drain
      .add_option("--why", asked->drain.why,
                  "reason, shown with the nodes, in events and in the log")
      ->type_name("TEXT");
  drain.add_flag("--now", asked->drain.at_once,
                 "also stop running jobs, which restart on other nodes; works on nodes that are "
                 "already draining");
  drain.add_option("--from", asked->drain.from, "start of a maintenance window; needs --to")
      ->type_name("TIME");
  drain.add_option("--to", asked->drain.to, "end of the maintenance window")->type_name("TIME");
  drain.footer(
      "Examples:\n  orrery drain node-3 --why \"new disk\"\n  orrery resume node-3\n"
      "  orrery drain node-3,node-4 --now\n"
      "  orrery drain node-3 --from 2026-12-01T06:00:00Z --to 2026-12-01T08:00:00Z\n"
      "      (a maintenance window: jobs that would not end before it start on other nodes)");
  run(drain, drain_nodes);
  run(several("resume", "return drained nodes to service"), resume_nodes);
}

}  // namespace orrery
