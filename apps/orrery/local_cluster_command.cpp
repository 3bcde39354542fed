// orrery up, down
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "base/format/field_writer.hpp"
#include "base/text/count_text.hpp"
#include "verbs/cluster/live_session.hpp"
#include "verbs/local/local_cluster.hpp"

namespace orrery {
namespace {

struct LocalAsked {
  LocalFleetOptions fleet;
  LocalCluster::ControllerStart controller;
  bool keep_jobs = false;
};

/// A new cluster is made in the current directory, never in the user's home by chance.
std::string directory_to_make(const CommandOptions& options) {
  return options.cluster_directory.empty() ? "./.orrery" : options.cluster_directory;
}

/// What `up` did.
struct Started {
  std::vector<std::string> names;
  bool jobs_run_as_root = false;
};

void print_running(const CommandOptions& options, const LocalCluster& cluster,
                   const Started& done) {
  const std::vector<std::string>& started = done.names;
  const LocalNode& node = cluster.nodes().front();
  if (options.output == OutputFormat::kJson) {
    Json names = Json::array();
    for (const LocalNode& each : cluster.nodes()) names.push_back(each.name);
    return print_json({{"dir", cluster.directory()},
                       {"address", cluster.address()},
                       {"nodes", names},
                       {"accelerator", node.type},
                       {"accelerators", node.accelerators},
                       {"emulated", true},
                       {"unknown_nodes", cluster.unknown()},
                       {"jobs_run_as_root", done.jobs_run_as_root},
                       {"started", started}});
  }
  const std::size_t all = cluster.nodes().size() + 1;
  const std::string what =
      started.empty() ? "already running"
      : started.size() == all
          ? "started"
          : fmt::format("started {}; the rest was already running", fmt::join(started, ", "));
  print_text(fmt::format("A local cluster of {} at {} ({}): {}.\n",
                         counted(cluster.nodes().size(), "node"), cluster.address(),
                         cluster.directory(), what));
  if (!cluster.unknown().empty()) {
    print_message(fmt::format(
        "note: fleet.yaml names {}, which this cluster does not have: `orrery fleet apply "
        "{}/fleet.yaml` adds them\n",
        fmt::join(cluster.unknown(), ", "), cluster.directory()));
  }
  print_text(fmt::format("Each node has {} x {}, emulated: programs run on this machine's CPU.\n\n",
                         node.accelerators, node.type));
  if (done.jobs_run_as_root) {
    print_text(
        "WARNING: jobs run as root, so that any job can read the keys of this cluster and stop "
        "other jobs.\nDo not let other users submit jobs, or set run_as for each tenant in "
        "DIR/tenants.yaml.\n\n");
  }
  const std::string dir =
      options.cluster_directory.empty() ? "" : fmt::format(" --dir {}", options.cluster_directory);
  print_text(
      fmt::format("  orrery{0} submit -- python3 -c 'print(\"hello\")'\n"
                  "  orrery{0} jobs --all\n"
                  "  orrery{0} logs -f 0\n"
                  "  orrery{0} down\n",
                  dir));
}

Status up(const CommandOptions& options, const LocalAsked& asked) {
  const std::string directory = directory_to_make(options);
  RealStorage storage;
  if (Status fleet = write_local_fleet(storage, directory, asked.fleet); !fleet) return fleet;
  Result<LocalCluster> cluster = LocalCluster::open(directory);
  if (!cluster) return forward_error(cluster);
  Result<std::vector<std::string>> started = cluster->start(asked.controller);
  if (!started) return forward_error(started);
  const Result<bool> root = cluster->runs_jobs_as_root();
  if (!root) return tl::unexpected(root.error());
  print_running(options, *cluster, {*std::move(started), *root});
  return {};
}

/// `orrery down` does not end a controller that `orrery up` did not start, and says so.
Status other_controller(const LocalCluster::Ended& ended) {
  if (ended.other_controller == 0) return {};
  return infeasible(
      fmt::format("a controller that `orrery up` did not start is still running: process {0}; "
                  "`kill {0}` stops it",
                  ended.other_controller));
}

Status down(const CommandOptions& options, const LocalAsked& asked) {
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
  if (options.output == OutputFormat::kJson) {
    print_json({{"controllers", ended->controllers},
                {"agents", ended->agents},
                {"keepers", ended->keepers}});
    return other_controller(*ended);
  }
  print_text(fmt::format("stopped {}, {} and {}; {}\n", counted(ended->controllers, "controller"),
                         counted(ended->agents, "agent"), counted(ended->keepers, "keeper"),
                         asked.keep_jobs ? "running jobs continue, and `orrery up` takes them over"
                                         : "unfinished jobs restart with `orrery up`"));
  return other_controller(*ended);
}

}  // namespace

void add_local_cluster_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<LocalAsked>();
  CLI::App& up_verb = *app.add_subcommand("up",
                                          "start a local cluster with emulated accelerators, or "
                                          "restart those of its processes that died");
  up_verb.footer(
      "Examples:\n"
      "  orrery up\n"
      "  orrery up --nodes 8 --accelerators 4 --type mi300x --dir /var/tmp/eight\n"
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
