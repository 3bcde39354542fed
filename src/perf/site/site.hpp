// perf/site/site.hpp - what the building adds to the meter of the machines: PUE, carbon,
// electricity.
//
// A value, built once a request from the catalog and what the operator knows better. Whatever the
// operator did not name and the catalog had to stand in for is listed in `assumptions`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

struct SiteOptions {
  std::optional<std::string> cooling;  ///< id of a CoolingClass; none: usual for the node's cooling
  std::optional<std::string> region;   ///< of the carbon and the electricity table
  std::optional<double> pue;
  std::optional<GramsCo2PerJoule> carbon;
  std::optional<DollarsPerJoule> electricity;
};

struct Site {
  double pue = 1;  ///< energy of the whole facility over that of the machines, at least 1
  GramsCo2PerJoule carbon;
  DollarsPerJoule electricity;  ///< typical
  std::vector<std::string> assumptions;
};

/// The operator's figures, else the catalog's: PUE is the middle of the cooling class's range; no
/// region means the world's carbon and the US industrial price.
/// Errors: an unknown class or region (with the nearest known), a region without a price or a
/// carbon figure the operator did not give either, a PUE below 1.
[[nodiscard]] Result<Site> site_of(const Catalog& catalog, const NodeType& node,
                                   const SiteOptions& options);

}  // namespace orrery
