// fleet/network/scale_up_domain.hpp - which geometry the accelerators of one scale-up domain form.
#pragma once

#include <optional>

#include "base/error.hpp"
#include "fleet/network/scale_up.hpp"
#include "fleet/spec/spec.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

/// Returns the shape of a domain of `devices` accelerators of a type: the spec's torus if there is
/// one, else the shape that the catalog gives for the type ("nvswitch", "full-mesh", "ring",
/// "bridge", "torus2d-4x4"). None for a domain of one, and if the catalog has too little data (a
/// torus of another size, an unpublished number of links). A hybrid cube mesh is taken as an even
/// mesh. Errors: a torus that cannot be built, with the spec's position.
[[nodiscard]] Result<std::optional<ScaleUpShape>> scale_up_shape(
    const Catalog& catalog, const Accelerator& accelerator, int devices,
    const std::optional<TorusSpec>& torus);

/// Bandwidth per direction across the narrowest cut of a domain; none when the technology's links
/// are unknown. If links between nodes are slower than those inside (Trainium2), they are assumed
/// to be those of a torus's third dimension.
[[nodiscard]] std::optional<BytesPerSecond> scale_up_bisection(const Catalog& catalog,
                                                               const Accelerator& accelerator,
                                                               const ScaleUpShape& shape);

}  // namespace orrery
