// verbs/catalog/fleet_answer.hpp - the answers of `orrery fleet generate`, `import`, `validate` and
// `show`.
#pragma once

#include <optional>
#include <string>

#include "fleet/spec/spec.hpp"
#include "verbs/command_options.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

/// Returns the spec of a reference system, in YAML to be printed byte for byte. `nodes`: none is
/// the published number. Errors: an unknown system; a number of nodes that it cannot have.
[[nodiscard]] Result<VerbAnswer> generated_fleet(const CommandOptions& options,
                                                 const std::string& system,
                                                 std::optional<int> nodes);

using FleetImport = Result<FleetSpec> (*)(const Catalog& catalog, const std::string& path);

struct ImportedFleet {
  VerbAnswer spec;      ///< in YAML to be printed byte for byte
  std::string warning;  ///< of nodes whose type is a guess, for standard error; empty: none
};

/// Returns the spec that an import makes of a path. Errors: those of the import; a spec that does
/// not validate.
[[nodiscard]] Result<ImportedFleet> imported_fleet(const CommandOptions& options,
                                                   FleetImport import, const std::string& path);

/// Says that a spec is valid and how large its fleet is, and lists the domains that carry less than
/// their load. Errors: everything wrong in the spec, with file:line:column.
[[nodiscard]] Result<VerbAnswer> validated_fleet(const CommandOptions& options,
                                                 const std::string& file);

struct ShowFleet {
  std::string file;
  std::optional<std::string> svg;  ///< file to write a drawing to
};

/// Shows a fleet as a tree with totals, and writes its drawing. Errors: those of the spec; a name
/// for the drawing that is empty, "-" or the spec's own; a file that cannot be written.
[[nodiscard]] Result<VerbAnswer> shown_fleet(const CommandOptions& options, const ShowFleet& call);

}  // namespace orrery
