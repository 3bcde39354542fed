// perf/site/money.hpp - what an hour of an accelerator costs, rented or owned.
//
// Prices move monthly: the catalog's are defaults, and an operator's figure always wins. A missing
// price is an error, never a guess; what stands in for a figure of an owned machine is listed in
// `assumptions`. Values, pure. Cost: a few look-ups.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "hardware/catalog.hpp"
#include "perf/calibration.hpp"
#include "perf/site/site.hpp"

namespace orrery {

enum class PriceBasis {
  kSpot,
  kOnDemand,     ///< specialist clouds
  kHyperscaler,  ///< list price of the large clouds
  kOwned,        ///< bought, housed and powered by the operator
};

inline std::array<EnumWord<PriceBasis>, 4> enum_words(PriceBasis) {
  return {{{"spot", PriceBasis::kSpot},
           {"on-demand", PriceBasis::kOnDemand},
           {"hyperscaler", PriceBasis::kHyperscaler},
           {"owned", PriceBasis::kOwned}}};
}

/// Which end of a published range. Spot and hyperscaler prices have one figure, whatever the level.
enum class PriceLevel { kLow, kTypical, kHigh };

inline std::array<EnumWord<PriceLevel>, 3> enum_words(PriceLevel) {
  return {
      {{"low", PriceLevel::kLow}, {"typical", PriceLevel::kTypical}, {"high", PriceLevel::kHigh}}};
}

/// An owned machine; figures not given are the catalog's or the calibration's.
struct Ownership {
  std::optional<Dollars> node_price;           ///< one whole node, without network and storage
  std::optional<double> amortisation_years;    ///< straight line, to nothing
  std::optional<double> utilisation;           ///< part of its life in which it runs paid work
  std::optional<double> maintenance_per_year;  ///< over the price
  Watts power;  ///< of an accelerator with its share of the node at work, see perf/site/power.hpp
};

struct PriceOptions {
  PriceBasis basis = PriceBasis::kOnDemand;
  PriceLevel level = PriceLevel::kTypical;
  std::optional<DollarsPerSecond> rent;  ///< the operator's own price of one accelerator
  Ownership owned;                       ///< for kOwned alone
};

/// The cost of one accelerator while it works for the job.
struct AcceleratorCost {
  DollarsPerSecond hire;    ///< rent, or depreciation and maintenance
  DollarsPerSecond energy;  ///< 0 when rented: the rent has it
  std::vector<std::string> assumptions;

  [[nodiscard]] DollarsPerSecond total() const { return hire + energy; }
};

/// Where prices come from; all must outlive the call.
struct PriceSources {
  const Catalog& catalog;
  const Calibration& calibration;
  const Site& site;
};

/// Owned: hire = price of node, network and storage x (1/years + maintenance) / (seconds of a year
/// x utilisation), energy = power x PUE x price of electricity (catalog/prices.yaml,
/// price_formulas, with a straight line in place of the annuity). Precondition: the calibration
/// has the built-in constants. Errors: a price that neither catalog nor operator gives (naming the
/// accelerator and what to give), a figure out of range, `rent` together with kOwned.
[[nodiscard]] Result<AcceleratorCost> accelerator_cost(const PriceSources& sources,
                                                       const NodeType& node,
                                                       const PriceOptions& options);

/// Returns the cost of a step or a run on so many accelerators.
[[nodiscard]] Result<Dollars> cost_of(const AcceleratorCost& cost, double accelerators,
                                      Seconds time);

}  // namespace orrery
