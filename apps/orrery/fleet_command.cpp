// orrery fleet generate | import | validate | show; apply is in fleet_apply_command.cpp
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "base/format/field_writer.hpp"
#include "fleet/import/kubernetes_import.hpp"
#include "fleet/import/slurm_import.hpp"
#include "fleet/spec/builder.hpp"
#include "fleet/spec/generate.hpp"
#include "fleet/spec/summary.hpp"
#include "fleet/svg/svg.hpp"
#include "verbs/catalog/fleet_text.hpp"
#include "verbs/output_file.hpp"

namespace orrery {
namespace {

struct FleetRequest {
  std::string file;
  std::string system;
  std::string directory;
  int nodes = 0;
  std::optional<std::string> svg;
};

/// A built fleet and the facts it refers to.
struct BuiltFleet {
  std::unique_ptr<Facts> facts;
  std::unique_ptr<Topology> topology;
};

Result<BuiltFleet> build(const CommandOptions& options, const std::string& file) {
  BuiltFleet built;
  const Result<FleetFile> read = load_fleet_file(file);
  if (!read) return tl::unexpected(read.error());
  Result<Facts> facts = load_facts(options, read->facts);
  if (!facts) return forward_error(facts);
  built.facts = std::make_unique<Facts>(*std::move(facts));
  Result<Topology> topology = build_topology(read->spec, built.facts->catalog());
  if (!topology) return forward_error(topology);
  built.topology = std::make_unique<Topology>(*std::move(topology));
  return built;
}

// What is written must be what validates.
Status write_valid(const FleetSpec& spec, const Catalog& catalog, OutputFormat format) {
  Result<Topology> topology = build_topology(spec, catalog);
  if (!topology) return forward_error(topology);
  if (format == OutputFormat::kJson) {
    print_json(fleet_spec_json(spec));
  } else {
    print_bytes(write_fleet_spec(spec));
  }
  return {};
}

Status generate(const CommandOptions& options, const FleetRequest& request) {
  Result<Catalog> catalog = load_catalog(options);
  if (!catalog) return forward_error(catalog);
  const std::optional<int> nodes =
      request.nodes == 0 ? std::nullopt : std::optional<int>(request.nodes);
  Result<FleetSpec> spec = generate_fleet(*catalog, request.system, nodes);
  if (!spec) return forward_error(spec);
  return write_valid(*spec, *catalog, options.output);
}

using FleetImport = Result<FleetSpec> (*)(const Catalog& catalog, const std::string& path);

Status import_from(FleetImport read, const CommandOptions& options, const std::string& path) {
  Result<Catalog> catalog = load_catalog(options);
  if (!catalog) return forward_error(catalog);
  Result<FleetSpec> spec = read(*catalog, path);
  if (!spec) return forward_error(spec);
  return write_valid(*spec, *catalog, options.output);
}

Status validate(const CommandOptions& options, const FleetRequest& request) {
  Result<BuiltFleet> built = build(options, request.file);
  if (!built) return forward_error(built);
  const FleetSummary summary = summarize(*built->topology);
  if (options.output == OutputFormat::kJson) {
    print_json({{"valid", true},
                {"name", summary.name},
                {"nodes", summary.nodes},
                {"accelerators", summary.accelerators}});
  } else {
    print_text(fmt::format("{}: valid; nodes: {}, accelerators: {}\n", request.file,
                           print_count(summary.nodes), print_count(summary.accelerators)));
    for (const std::string& domain : oversubscribed_texts(summary.power)) {
      print_text("oversubscribed: " + domain + "\n");
    }
  }
  return {};
}

Status check_picture_path(const FleetRequest& request) {
  if (!request.svg) return {};
  if (request.svg->empty() || *request.svg == "-") {
    return input_error({}, "--svg: expected the name of a file");
  }
  std::error_code failed;
  if (std::filesystem::equivalent(*request.svg, request.file, failed)) {
    return input_error({}, fmt::format("--svg {} would overwrite the spec", *request.svg));
  }
  return {};
}

Status show(const CommandOptions& options, const FleetRequest& request) {
  if (Status checked = check_picture_path(request); !checked) return checked;
  Result<BuiltFleet> built = build(options, request.file);
  if (!built) return forward_error(built);
  const FleetSummary summary = summarize(*built->topology);
  if (request.svg) {
    Status written = write_output_file(*request.svg, draw_svg(*built->topology, summary));
    if (!written) return written;
  }
  if (options.output == OutputFormat::kJson) {
    print_json(to_json(summary));
  } else {
    print_text(fmt::format("{}\n{}", tree_text(*built->topology), summary_text(summary)));
  }
  return {};
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

  CLI::App* import_verb = fleet->add_subcommand("import", "write the spec of an existing cluster");
  import_verb->require_subcommand(1);
  CLI::App* slurm_verb = import_verb->add_subcommand(
      "slurm", "import slurm.conf, with gres.conf and topology.conf if they exist");
  slurm_verb->add_option("DIR", request->directory, "directory of slurm.conf")->required();
  slurm_verb->callback([&options, &chosen, request] {
    chosen = [&options, request] { return import_from(import_slurm, options, request->directory); };
  });

  CLI::App* kubernetes_verb =
      import_verb->add_subcommand("kubernetes", "import the output of `kubectl get nodes -o json`");
  kubernetes_verb
      ->add_option("FILE", request->file, "JSON file, plain or gzip; - reads standard input")
      ->required();
  kubernetes_verb->callback([&options, &chosen, request] {
    chosen = [&options, request] { return import_from(import_kubernetes, options, request->file); };
  });

  CLI::App* validate_verb =
      fleet->add_subcommand("validate", "check a fleet spec; exit status 2 if it is invalid");
  validate_verb->add_option("FILE", request->file, "fleet spec; - reads standard input")
      ->required();
  validate_verb->callback([&options, &chosen, request] {
    chosen = [&options, request] { return validate(options, *request); };
  });

  CLI::App* show_verb = fleet->add_subcommand("show", "show a fleet as a tree, with totals");
  show_verb->add_option("FILE", request->file, "fleet spec; - reads standard input")->required();
  show_verb->add_option("--svg", request->svg, "also write a drawing of the fleet to this SVG file")
      ->type_name("FILE");
  show_verb->callback([&options, &chosen, request] {
    chosen = [&options, request] { return show(options, *request); };
  });
  add_fleet_apply_command(*fleet, options, chosen);
}

}  // namespace orrery
