#include "perf/site/money.hpp"

#include <fmt/format.h>

#include <string_view>

#include "base/format/field_writer.hpp"
#include "base/text/quantity_text.hpp"
#include "perf/range_check.hpp"
#include "perf/site/purchase_price.hpp"

namespace orrery {
namespace {

constexpr Seconds kYear = kHour * 8760.0;

std::optional<DollarsPerSecond> listed_rent(const AcceleratorPrice& price, PriceBasis basis,
                                            PriceLevel level) {
  const auto rate = [](const std::optional<DollarsPerHour>& hourly) {
    return hourly ? std::optional(DollarsPerSecond(*hourly)) : std::nullopt;
  };
  switch (basis) {
    case PriceBasis::kSpot:
      return rate(price.spot);
    case PriceBasis::kHyperscaler:
      return rate(price.hyperscaler);
    case PriceBasis::kOwned:
      return std::nullopt;
    case PriceBasis::kOnDemand:
      break;
  }
  switch (level) {
    case PriceLevel::kLow:
      return rate(price.on_demand_low);
    case PriceLevel::kTypical:
      return rate(price.on_demand);
    case PriceLevel::kHigh:
      return rate(price.on_demand_high);
  }
  return std::nullopt;
}

Result<AcceleratorCost> rented(const Catalog& catalog, const Accelerator& accelerator,
                               const PriceOptions& options) {
  std::optional<DollarsPerSecond> rent = options.rent;
  const AcceleratorPrice* price = catalog.price(accelerator);
  if (!rent && price != nullptr) rent = listed_rent(*price, options.basis, options.level);
  if (!rent) {
    return input_error({}, fmt::format("no {} price of {} ({}) is known; give dollars per hour of "
                                       "one accelerator{}",
                                       word_of(options.basis), accelerator.name, accelerator.id,
                                       price != nullptr ? ", or choose another basis" : ""));
  }
  Status checked = check_range("rent of an accelerator", rent->value(), kNotNegative);
  if (!checked) return forward_error(checked);
  return AcceleratorCost{.hire = *rent, .energy = {}, .assumptions = {}};
}

Dollars at_level(const ServerCapex& capex, PriceLevel level) {
  switch (level) {
    case PriceLevel::kLow:
      return capex.low;
    case PriceLevel::kTypical:
      return capex.typical;
    case PriceLevel::kHigh:
      return capex.high;
  }
  return capex.typical;
}

std::string basis_of(const ServerCapex& capex) {
  return fmt::format("{} ({})", capex.node, word_of(capex.provenance.confidence));
}

/// Price of one accelerator's share of a rack made of such nodes; none: no rack is priced.
std::optional<PurchasePrice> share_of_rack(const Catalog& catalog, const NodeType& node,
                                           PriceLevel level) {
  for (const SystemType& system : catalog.all<SystemType>()) {
    const ServerCapex* capex = catalog.server_capex(system.id);
    if (system.node != node.id || capex == nullptr || !system.rack_accelerators) continue;
    return PurchasePrice{at_level(*capex, level) / *system.rack_accelerators, basis_of(*capex), {}};
  }
  return std::nullopt;
}

Status check_ownership(const Ownership& owned, const Site& site) {
  Status checked =
      check_range("price of a node", owned.node_price.value_or(Dollars(0)).value(), kNotNegative);
  if (checked) {
    checked =
        check_range("amortisation in years", owned.amortisation_years.value_or(1), {0.1, 100});
  }
  if (checked) checked = check_range("utilisation", owned.utilisation.value_or(1), {0.001, 1});
  if (checked) {
    checked = check_range("maintenance a year", owned.maintenance_per_year.value_or(0), kFraction);
  }
  if (checked) {
    checked = check_range("watts of an accelerator with its share of the node", owned.power.value(),
                          kPositive);
  }
  if (checked) checked = check_range("PUE", site.pue, {1, kFigureMax});
  if (checked) {
    checked = check_range("price of electricity", site.electricity.value(), kNotNegative);
  }
  return checked;
}

Result<AcceleratorCost> owned_cost(const PriceSources& sources, const NodeType& node,
                                   const PriceOptions& options) {
  const Ownership& owned = options.owned;
  if (Status checked = check_ownership(owned, sources.site); !checked) {
    return forward_error(checked);
  }
  AcceleratorCost cost;
  Result<PurchasePrice> server = purchase_price(sources, node, options);
  if (!server) return forward_error(server);
  if (server->assumed) cost.assumptions.push_back(*server->assumed);
  const auto figure = [&](const std::optional<double>& given, std::string_view id) {
    const double value = given.value_or(sources.calibration.first_of({id}));
    if (!given) cost.assumptions.push_back(fmt::format("{}: {:.3g}", id, value));
    return value;
  };
  const double years = figure(owned.amortisation_years, "money.amortisation.years");
  const double utilisation = figure(owned.utilisation, "money.utilisation.fraction");
  const double maintenance = figure(owned.maintenance_per_year, "money.maintenance.fraction");
  const double beside = figure(std::nullopt, "money.network.fraction") +
                        figure(std::nullopt, "money.storage.fraction");
  cost.hire = server->each * (1 + beside) * (1 / years + maintenance) / (kYear * utilisation);
  cost.energy = owned.power * sources.site.pue * sources.site.electricity;
  return cost;
}

}  // namespace

Result<PurchasePrice> purchase_price(const PriceSources& sources, const NodeType& node,
                                     const PriceOptions& options) {
  const double count = node.accelerators_per_node;
  if (options.owned.node_price)
    return PurchasePrice{*options.owned.node_price / count, "operator", {}};
  if (const ServerCapex* capex = sources.catalog.server_capex(node.id); capex != nullptr) {
    return PurchasePrice{at_level(*capex, options.level) / count, basis_of(*capex), {}};
  }
  std::optional<PurchasePrice> rack = share_of_rack(sources.catalog, node, options.level);
  if (rack) return *std::move(rack);
  const Accelerator& accelerator = *sources.catalog.find<Accelerator>(node.accelerator);
  const AcceleratorPrice* price = sources.catalog.price(accelerator);
  if (price == nullptr || !price->unit_capex) {
    return input_error({}, fmt::format("no purchase price of {} or of {} ({}) is known; give "
                                       "dollars for one node of {}",
                                       node.id, accelerator.name, accelerator.id, count));
  }
  const double factor = sources.calibration.first_of({"money.server.factor"});
  return PurchasePrice{*price->unit_capex * factor,
                       fmt::format("{} ({}) x {:.3g}", accelerator.id,
                                   word_of(price->provenance.confidence), factor),
                       fmt::format("price of {}: {:.3g} x its accelerators of {}", node.id, factor,
                                   print(*price->unit_capex))};
}

Result<AcceleratorCost> accelerator_cost(const PriceSources& sources, const NodeType& node,
                                         const PriceOptions& options) {
  Result<const Accelerator*> accelerator = sources.catalog.require<Accelerator>(node.accelerator);
  if (!accelerator) return forward_error(accelerator);
  if (options.basis != PriceBasis::kOwned) return rented(sources.catalog, **accelerator, options);
  if (options.rent) {
    return input_error({}, fmt::format("a rent of {} and an owned {}: give one of the two",
                                       print(*options.rent), node.id));
  }
  return owned_cost(sources, node, options);
}

Result<Dollars> cost_of(const AcceleratorCost& cost, double accelerators, Seconds time) {
  Status checked = check_range("price", cost.total().value(), kNotNegative);
  if (checked) checked = check_range("number of accelerators", accelerators, kNotNegative);
  if (checked) checked = check_range("time", time.value(), kNotNegative);
  if (!checked) return forward_error(checked);
  return cost.total() * time * accelerators;
}

}  // namespace orrery
