#include "verbs/catalog/fleet_answer.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "fleet/spec/builder.hpp"
#include "fleet/spec/generate.hpp"
#include "fleet/spec/summary.hpp"
#include "fleet/svg/svg.hpp"
#include "verbs/catalog/fleet_text.hpp"
#include "verbs/output_file.hpp"

namespace orrery {
namespace {

/// A built fleet and the facts it refers to.
struct BuiltFleet {
  std::unique_ptr<Facts> facts;
  std::unique_ptr<Topology> topology;
};

/// Adds to the error of an unknown row that a catalog stands beside the file: a controller reads
/// that of its directory, and this program does not.
Error with_hint(Error error, const CommandOptions& options, const std::string& file) {
  const std::filesystem::path beside = std::filesystem::path(file).parent_path() / "catalog";
  std::error_code failed;
  const bool is_unknown = error.message.find("is not in the catalog") != std::string::npos;
  if (!is_unknown || !options.catalog_directory.empty()) return error;
  if (!std::filesystem::is_directory(beside, failed)) return error;
  error.message +=
      fmt::format("; a catalog beside the file is read with --catalog {}", beside.string());
  return error;
}

Result<BuiltFleet> build(const CommandOptions& options, const std::string& file) {
  BuiltFleet built;
  const Result<FleetFile> read = load_fleet_file(file);
  if (!read) return tl::unexpected(read.error());
  Result<Facts> facts = load_facts(options, read->facts);
  if (!facts) return forward_error(facts);
  built.facts = std::make_unique<Facts>(*std::move(facts));
  Result<Topology> topology = build_topology(read->spec, built.facts->catalog());
  if (!topology) return tl::unexpected(with_hint(std::move(topology.error()), options, file));
  built.topology = std::make_unique<Topology>(*std::move(topology));
  return built;
}

VerbAnswer written(const FleetSpec& spec) {
  return {write_fleet_spec(spec), fleet_spec_json(spec), TextKind::kBytes};
}

/// What is written must be what validates.
Result<VerbAnswer> valid_spec(const FleetSpec& spec, const Catalog& catalog) {
  const Result<Topology> topology = build_topology(spec, catalog);
  if (!topology) return tl::unexpected(topology.error());
  return written(spec);
}

/// Imports know no processors, so the type of nodes without GPUs is a guess.
std::string guess_warning(const Topology& topology) {
  std::uint32_t nodes = 0;
  std::string type;
  for (std::uint32_t n = 0; n < topology.node_count(); ++n) {
    const NodeGroup& group = topology.group(NodeId(n));
    const Accelerator& each = topology.accelerator(group.type);
    if (each.kind != AcceleratorKind::kCpu) continue;
    ++nodes;
    type = fmt::format("{} x {}", group.devices, each.id);
  }
  if (nodes == 0) return {};
  return fmt::format(
      "nodes without GPUs: {}, taken for {}. Agents with other processors are refused: give these "
      "nodes a `type` with the processors that `orrery-agent --discover` prints there, or remove "
      "them\n",
      nodes, type);
}

Status check_picture_path(const ShowFleet& call) {
  if (!call.svg) return {};
  if (call.svg->empty() || *call.svg == "-") {
    return input_error({}, "--svg: expected the name of a file");
  }
  std::error_code failed;
  if (std::filesystem::equivalent(*call.svg, call.file, failed)) {
    return input_error({}, fmt::format("--svg {} would overwrite the spec", *call.svg));
  }
  return {};
}

}  // namespace

Result<VerbAnswer> generated_fleet(const CommandOptions& options, const std::string& system,
                                   std::optional<int> nodes) {
  const Result<Catalog> catalog = load_catalog(options);
  if (!catalog) return tl::unexpected(catalog.error());
  const Result<FleetSpec> spec = generate_fleet(*catalog, system, nodes);
  if (!spec) return tl::unexpected(spec.error());
  return valid_spec(*spec, *catalog);
}

Result<ImportedFleet> imported_fleet(const CommandOptions& options, FleetImport import,
                                     const std::string& path) {
  const Result<Catalog> catalog = load_catalog(options);
  if (!catalog) return tl::unexpected(catalog.error());
  const Result<FleetSpec> spec = import(*catalog, path);
  if (!spec) return tl::unexpected(spec.error());
  const Result<Topology> topology = build_topology(*spec, *catalog);
  if (!topology) return tl::unexpected(topology.error());
  return ImportedFleet{written(*spec), guess_warning(*topology)};
}

Result<VerbAnswer> validated_fleet(const CommandOptions& options, const std::string& file) {
  const Result<BuiltFleet> built = build(options, file);
  if (!built) return tl::unexpected(built.error());
  const FleetSummary summary = summarize(*built->topology);
  VerbAnswer answer{fmt::format("{}: valid; nodes: {}, accelerators: {}\n", file,
                                print_count(summary.nodes), print_count(summary.accelerators)),
                    {{"valid", true},
                     {"name", summary.name},
                     {"nodes", summary.nodes},
                     {"accelerators", summary.accelerators}}};
  for (const std::string& domain : oversubscribed_texts(summary.power)) {
    answer.text += "oversubscribed: " + domain + "\n";
  }
  return answer;
}

Result<VerbAnswer> shown_fleet(const CommandOptions& options, const ShowFleet& call) {
  if (Status checked = check_picture_path(call); !checked) return forward_error(checked);
  const Result<BuiltFleet> built = build(options, call.file);
  if (!built) return tl::unexpected(built.error());
  const FleetSummary summary = summarize(*built->topology);
  if (call.svg) {
    Status written = write_output_file(*call.svg, draw_svg(*built->topology, summary));
    if (!written) return forward_error(written);
  }
  return VerbAnswer{fmt::format("{}\n{}", tree_text(*built->topology), summary_text(summary)),
                    to_json(summary)};
}

}  // namespace orrery
