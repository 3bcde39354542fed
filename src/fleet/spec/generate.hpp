// fleet/spec/generate.hpp - a fleet spec from a reference system of the catalog, or from
// accelerators.
#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "fleet/spec/spec.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

/// Returns the spec of a system, with its published number of nodes or `nodes` of them: pods of one
/// scalable unit, racks as in the source, its fabric. Power and cooling that the source does not
/// give follow from the load: the least cooling class that holds each rack. Errors (kInput): an
/// unknown system, or a number of nodes that its network or scale-up domain cannot have.
[[nodiscard]] Result<FleetSpec> generate_fleet(const Catalog& catalog, const std::string& system,
                                               std::optional<int> nodes);

}  // namespace orrery
