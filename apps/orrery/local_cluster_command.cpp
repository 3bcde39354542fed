// orrery up, down
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <utility>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "verbs/cluster/live_session.hpp"
#include "verbs/local/local_answer.hpp"
#include "verbs/local/local_cluster.hpp"

namespace orrery {
namespace {

struct LocalOptions {
  LocalFleetOptions fleet;
  ServerStart controller;
  bool keep_jobs = false;
};

/// A new cluster is made in the current directory, never in the user's home by chance.
std::string directory_to_make(const CommandOptions& options) {
  return options.cluster_directory.empty() ? "./.orrery" : options.cluster_directory;
}

void print_running(const CommandOptions& options, const RunningCluster& cluster) {
  if (options.output == OutputFormat::kJson) return print_json(running_json(cluster));
  const RunningText text = running_text(cluster);
  print_text(text.head);
  print_message(text.note);
  print_text(text.rest);
}

Status up(const CommandOptions& options, const LocalOptions& asked) {
  const std::string directory = directory_to_make(options);
  RealStorage storage;
  std::error_code failed;
  const bool makes_fleet = !std::filesystem::exists(directory + "/fleet.yaml", failed);
  if (Status fleet = write_local_fleet(storage, directory, asked.fleet); !fleet) return fleet;
  Result<LocalCluster> cluster = LocalCluster::open(directory);
  if (!cluster) return forward_error(cluster);
  Result<std::vector<std::string>> started = cluster->start(asked.controller);
  if (!started && makes_fleet) remove_unused_fleet(directory);
  if (!started) return forward_error(started);
  Result<RunningCluster> running = running_cluster(*cluster, *std::move(started));
  if (!running) return forward_error(running);
  running->asked = options.cluster_directory;
  print_running(options, *running);
  return {};
}

Status down(const CommandOptions& options, const LocalOptions& asked) {
  const std::string directory = cluster_directory(options);
  std::error_code failed;
  if (!std::filesystem::exists(directory + "/fleet.yaml", failed)) {
    return input_error({}, fmt::format("no cluster at {}", directory));
  }
  Result<LocalCluster> cluster = LocalCluster::open(directory);
  if (!cluster) return forward_error(cluster);
  const auto keepers = asked.keep_jobs ? LocalCluster::Keepers::kKeep : LocalCluster::Keepers::kEnd;
  const Result<LocalCluster::Ended> ended = cluster->stop(keepers);
  if (!ended) return tl::unexpected(ended.error());
  print_answer(options, ended_answer(*ended, keepers));
  return check_ended(*ended);
}

}  // namespace

void add_local_cluster_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<LocalOptions>();
  CLI::App& up_verb = *app.add_subcommand("up",
                                          "start a local cluster with emulated accelerators, or "
                                          "restart those of its processes that died");
  up_verb.footer(
      "Examples:\n"
      "  orrery up\n"
      "  orrery up --nodes 8 --accelerators 4 --type mi300x --dir /var/tmp/eight\n"
      "  orrery up --controllers 3 --store etcd\n"
      "\nThe cluster is kept in DIR (default: ./.orrery). A DIR/fleet.yaml of your own is used if "
      "it exists.\n");
  up_verb
      .add_option("--nodes", asked->fleet.nodes, "number of nodes of a new cluster (default: 4)")
      ->type_name("N");
  up_verb
      .add_option("--accelerators", asked->fleet.accelerators,
                  "accelerators on each node of a new cluster (default: 2)")
      ->type_name("K");
  up_verb
      .add_option("--type", asked->fleet.type,
                  "type of the accelerators, from the catalog (default: h100)")
      ->type_name("TYPE");
  up_verb
      .add_option("--controllers", asked->controller.controllers,
                  "number of controllers of a new cluster: one leads, the others stand by "
                  "(default: 1)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  up_verb
      .add_option("--store", asked->controller.store,
                  "log of a new cluster that its controllers share: etcd starts members of etcd "
                  "here, etcd://HOST:PORT[,HOST:PORT..]/NAME uses others (default: DIR/store)")
      ->type_name("STORE");
  up_verb
      .add_option("--record", asked->controller.record,
                  "directory for the inputs and events of the controller, for `orrery replay`")
      ->type_name("DIR");
  up_verb.add_flag("--accept-lost-jobs", asked->controller.accept_lost_jobs,
                   "continue although a part of the log is lost; ranks of jobs that are missing "
                   "from the log are stopped");
  up_verb.callback(
      [&options, &chosen, asked] { chosen = [&options, asked] { return up(options, *asked); }; });
  CLI::App& down_verb =
      *app.add_subcommand("down", "stop a local cluster: controller, agents and running jobs");
  down_verb.add_flag("--keep-jobs", asked->keep_jobs, "leave running jobs running");
  down_verb.callback(
      [&options, &chosen, asked] { chosen = [&options, asked] { return down(options, *asked); }; });
}

}  // namespace orrery
