// orrery fleet generate | import | validate | show; apply is in fleet_apply_command.cpp
#include <memory>
#include <optional>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "fleet/import/kubernetes_import.hpp"
#include "fleet/import/slurm_import.hpp"
#include "verbs/catalog/fleet_answer.hpp"

namespace orrery {
namespace {

struct FleetRequest {
  ShowFleet shown;
  std::string system;
  std::string directory;
  int nodes = 0;
};

Status generate(const CommandOptions& options, const FleetRequest& request) {
  const std::optional<int> nodes =
      request.nodes == 0 ? std::nullopt : std::optional<int>(request.nodes);
  return print_answer(options, generated_fleet(options, request.system, nodes));
}

/// What the verbs of one command line share.
struct FleetVerbs {
  Verb& chosen;
  std::shared_ptr<FleetRequest> request;
};

Status print_import(const CommandOptions& options, const Result<ImportedFleet>& fleet) {
  if (!fleet) return tl::unexpected(fleet.error());
  print_answer(options, fleet->spec);
  if (!fleet->warning.empty()) print_message(fleet->warning);
  return {};
}

void add_import_commands(CLI::App& fleet, const CommandOptions& options, const FleetVerbs& verbs) {
  const std::shared_ptr<FleetRequest>& request = verbs.request;
  Verb& chosen = verbs.chosen;
  CLI::App* import_verb = fleet.add_subcommand("import", "write the spec of an existing cluster");
  import_verb->require_subcommand(1);
  CLI::App* slurm_verb = import_verb->add_subcommand(
      "slurm",
      "import slurm.conf, with gres.conf and topology.yaml or topology.conf if they exist");
  slurm_verb->add_option("DIR", request->directory, "directory of slurm.conf")->required();
  slurm_verb->callback([&options, &chosen, request] {
    chosen = [&options, request] {
      return print_import(options, imported_fleet(options, import_slurm, request->directory));
    };
  });

  CLI::App* kubernetes_verb =
      import_verb->add_subcommand("kubernetes", "import the output of `kubectl get nodes -o json`");
  kubernetes_verb
      ->add_option("FILE", request->shown.file, "JSON file, plain or gzip; - reads standard input")
      ->required();
  kubernetes_verb->callback([&options, &chosen, request] {
    chosen = [&options, request] {
      return print_import(options, imported_fleet(options, import_kubernetes, request->shown.file));
    };
  });
}

}  // namespace

void add_fleet_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto request = std::make_shared<FleetRequest>();
  CLI::App* fleet = app.add_subcommand(
      "fleet",
      "generate, import, check and show fleet specs; change the fleet of a running cluster");
  fleet->require_subcommand(1);

  CLI::App* generate_verb =
      fleet->add_subcommand("generate", "write the spec of a reference system");
  generate_verb
      ->add_option("--system", request->system,
                   "reference system, from `orrery catalog list systems`")
      ->required()
      ->type_name("ID");
  generate_verb
      ->add_option("--nodes", request->nodes, "number of nodes (default: the published number)")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
  generate_verb->callback([&options, &chosen, request] {
    chosen = [&options, request] { return generate(options, *request); };
  });

  add_import_commands(*fleet, options, {chosen, request});

  CLI::App* validate_verb =
      fleet->add_subcommand("validate", "check a fleet spec; exit status 2 if it is invalid");
  validate_verb->add_option("FILE", request->shown.file, "fleet spec; - reads standard input")
      ->required();
  validate_verb->callback([&options, &chosen, request] {
    chosen = [&options, request] {
      return print_answer(options, validated_fleet(options, request->shown.file));
    };
  });

  CLI::App* show_verb = fleet->add_subcommand("show", "show a fleet as a tree, with totals");
  show_verb->add_option("FILE", request->shown.file, "fleet spec; - reads standard input")
      ->required();
  show_verb
      ->add_option("--svg", request->shown.svg,
                   "also write a drawing of the fleet to this SVG file")
      ->type_name("FILE");
  show_verb->callback([&options, &chosen, request] {
    chosen = [&options, request] {
      return print_answer(options, shown_fleet(options, request->shown));
    };
  });
  add_fleet_apply_command(*fleet, options, chosen);
}

}  // namespace orrery
