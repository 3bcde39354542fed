#include "perf/site/site.hpp"

#include <fmt/format.h>

#include <string_view>

#include "perf/range_check.hpp"

namespace orrery {
namespace {

constexpr std::string_view kWorld = "World";
constexpr std::string_view kUsIndustry = "US industrial average";
constexpr Range kPueRange{1, 5};

std::string_view usual_cooling(const NodeType& node) {
  return node.cooling == "direct-liquid" ? "direct-liquid-hybrid" : "air-containment-modern";
}

Result<double> pue_of(const Catalog& catalog, const NodeType& node, const SiteOptions& options,
                      std::vector<std::string>& assumptions) {
  if (options.pue) return *options.pue;
  const std::string_view wanted =
      options.cooling ? std::string_view(*options.cooling) : usual_cooling(node);
  Result<const CoolingClass*> found = catalog.require<CoolingClass>(wanted);
  if (!found) return forward_error(found);
  const CoolingClass& cooling = **found;
  if (cooling.pue.empty()) {
    return input_error(cooling.where, fmt::format("cooling {} has no PUE", cooling.id));
  }
  const double middle = (cooling.pue.front() + cooling.pue.back()) / 2;
  assumptions.push_back(fmt::format("PUE {:.3g}: middle of the range of cooling {} (no PUE given)",
                                    middle, cooling.id));
  return middle;
}

Result<GramsCo2PerJoule> carbon_of(const Catalog& catalog, const SiteOptions& options,
                                   std::vector<std::string>& assumptions) {
  if (options.carbon) return *options.carbon;
  if (!options.region) {
    assumptions.push_back(fmt::format("carbon of the grid: {} (no region given)", kWorld));
  }
  Result<const GridCarbon*> grid =
      catalog.require<GridCarbon>(options.region ? std::string_view(*options.region) : kWorld);
  if (!grid) return forward_error(grid);
  return GramsCo2PerJoule((*grid)->value);
}

Result<DollarsPerJoule> electricity_of(const Catalog& catalog, const SiteOptions& options,
                                       std::vector<std::string>& assumptions) {
  if (options.electricity) return *options.electricity;
  if (!options.region) {
    assumptions.push_back(fmt::format("electricity: {} (no region given)", kUsIndustry));
  }
  Result<const ElectricityPrice*> price = catalog.require<ElectricityPrice>(
      options.region ? std::string_view(*options.region) : kUsIndustry);
  if (!price) return forward_error(price);
  return DollarsPerJoule((*price)->typical);
}

}  // namespace

Result<Site> site_of(const Catalog& catalog, const NodeType& node, const SiteOptions& options) {
  Site site;
  Result<double> pue = pue_of(catalog, node, options, site.assumptions);
  if (!pue) return forward_error(pue);
  if (Status checked = check_range("PUE", *pue, kPueRange); !checked) return forward_error(checked);
  Result<GramsCo2PerJoule> carbon = carbon_of(catalog, options, site.assumptions);
  if (!carbon) return forward_error(carbon);
  Status checked = check_range("carbon of the grid", carbon->value(), kNotNegative);
  if (!checked) return forward_error(checked);
  Result<DollarsPerJoule> price = electricity_of(catalog, options, site.assumptions);
  if (!price) return forward_error(price);
  checked = check_range("price of electricity", price->value(), kNotNegative);
  if (!checked) return forward_error(checked);
  site.pue = *pue;
  site.carbon = *carbon;
  site.electricity = *price;
  return site;
}

}  // namespace orrery
