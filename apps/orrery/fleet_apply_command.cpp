// orrery fleet apply
#include <memory>
#include <string>

#include "apps/orrery/command.hpp"
#include "apps/orrery/live_verb.hpp"
#include "apps/orrery/output.hpp"
#include "verbs/nodes/fleet_apply.hpp"
#include "verbs/nodes/fleet_change_text.hpp"

namespace orrery {
namespace {

struct ApplyOptions {
  std::string file;
  bool dry_run = false;
  bool drain = false;
  bool force = false;

  [[nodiscard]] BusyNodes busy() const {
    if (force) return BusyNodes::kEvict;
    return drain ? BusyNodes::kDrain : BusyNodes::kRefuse;
  }
};

/// Prints a change for programs, or its text for people.
void print_change(const CommandOptions& options, const v1::FleetChange& change,
                  const std::string& text) {
  if (options.output == OutputFormat::kJson) return print_answer(change);
  print_text(text);
}

Status run_apply(const CommandOptions& options, LiveSession& session, const ApplyOptions& asked) {
  const Result<FleetText> fleet = read_fleet_to_apply(asked.file, options.catalog_directory);
  if (!fleet) return tl::unexpected(fleet.error());
  // A call that is repeated finds the fleet changed, so that what it changes is asked for first.
  const Result<v1::FleetChange> change = dry_run_fleet(session, *fleet);
  if (!change) return tl::unexpected(change.error());
  if (asked.dry_run) {
    print_change(options, *change, fleet_dry_run_text(*change));
    return {};
  }
  const LiveProgress said = live_progress(options);
  if (change->busy().empty() || asked.busy() != BusyNodes::kRefuse) {
    said.text(fleet_change_text(*change));
  }
  const Result<AppliedFleet> applied =
      apply_fleet(session, {.fleet = *fleet, .change = *change, .busy = asked.busy()}, said);
  if (!applied) return tl::unexpected(applied.error());
  if (applied->refused) {
    print_change(options, applied->change, fleet_change_text(applied->change));
    return tl::unexpected(busy_fleet_error(applied->change));
  }
  const Result<std::string> followed = follow_fleet(live_call(options, session), applied->change);
  print_change(options, applied->change,
               applied_fleet_text(applied->change) + (followed ? *followed : ""));
  if (!followed) return tl::unexpected(followed.error());
  return {};
}

}  // namespace

void add_fleet_apply_command(CLI::App& fleet, const CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<ApplyOptions>();
  CLI::App& verb =
      *fleet.add_subcommand("apply", "add and retire nodes of a running cluster, under its jobs");
  verb.add_option("FILE", asked->file, "a fleet spec; - is standard input")->required();
  verb.add_flag("--dry-run", asked->dry_run, "show what would change, and change nothing");
  CLI::Option* drain = verb.add_flag(
      "--drain", asked->drain,
      "start no new work on nodes that are retired, wait until their jobs have ended, then apply");
  verb.add_flag("--force", asked->force,
                "evict the jobs of nodes that are retired, as `orrery drain --now` does, and apply")
      ->excludes(drain);
  verb.footer(
      "Examples:\n"
      "  orrery fleet apply .orrery/fleet.yaml --dry-run\n"
      "  orrery fleet apply .orrery/fleet.yaml --drain\n"
      "  orrery fleet apply .orrery/fleet.yaml --catalog prices\n"
      "\nDocuments of kind Catalog or Calibration may follow the fleet in its file, each after a\n"
      "line of ---; those of --catalog take their place. They change prices, node types and\n"
      "constants.\n"
      "\nA node is known by its full name: one whose rack, pod, hall or site gets another name\n"
      "retires and is added anew, unless names: gives the node its name. To retire the last node\n"
      "of a type of accelerator or of a site, keep its group with count: 0.\n"
      "\nIt is refused, with exit status 1, where a job holds a node that the file retires,\n"
      "where a new catalog or calibration would give a running job another plan, and where\n"
      "another call has changed the fleet meanwhile. In a directory of `orrery up` it starts and\n"
      "ends the agents, too.\n");
  run_live<ApplyOptions>(verb, options, chosen, {asked, run_apply});
}

}  // namespace orrery
