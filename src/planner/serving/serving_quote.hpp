// planner/serving/serving_quote.hpp - dollars, watts and racks of a service.
//
// The draw follows from how the time of a pass divides: the time that its operations take at the
// rate of large products is computing, exposed collectives wait for the network, host work and an
// empty batch are idle, everything else reads memory. An unpublished figure is left out. Values,
// pure.
#pragma once

#include <optional>
#include <string>

#include "perf/serving/serving.hpp"
#include "planner/economics.hpp"

namespace orrery {

/// Accelerators of one rack of the first reference system with the node that states it.
struct RackSize {
  double accelerators = 0;
  std::string system;  ///< id
};
[[nodiscard]] std::optional<RackSize> rack_size(const Catalog& catalog, const NodeType& node);

struct ServingWork {
  const ServingJob& job;
  const ServingConstants& constants;
  const ServingPrediction& prediction;  ///< of one instance
  double instances = 1;
  ServingRole role = ServingRole::kWhole;
};

/// Operations of one request, or of its prompt or answer alone.
[[nodiscard]] double request_flops(const ServingJob& job, ServingRole role = ServingRole::kWhole);

/// How the time of an instance's devices divides.
[[nodiscard]] PowerLoad serving_power_load(const ServingWork& work);

/// Draw and price of all instances, whatever they generate.
struct ServingExpense {
  PowerLoad load;
  std::optional<DollarsPerSecond> price;
  std::optional<Watts> power;
};

[[nodiscard]] ServingExpense expense_of(const Economics& economics, const ServingWork& work);

/// Figures of all instances together. Tokens are generated ones unless stated otherwise.
struct ServingQuote {
  PowerLoad load;  ///< how the time of a device divides
  std::optional<DollarsPerSecond> price;
  std::optional<double> dollars_per_million;
  std::optional<double> dollars_per_million_total;  ///< read and generated
  std::optional<Watts> power;                       ///< accelerators with their share of the nodes
  std::optional<double> tokens_per_joule;           ///< tokens/s per watt
  std::optional<double> tokens_per_rack;            ///< a second
};

[[nodiscard]] ServingQuote quote_of(const Economics& economics, const std::optional<RackSize>& rack,
                                    const ServingWork& work);

/// Tokens a second of `accelerators`, and those read and generated.
struct ServingYield {
  double generated = 0;
  double total = 0;
  double accelerators = 1;
};
[[nodiscard]] ServingQuote quote_of(const ServingExpense& expense,
                                    const std::optional<RackSize>& rack, const ServingYield& yield);

}  // namespace orrery
